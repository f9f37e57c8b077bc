//! A map for subscribers that join later.
//!
//! The map maker publishes three revisions before any node subscribes. `transient_local(1)` keeps the
//! last one, and a planner that joins later receives it at once.

use rnet::{Node, Plain};

const SIDE: usize = 64;

/// An occupancy grid.
#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct Map {
    revision: u32,
    /// Side length of a cell, in m.
    resolution_m: f32,
    /// Row by row: -1 unknown, 0 free, 100 occupied.
    cells: [[i8; SIDE]; SIDE],
}

fn main() -> rnet::Result<()> {
    let mapper = Node::new("mapper")?;
    let mut maps = mapper.publisher::<Map>("/map").transient_local(1).open()?;
    let mut map = Map { revision: 0, resolution_m: 0.05, cells: [[-1; SIDE]; SIDE] };
    for row in 0..3 {
        map.revision += 1;
        map.cells[row].fill(0);
        maps.send(&map)?;
    }

    let planner = Node::new("planner")?;
    let mut received = planner.subscriber::<Map>("/map").transient_local().open()?;
    let map = received.recv()?;
    let free = map.cells.as_flattened().iter().filter(|cell| **cell == 0).count();
    let (revision, resolution_m) = (map.revision, map.resolution_m);
    println!("map revision {revision}: {free} free cells of {resolution_m} m");
    Ok(())
}

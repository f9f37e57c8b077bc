//! What all pages share: the threads that look and read, and what takes part.

use std::sync::Arc;

use rnet::inspect::{PriorityChange, lower_priority};
use tokio::sync::Semaphore;

use crate::desk::Desk;
use crate::options::Options;
use crate::ticks::{self, Ticks};
use crate::topic::{self, Reader};
use crate::world::World;

/// Changes and calls that run at one moment, of all pages.
pub const MAX_JOBS: usize = 32;
/// Stops and releases that run at one moment, of all pages: they have threads of their own.
pub const MAX_STOPS: usize = 64;

pub struct Hub {
    pub world: Arc<World>,
    pub ticks: Ticks,
    pub reader: Reader,
    pub desk: Arc<Desk>,
    pub jobs: Arc<Semaphore>,
    pub stops: Arc<Semaphore>,
}

impl Hub {
    /// Starts the threads that look and read.
    pub fn start(options: Options) -> crate::Result<Arc<Hub>> {
        let world = Arc::new(World::new(options));
        let desk = Arc::new(Desk::new(world.clone())?);
        let (ticks, reader) = (Ticks::default(), Reader::default());
        let [jobs, stops] = [MAX_JOBS, MAX_STOPS].map(|places| Arc::new(Semaphore::new(places)));
        let hub = Arc::new(Hub { world, ticks, reader, desk, jobs, stops });
        let spawn = |name: &str, way: PriorityChange, run: fn(&Hub)| {
            let hub = hub.clone();
            let looks = move || {
                // What operates the robot, Stop above all, is done by other threads.
                lower_priority(way);
                run(&hub);
            };
            std::thread::Builder::new().name(name.to_owned()).spawn(looks)
        };
        spawn("rnet-dash-tick", PriorityChange::Lowest, |hub| ticks::run(&hub.ticks, &hub.desk))?;
        // Messages that it does not read in time are lost to pages.
        let read = |hub: &Hub| topic::run(&hub.reader, &hub.desk);
        if let Err(error) = spawn("rnet-dash-read", PriorityChange::Batch, read) {
            hub.stop();
            return Err(error.into());
        }
        Ok(hub)
    }

    pub fn stop(&self) {
        self.world.stop();
        self.ticks.wake();
        self.reader.wake();
    }
}

//! Camera frames without copies: written and read in the same shared memory.
//!
//! `loan` lends a piece of shared memory, `send` puts its address into the log, and the viewer's
//! sample is a view of the same bytes. A 900 KiB frame costs as much as a few bytes.

use rnet::{Node, OnFull};
use std::time::Duration;

const WIDTH: usize = 640;
const HEIGHT: usize = 480;
const CHANNELS: usize = 3;
const FRAMES: u8 = 30;

fn main() -> rnet::Result<()> {
    let camera = Node::new("camera")?;
    // Reliable, because this viewer needs every frame; on a robot, dropping one is usually better.
    let mut frames = camera
        .publisher::<[u8]>("/camera/image")
        .reliable(OnFull::Wait(Duration::from_secs(10)))
        .open()?;
    let viewer = std::thread::spawn(view);
    frames.wait_for_subscribers(1)?;
    for number in 0..FRAMES {
        let mut frame = frames.loan(WIDTH * HEIGHT * CHANNELS)?;
        draw(&mut frame, number);
        frame.send().map_err(|(_frame, error)| error)?;
    }
    // The publisher owns the frames, so it stays open until they have been read.
    viewer.join().expect("the viewer does not panic")
}

/// A grey picture whose first pixel, top left, is red.
fn draw(frame: &mut [u8], number: u8) {
    frame.fill(number);
    frame[..CHANNELS].copy_from_slice(&[255, 0, 0]);
}

fn view() -> rnet::Result<()> {
    let viewer = Node::new("viewer")?;
    let mut frames = viewer.subscriber::<[u8]>("/camera/image").reliable().open()?;
    for _ in 0..FRAMES {
        let frame = frames.recv()?;
        let (first, last) = (&frame[..CHANNELS], &frame[frame.len() - CHANNELS..]);
        println!("frame {}: {} bytes, from {first:?} to {last:?}", frame.seq(), frame.len());
    }
    println!("lost: {}", frames.lost().total());
    Ok(())
}

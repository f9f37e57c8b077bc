//! An urgent stop that is never queued behind other topics.
//!
//! `/load` is a bulk topic with a slow callback and a thousand messages waiting for it; `/stop` is
//! an urgent topic. The lanes share neither a log nor a thread, so the stop is handled while the
//! bulk thread still processes its first messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use rnet::Node;

const LOADS: u32 = 1000;

fn main() -> rnet::Result<()> {
    let robot = Node::new("robot")?;
    let handled = Arc::new(AtomicU32::new(0));
    let counter = handled.clone();
    let load = robot.subscriber::<[u8]>("/load").keep_all().open()?.on(move |_load| {
        // Simulates the work of the callback.
        std::thread::sleep(Duration::from_millis(20));
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let (tell, stopped) = mpsc::channel();
    let stop = robot.subscriber::<[u8]>("/stop").open()?.on(move |stop| {
        let _ = tell.send((String::from_utf8_lossy(&stop).into_owned(), stop.latency()));
    });

    let operator = Node::new("operator")?;
    let mut loads = operator.publisher::<[u8]>("/load").open()?;
    let mut stops = operator.publisher::<[u8]>("/stop").urgent().open()?;
    loads.wait_for_subscribers(1)?;
    stops.wait_for_subscribers(1)?;
    for n in 0..LOADS {
        loads.send(&n.to_le_bytes())?;
    }
    stops.send(b"obstacle")?;

    let (why, latency) = stopped.recv().expect("the callback lives as long as `stop`");
    let handled = handled.load(Ordering::Relaxed);
    println!("stop ({why}) after {} us, {handled} of {LOADS} loads handled", latency.as_micros());
    drop((load, stop));
    Ok(())
}

//! One node, eight topics, one wait for all of them.
//!
//! Each topic carries the readings of one sensor: a 64-bit float, little-endian. A node that waits
//! for eight topics sleeps in a single wait, because a process has one doorbell per waiting thread,
//! not per topic. It needs every reading, so it uses keep_all: the default keeps the last ten
//! unread messages.

use rnet::{Node, Publisher, Subscriber, WaitSet, Waitable};

const SENSORS: usize = 8;
const READINGS: u32 = 100;

fn main() -> rnet::Result<()> {
    let node = Node::new("many_topics")?;
    let topics: Vec<String> = (0..SENSORS).map(|n| format!("/sensor_{n}")).collect();
    let mut readers = topics
        .iter()
        .map(|topic| node.subscriber(topic).keep_all().open())
        .collect::<rnet::Result<Vec<Subscriber<[u8]>>>>()?;
    let sensors = topics
        .iter()
        .map(|topic| node.publisher(topic).open())
        .collect::<rnet::Result<Vec<Publisher<[u8]>>>>()?;
    let measuring = std::thread::spawn(move || measure(sensors));

    let mut set = WaitSet::new(&node);
    let mut sums = [0.0; SENSORS];
    let mut counts = [0; SENSORS];
    while counts.iter().any(|count| *count < READINGS) {
        let mut all: Vec<&mut dyn Waitable> = Vec::with_capacity(SENSORS);
        all.extend(readers.iter_mut().map(|reader| reader as &mut dyn Waitable));
        set.wait(&mut all)?;
        for (n, reader) in readers.iter_mut().enumerate() {
            while let Some(sample) = reader.try_recv()? {
                let reading: [u8; 8] = sample[..].try_into().expect("a reading has eight bytes");
                sums[n] += f64::from_le_bytes(reading);
                counts[n] += 1;
            }
        }
    }
    for n in 0..SENSORS {
        let mean = sums[n] / f64::from(counts[n]);
        println!("{}: {} readings, mean {mean:.1}", topics[n], counts[n]);
    }
    measuring.join().expect("the sensors do not panic")
}

/// Sensor n reads 10 n, 10 n + 1, 10 n, …
fn measure(mut sensors: Vec<Publisher<[u8]>>) -> rnet::Result<()> {
    for sensor in &sensors {
        sensor.wait_for_subscribers(1)?;
    }
    for turn in 0..READINGS {
        for (n, sensor) in sensors.iter_mut().enumerate() {
            let reading = 10.0 * n as f64 + f64::from(turn % 2);
            sensor.send(&reading.to_le_bytes())?;
        }
    }
    Ok(())
}

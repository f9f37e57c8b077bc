//! A flood with rare notifications neither stops nor loses a message.

use bench_harness::{Lane, Net, Profile, Topic};
use std::sync::mpsc::channel;
use std::time::Duration;

const HELLO: &[u8] = b"hello";
const WAIT_LIMIT: Duration = Duration::from_secs(20);
/// Many times the length of a queue.
const COUNT: u64 = 20_000;

#[test]
fn a_flood_without_flush_passes_a_full_queue_of_each_subscriber() {
    // Queues of 8, 32 and 1024 messages.
    for max_len in [4 << 20, 1 << 20, 22] {
        for system in bench_iceoryx2::systems() {
            let dir = std::env::temp_dir().join(format!("flood-{}", std::process::id()));
            std::fs::create_dir(&dir).unwrap();
            let net =
                Net { dir: dir.clone(), number: 1, broker_port: None, disk: None, host: None };
            let (profile, lane) = (Profile::Throughput, Lane::Bulk);
            let (publishers, subscribers, index) = (1, 2, 0);
            let name = "flood".into();
            let topic = Topic { name, profile, lane, max_len, publishers, subscribers, index };
            let mut publisher = system.publisher(&net, &topic).unwrap();
            let subscriptions = [0, 1].map(|index| {
                let (arrived, arrivals) = channel();
                let sink = Box::new(move |message: &[u8]| {
                    let _ = arrived.send(message.first_chunk().map(|n| u64::from_le_bytes(*n)));
                });
                let topic = Topic { index, ..topic.clone() };
                (system.subscribe(&net, &topic, sink).unwrap(), arrivals)
            });
            for (_, arrivals) in &subscriptions {
                while arrivals.recv_timeout(Duration::from_millis(5)).is_err() {
                    publisher.send(HELLO).unwrap();
                    publisher.flush().unwrap();
                }
            }
            for number in 0..COUNT {
                publisher.send(&number.to_le_bytes()).unwrap();
            }
            publisher.flush().unwrap();
            for (_, arrivals) in &subscriptions {
                for number in 0..COUNT {
                    let got = loop {
                        if let Some(got) = arrivals.recv_timeout(WAIT_LIMIT).expect("lost") {
                            break got;
                        }
                    };
                    assert_eq!(got, number, "{}, {max_len}", system.id());
                }
            }
            drop(subscriptions);
            drop(publisher);
            std::fs::remove_dir_all(&dir).unwrap();
        }
    }
}

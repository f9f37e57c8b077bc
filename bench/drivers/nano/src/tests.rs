//! Messages from a publisher to a subscriber in one process.

use bench_harness::message::patterned;
use bench_harness::{Lane, Net, Profile, System, Topic};
use std::sync::mpsc::channel;
use std::time::Duration;

const HELLO: &[u8] = b"a hello, longer than any that follows is not";

fn carries(system: &dyn System, profile: Profile, lane: Lane) {
    let name = format!("bench-{}-{}-{profile:?}", system.id(), std::process::id());
    let dir = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&dir).unwrap();
    let net = Net { dir: dir.clone(), number: 1, broker_port: None, disk: None, host: None };
    let topic = Topic {
        name: "carry".into(),
        profile,
        lane,
        max_len: 1 << 20,
        publishers: 1,
        subscribers: 1,
        index: 0,
    };
    system.supports(&topic).unwrap();
    let mut publisher = system.publisher(&net, &topic).unwrap();
    let (seen, messages) = channel();
    let sink = Box::new(move |bytes: &[u8]| seen.send(bytes.to_vec()).unwrap());
    let subscription = system.subscribe(&net, &topic, sink).unwrap();
    while messages.recv_timeout(Duration::from_millis(5)).is_err() {
        publisher.send(HELLO).unwrap();
    }
    for (len, count) in [(0, 1000), (22, 1000), (1 << 20, 20)] {
        let mut expected = patterned(len);
        for number in 0..count {
            if let Some(first) = expected.first_mut() {
                *first = number as u8;
            }
            publisher.send(&expected).unwrap();
            let got = loop {
                let got = messages.recv_timeout(Duration::from_secs(20)).unwrap();
                if got != HELLO {
                    break got;
                }
            };
            assert!(got == expected, "{}: message {number} of {len} bytes", system.id());
        }
    }
    publisher.send_in_place(5000, &mut |bytes| bytes.copy_from_slice(&patterned(5000))).unwrap();
    assert!(messages.recv_timeout(Duration::from_secs(20)).unwrap() == patterned(5000));
    drop(subscription);
    // No subscriber is left, and sending does not wait forever.
    (0..3).for_each(|_| publisher.send(HELLO).unwrap());
    drop(publisher);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn each_system_carries_checked_messages_of_all_sizes() {
    for system in crate::systems() {
        println!("{} {}", system.id(), system.version().unwrap());
        carries(system.as_ref(), Profile::Throughput, Lane::Bulk);
        carries(system.as_ref(), Profile::Latency, Lane::Urgent);
    }
}

//! Each configuration carries messages of 0, 22 and 1 MiB bytes, in order and unharmed.

use bench_harness::{Lane, Net, Profile, Topic, message};
use std::sync::mpsc::channel;
use std::time::Duration;

const HELLO: &[u8] = b"hello";
const LOADS: [(usize, usize); 3] = [(0, 1000), (22, 1000), (1 << 20, 100)];
const WAIT_LIMIT: Duration = Duration::from_secs(20);

#[test]
fn messages_of_every_size_arrive_in_order_and_unharmed() {
    for (number, system) in bench_zenoh::systems().into_iter().enumerate() {
        for (lane, profile) in [(Lane::Bulk, Profile::Throughput), (Lane::Urgent, Profile::Latency)]
        {
            let id = system.id();
            let name = format!("{id}-{}", std::process::id());
            let dir = std::env::temp_dir().join(name);
            std::fs::create_dir(&dir).unwrap();
            let net = Net {
                dir: dir.clone(),
                number: number as u16 + 1,
                broker_port: None,
                disk: None,
                host: None,
            };
            let (publishers, subscribers, index) = (1, 1, 0);
            let (name, max_len) = ("carry".into(), 1 << 20);
            let topic = Topic { name, profile, lane, max_len, publishers, subscribers, index };

            let mut publisher = system.publisher(&net, &topic).unwrap();
            let (arrived, arrivals) = channel();
            let sink = Box::new(move |message: &[u8]| {
                let template = message::patterned(64);
                let is_right = message.iter().zip(&template).skip(8).all(|(a, b)| a == b);
                let number = message.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
                let is_hello = message == HELLO;
                let _ = arrived.send((is_hello, message.len(), number, is_hello || is_right));
            });
            let subscription = system.subscribe(&net, &topic, sink).unwrap();

            while arrivals.recv_timeout(Duration::from_millis(5)).is_err() {
                publisher.send(HELLO).unwrap();
            }
            for (len, count) in LOADS {
                for number in 0..count as u64 {
                    let mut bytes = message::patterned(len);
                    if len >= 8 {
                        bytes[..8].copy_from_slice(&number.to_le_bytes());
                    }
                    if number % 2 == 0 {
                        publisher.send(&bytes).unwrap();
                    } else {
                        publisher
                            .send_in_place(len, &mut |place| place.copy_from_slice(&bytes))
                            .unwrap();
                    }
                }
                publisher.flush().unwrap();
                for number in 0..count as u64 {
                    let got = loop {
                        let got = arrivals.recv_timeout(WAIT_LIMIT).expect("a message was lost");
                        if !got.0 {
                            break got;
                        }
                    };
                    let number = if len >= 8 { number } else { 0 };
                    assert_eq!(got, (false, len, number, true), "{id}");
                }
            }
            drop(subscription);
            drop(publisher);
            std::fs::remove_dir_all(&dir).unwrap();
        }
    }
}

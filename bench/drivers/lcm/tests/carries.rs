//! Messages of 0 bytes, 22 bytes and 1 MiB within one process. LCM may lose some when they come
//! fast, so each is sent when the one before has arrived.

use bench_harness::message::{Header, Kind, content_is_right, number_pages, patterned};
use bench_harness::{Lane, Net, Profile, Topic};
use std::sync::mpsc;
use std::time::Duration;

const COUNT: u64 = 1000;
const TRIES: u32 = 200;

#[test]
fn messages_of_all_sizes_arrive() {
    let system = &bench_lcm::systems()[0];
    if let Err(why) = system.version() {
        eprintln!("not run: {why}");
        return;
    }
    for (lane, number) in [(Lane::Bulk, 194), (Lane::Urgent, 195)] {
        let dir = std::env::temp_dir().join(format!("bench-lcm-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let net = Net { dir: dir.clone(), number, broker_port: None, disk: None, host: None };
        let topic = Topic {
            name: "carried".into(),
            profile: Profile::Latency,
            lane,
            max_len: 1 << 20,
            publishers: 1,
            subscribers: 1,
            index: 0,
        };
        let (arrived, arrivals) = mpsc::channel();
        let template = patterned(1 << 20);
        let sink = Box::new(move |message: &[u8]| {
            let header = Header::read(message);
            let right = header.is_none_or(|h| content_is_right(message, h.number, &template));
            let _ = arrived.send((message.len(), header.map(|h| h.number), right));
        });
        let subscription = system.subscribe(&net, &topic, sink).unwrap();
        let mut publisher = system.publisher(&net, &topic).unwrap();
        for len in [0, 22, 1 << 20] {
            let mut message = patterned(len);
            for number in 0..COUNT {
                if len > 0 {
                    let kind = Kind::Data;
                    Header { stamp_ns: 1, kind, phase: 0, publisher: 0, number }
                        .write(&mut message);
                    number_pages(&mut message, number);
                }
                let expected = (len, (len > 0).then_some(number), true);
                let heard = (0..TRIES).any(|_| {
                    publisher.send(&message).unwrap();
                    arrivals.recv_timeout(Duration::from_millis(50)) == Ok(expected)
                });
                assert!(heard, "message {number} of {len} bytes never arrived");
            }
        }
        drop((publisher, subscription));
        std::fs::remove_dir_all(dir).unwrap();
    }
}

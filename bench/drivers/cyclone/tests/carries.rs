//! Messages of 0 bytes, 22 bytes and 1 MiB within one process: each arrives, in order and whole.

use bench_harness::message::{Header, Kind, content_is_right, number_pages, patterned};
use bench_harness::{Lane, Net, Profile, Topic};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const COUNT: u64 = 1000;
const WAIT_LIMIT: Duration = Duration::from_secs(20);

#[test]
fn messages_of_all_sizes_arrive() {
    let system = &bench_cyclone::systems()[0];
    if let Err(why) = system.version() {
        eprintln!("not run: {why}");
        return;
    }
    for (case, (profile, lane)) in [
        (Profile::Throughput, Lane::Bulk),
        (Profile::Latency, Lane::Bulk),
        (Profile::Latency, Lane::Urgent),
    ]
    .into_iter()
    .enumerate()
    {
        let number = 191 + case as u16;
        let dir = std::env::temp_dir().join(format!("bench-cyclone-{}-{case}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let net = Net { dir: dir.clone(), number, broker_port: None, disk: None, host: None };
        let topic = Topic {
            name: "carried".into(),
            profile,
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
            let _ = arrived.send((message.len(), header, right));
        });
        let subscription = system.subscribe(&net, &topic, sink).unwrap();
        let mut publisher = system.publisher(&net, &topic).unwrap();
        let header = |kind, number| Header { stamp_ns: 1, kind, phase: 0, publisher: 0, number };

        let mut hello = [0; 16];
        header(Kind::Hello, 0).write(&mut hello);
        let start = Instant::now();
        loop {
            publisher.send(&hello).unwrap();
            publisher.flush().unwrap();
            if arrivals.recv_timeout(Duration::from_millis(5)).is_ok() {
                break;
            }
            assert!(start.elapsed() < WAIT_LIMIT, "no hello was heard");
        }
        for len in [0, 22, 1 << 20] {
            let mut message = patterned(len);
            for number in 0..COUNT {
                if len > 0 {
                    header(Kind::Data, number).write(&mut message);
                    number_pages(&mut message, number);
                }
                publisher.send(&message).unwrap();
            }
            publisher.flush().unwrap();
            for number in 0..COUNT {
                let seen = loop {
                    let seen = arrivals.recv_timeout(WAIT_LIMIT).expect("a message was lost");
                    if seen.1.is_none_or(|header| header.kind != Kind::Hello) {
                        break seen;
                    }
                };
                assert_eq!(seen.0, len);
                assert_eq!(seen.1.map(|h| h.number), (len > 0).then_some(number));
                assert!(seen.2, "message {number} of {len} bytes is corrupt");
            }
        }
        drop((publisher, subscription));
        std::fs::remove_dir_all(dir).unwrap();
    }
}

//! Copy throughput of an observer: `cargo bench -p rnet --bench observe`.
//!
//! A publisher sends until its log or pool is nearly full, an observer takes the messages, and so on; only
//! the observer's time counts. Prints GB of payload per second, by message length.

use std::time::{Duration, Instant};

use rnet::Node;
use rnet::inspect::{Domain, Observation, Observer};

const TOTAL: usize = 4 << 30;

fn main() {
    let dir = std::path::PathBuf::from(format!("/dev/shm/rnet-bench-{}", std::process::id()));
    std::fs::create_dir(&dir).expect("a temporary directory");
    for len in [64, 1024, 4096, 65_536, 1 << 20, 4 << 20] {
        let node = Node::builder("bench").domain("b").dir(&dir).open().expect("a node");
        let mut publisher = node.publisher::<[u8]>("/t").open().expect("a publisher");
        let mut domain = Domain::open(Some("b"), Some(dir.clone()), None).expect("the domain");
        let info = domain.snapshot().expect("a snapshot").publishers.remove(0);
        let mut observer = Observer::open(info.path, info.id, false).expect("an observer");
        let (message, mut bytes) = (vec![7; len], Vec::new());
        let burst = (65_536_usize / len).clamp(1, 64);
        let rounds = (TOTAL / (len * burst)).min(200_000);
        let (mut taken, mut took) = (0, Duration::ZERO);
        for _ in 0..rounds {
            (0..burst).for_each(|_| publisher.send(&message).expect("it is sent"));
            let began = Instant::now();
            while let Observation::Message(_) = observer.poll(&mut bytes) {
                taken += bytes.len();
            }
            took += began.elapsed();
        }
        println!("{len:>8} bytes: {:.2} GB/s", taken as f64 / took.as_secs_f64() / 1e9);
    }
    let _ = std::fs::remove_dir_all(&dir);
}

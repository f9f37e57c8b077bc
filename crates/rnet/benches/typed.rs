//! Cost of a type over raw bytes of the same length.
//!
//! `cargo bench -p rnet --bench typed`. Sender and receiver share a thread, so that a figure contains work
//! and no waiting: a message is sent, then received. Raw and typed batches alternate; a line shows both, and
//! the differences between neighbours. All batches count.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rnet::Subscriber;
use rnet::msgs::{Imu, JointState, Quaternion, Vector3, timestamp_from_ns};
use rnet::{Message, Node, OnFull, Plain, Publisher, Result};

const WAIT_LIMIT: Duration = Duration::from_secs(20);
/// Number of batch pairs.
const ROUNDS: usize = 301;
/// Messages per batch.
const BATCH: u32 = 1_000;

/// Seven joints as a struct.
#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct PlainJoints {
    stamp_ns: u64,
    position_rad: [f64; 7],
    velocity_rad_s: [f64; 7],
    effort_nm: [f64; 7],
}

/// One sweep of a laser scanner: too long for the log, so it uses a chunk.
#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct PlainScan {
    stamp_ns: u64,
    ranges_m: [f64; 1080],
}

fn main() -> Result<()> {
    let domain = format!("typed{}", std::process::id());
    let node = Node::builder("typed").domain(&domain).open()?;
    let path = node.domain_path().to_owned();
    let outcome = compare_all(&node);
    drop(node);
    // A leftover directory does no harm.
    let _ = std::fs::remove_dir_all(path);
    outcome
}

fn compare_all(node: &Node) -> Result<()> {
    println!("send + receive, ns: median (least), 90 % at most; {ROUNDS} x {BATCH} messages each");
    println!("{:<26}{:>7}{:>24}{:>24}{:>24}", "message", "bytes", "raw", "typed", "difference");
    let named = joint_state();
    let nameless = JointState { names: Vec::new(), ..named.clone() };
    compare(node, "JointState, 7 joints", &named)?;
    compare(node, "JointState without names", &nameless)?;
    compare(node, "Imu", &imu())?;
    let seven = [0.5; 7];
    let joints =
        PlainJoints { stamp_ns: 1, position_rad: seven, velocity_rad_s: seven, effort_nm: seven };
    compare(node, "plain, 7 joints", &joints)?;
    compare(node, "plain, 1080 ranges", &PlainScan { stamp_ns: 1, ranges_m: [0.5; 1080] })
}

fn joint_state() -> JointState {
    let names = [
        "shoulder_pan",
        "shoulder_up",
        "elbow_bend",
        "forearm_r",
        "wrist_1_x",
        "wrist_2_y",
        "wrist_3_z",
    ];
    let numbers = |first: f64| (0..7).map(|i| first + 0.1 * f64::from(i)).collect();
    JointState {
        timestamp: Some(timestamp_from_ns(1_790_000_000_123_456_789)),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        position: numbers(0.3),
        velocity: numbers(-1.7),
        effort: numbers(12.9),
        acceleration: Vec::new(),
    }
}

fn imu() -> Imu {
    Imu {
        timestamp: Some(timestamp_from_ns(1_790_000_000_123_456_789)),
        frame_id: "imu_link".into(),
        orientation: Some(Quaternion { x: 0.1, y: 0.2, z: 0.3, w: 0.92 }),
        angular_velocity: Some(Vector3 { x: 0.01, y: 0.02, z: 0.03 }),
        linear_acceleration: Some(Vector3 { x: 0.1, y: 0.2, z: 9.81 }),
        ..Default::default()
    }
}

/// Both endpoints of a topic.
struct Ends<T: Message + ?Sized>(Publisher<T>, Subscriber<T>);

impl<T: Message + ?Sized> Ends<T> {
    fn open(node: &Node, topic: &str) -> Result<Self> {
        let publisher = node.publisher(topic).reliable(OnFull::Refuse).open()?;
        let mut subscriber = node.subscriber(topic).reliable().open()?;
        publisher.wait_for_subscribers_timeout(1, WAIT_LIMIT)?;
        subscriber.wait_for_publishers_timeout(1, WAIT_LIMIT)?;
        Ok(Self(publisher, subscriber))
    }

    /// Sends and receives a batch. Returns ns per message.
    #[inline(never)]
    fn batch(&mut self, message: &T) -> Result<f64> {
        let begun = Instant::now();
        for _ in 0..BATCH {
            self.0.send(black_box(message))?;
            black_box(&*self.1.recv_timeout(WAIT_LIMIT)?);
        }
        Ok(begun.elapsed().as_secs_f64() * 1e9 / f64::from(BATCH))
    }
}

fn compare<T: Message>(node: &Node, name: &str, message: &T) -> Result<()> {
    let bytes = match message.as_bytes() {
        Some(bytes) => bytes.to_vec(),
        None => {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            bytes
        }
    };
    let mut raw = Ends::<[u8]>::open(node, "/raw")?;
    let mut typed = Ends::<T>::open(node, "/typed")?;
    // Warm-up: the first messages find cold caches.
    raw.batch(&bytes)?;
    typed.batch(message)?;
    let mut pairs = Vec::with_capacity(ROUNDS);
    for round in 0..ROUNDS {
        // The order alternates.
        let pair = if round % 2 == 0 {
            let raw = raw.batch(&bytes)?;
            (raw, typed.batch(message)?)
        } else {
            let typed = typed.batch(message)?;
            (raw.batch(&bytes)?, typed)
        };
        pairs.push(pair);
    }
    let column = |of: fn(&(f64, f64)) -> f64| spread(pairs.iter().map(of).collect());
    println!(
        "{name:<26}{:>7}{:>24}{:>24}{:>24}",
        bytes.len(),
        column(|pair| pair.0),
        column(|pair| pair.1),
        column(|pair| pair.1 - pair.0)
    );
    Ok(())
}

fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let at = |share: usize| values[(values.len() - 1) * share / 100];
    format!("{:.0} ({:.0}), {:.0}", at(50), at(0), at(90))
}

//! Performance of the data plane on this machine: throughput, latency and joining, between processes.
//!
//! `cargo bench -p rnet`. Each workload runs several times. The workloads alternate, so that a machine whose
//! speed drifts affects all equally. Prints the median and the range over all runs. The receiver checks each
//! message's number and counts missing ones. This measures robot-net alone; the comparison with other systems
//! has a separate workspace (issue 02).

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rnet::{Node, OnFull, Publisher, Reliability, Result, SubscriberQos, Wait, now_ns};

const REPEATS: usize = 5;
const WAIT_LIMIT: Duration = Duration::from_secs(20);

/// One workload: messages of `len` bytes, paced or as fast as they go.
#[derive(Clone, Copy)]
struct Work {
    name: &'static str,
    len: usize,
    count: u64,
    /// Time between messages; `None` sends as fast as possible, reliable.
    period: Option<Duration>,
    wait: Wait,
    readers: usize,
}

const fn flood(name: &'static str, len: usize, count: u64, readers: usize) -> Work {
    Work { name, len, count, period: None, wait: Wait::Adaptive, readers }
}

const fn paced(name: &'static str, period_us: u64, count: u64, wait: Wait) -> Work {
    let period = Some(Duration::from_micros(period_us));
    Work { name, len: 64, count, period, wait, readers: 1 }
}

const WORK: &[Work] = &[
    flood("22 B reliable 1->1", 22, 5_000_000, 1),
    flood("22 B reliable 1->4", 22, 1_000_000, 4),
    flood("1 KiB reliable 1->1", 1024, 1_000_000, 1),
    flood("1 MiB reliable 1->1", 1 << 20, 2_000, 1),
    paced("64 B at 10 kHz, spin", 100, 5_000, Wait::Spin),
    paced("64 B at 10 kHz, adaptive", 100, 5_000, Wait::Adaptive),
    paced("64 B at 10 kHz, block", 100, 5_000, Wait::Block),
    paced("64 B at 1 kHz, adaptive", 1_000, 1_000, Wait::Adaptive),
];

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    if let Some(at) = args.iter().position(|a| a == "--receive") {
        let work = args[at + 1].parse::<usize>().map(|i| WORK[i]).unwrap_or(WORK[0]);
        return receive(work, &args[at + 2]);
    }
    let only = args.iter().skip(1).find(|a| !a.starts_with("--")).cloned().unwrap_or_default();
    let mut results: Vec<Vec<[f64; 4]>> = vec![Vec::new(); WORK.len()];
    let mut joins = Vec::new();
    for _ in 0..REPEATS {
        for (index, work) in WORK.iter().enumerate().filter(|(_, w)| w.name.contains(&only)) {
            let (lines, join) = run(index, *work)?;
            results[index].extend(lines);
            joins.push(join.as_secs_f64() * 1e3);
        }
    }
    println!(
        "{:<28}{:>26}{:>26}{:>26}{:>8}",
        "workload", "msg/s at each reader", "p50 us", "p99 us", "lost"
    );
    for (work, rows) in WORK.iter().zip(&results).filter(|(_, rows)| !rows.is_empty()) {
        let column = |i: usize| spread(rows.iter().map(|row| row[i]).collect());
        let lost: f64 = rows.iter().map(|row| row[3]).sum();
        println!("{:<28}{:>26}{:>26}{:>26}{lost:>8}", work.name, column(0), column(1), column(2));
    }
    println!("first match after creating both ends, ms: {}", spread(joins));
    Ok(())
}

/// Median and range.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    match (values.first(), values.get(values.len() / 2), values.last()) {
        (Some(low), Some(mid), Some(high)) => {
            let digits = if *mid < 100.0 { 2 } else { 0 };
            format!("{mid:.digits$} ({low:.digits$}-{high:.digits$})")
        }
        _ => String::new(),
    }
}

fn run(index: usize, work: Work) -> Result<(Vec<[f64; 4]>, Duration)> {
    let domain = format!("bench{}", std::process::id());
    let node = Node::builder("sender").domain(&domain).open()?;
    let mut children: Vec<Child> = (0..work.readers)
        .map(|_| {
            let exe = std::env::current_exe().expect("the benchmark has a path");
            Command::new(exe)
                .args(["--receive", &index.to_string(), &domain])
                .stdout(Stdio::piped())
                .spawn()
                .expect("the receiver starts")
        })
        .collect();
    let publisher = node.publisher("/bench");
    let publisher = match work.period {
        None => publisher.reliable(OnFull::Wait(Duration::from_secs(10))),
        Some(_) => publisher,
    };
    let mut publisher: Publisher<[u8]> = publisher.open()?;
    publisher.wait_for_subscribers_timeout(work.readers, WAIT_LIMIT)?;
    let mut message = vec![0u8; work.len];
    let start = Instant::now();
    for seq in 0..work.count {
        if let Some(period) = work.period {
            // sleep: the workload defines the rate
            let due = start + period * seq as u32;
            if let Some(left) = due.checked_duration_since(Instant::now()) {
                std::thread::sleep(left);
            }
        }
        message[..8].copy_from_slice(&seq.to_le_bytes());
        publisher.send(&message)?;
    }
    let mut rows = Vec::new();
    let mut join = Duration::ZERO;
    for child in &mut children {
        let out = child.stdout.take().expect("the receiver's output is piped");
        for line in BufReader::new(out).lines().map_while(|l| l.ok()) {
            let fields: Vec<f64> = line.split(' ').filter_map(|f| f.parse().ok()).collect();
            if let [rate, p50, p99, lost, joined] = fields[..] {
                rows.push([rate, p50, p99, lost]);
                join = Duration::from_secs_f64(joined);
            }
        }
        let _ = child.wait();
    }
    drop(publisher);
    let path = node.domain_path().to_owned();
    drop(node);
    let _ = std::fs::remove_dir_all(path);
    Ok((rows, join))
}

/// The receiver: prints the rate, p50 and p99 latency in us, the number of missing messages, and the join
/// time in s.
fn receive(work: Work, domain: &str) -> Result<()> {
    let created = Instant::now();
    let node = Node::builder(&format!("receiver_{}", std::process::id())).domain(domain).open()?;
    let reliability = match work.period {
        None => Reliability::Reliable,
        Some(_) => Reliability::BestEffort,
    };
    let qos = SubscriberQos { reliability, wait: work.wait, ..Default::default() };
    let mut subscriber = node.subscriber::<[u8]>("/bench").qos(qos).open()?;
    subscriber.wait_for_publishers_timeout(1, WAIT_LIMIT)?;
    let joined = created.elapsed();
    let mut latencies: Vec<u32> = Vec::with_capacity(work.count as usize);
    let (mut expected, mut lost, mut first, mut last) = (0u64, 0u64, 0u64, 0u64);
    while expected < work.count {
        let sample = subscriber.recv_timeout(WAIT_LIMIT)?;
        last = if work.period.is_some() { now_ns() } else { sample.taken_ns() };
        let seq = u64::from_le_bytes(sample[..8].try_into().expect("eight bytes"));
        lost += seq - expected;
        expected = seq + 1;
        if latencies.is_empty() {
            first = last;
        }
        latencies.push((last - sample.sent_ns()).min(u64::from(u32::MAX)) as u32);
    }
    latencies.sort_unstable();
    let quantile = |q: f64| f64::from(latencies[((latencies.len() - 1) as f64 * q) as usize]) / 1e3;
    let rate = latencies.len() as f64 / ((last - first) as f64 / 1e9);
    println!("{rate} {} {} {lost} {}", quantile(0.5), quantile(0.99), joined.as_secs_f64());
    Ok(())
}

//! Performance of the state store on this machine, alone: calls, with few keys and with a million; several
//! processes on one key; watching; memory.
//!
//! `cargo bench -p rnet --bench state -- [part of a name] [--few]`; `--few` skips the million keys. Each case
//! runs several times. The cases alternate, so that a machine whose speed drifts affects all equally. Prints
//! the median and the range over all runs. bench/ compares with other stores.

use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rnet::state::{Cell, State};
use rnet::{Error, Node, Result, now_ns};

const REPEATS: usize = 5;
/// Keys that exist in the second half of the cases.
const MANY: usize = 1_000_000;
/// Keys of a snapshot, and under each prefix of the many.
const FEW: usize = 100;
/// Processes that increment one key.
const COUNTERS: usize = 4;
/// Increments of each process.
const INCREMENTS: u64 = 100_000;
/// How long one process waits for another.
const WAIT_LIMIT: Duration = Duration::from_secs(20);
const VALUE: [u8; 22] = [7; 22];

/// Result of a case: ns per call, or in the unit of its name.
type Run = Box<dyn FnMut() -> Result<f64>>;

struct Case {
    name: String,
    unit: &'static str,
    run: Run,
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    if let Some(at) = args.iter().position(|a| a == "--child") {
        return child(&args[at + 1], &args[at + 2]);
    }
    let only = args.iter().skip(1).find(|a| !a.starts_with("--")).cloned().unwrap_or_default();
    let domain = format!("benchstate{}", std::process::id());
    let node = Node::builder("bench").domain(&domain).open()?;
    let path = node.domain_path().to_owned();
    let few = args.iter().any(|a| a == "--few");
    let outcome = all(&node, &only, few);
    drop(node);
    // A leftover directory does no harm.
    let _ = std::fs::remove_dir_all(path);
    outcome
}

fn all(node: &Node, only: &str, few: bool) -> Result<()> {
    let state = node.state()?;
    for i in 0..FEW {
        state.set(&format!("/few/{i}"), VALUE.as_slice())?;
    }
    println!("{:<44}{:>30}", format!("with {FEW} keys"), "median (range)");
    let mut cases = calls(&state)?;
    cases.extend(together(node.domain()));
    measure(cases, only)?;
    if few {
        return Ok(());
    }

    let before = used_bytes(node)?;
    let start = Instant::now();
    for i in 0..MANY {
        state.set(&format!("/many/{}/{}", i / FEW, i % FEW), VALUE.as_slice())?;
    }
    let took = start.elapsed();
    let each = |bytes: u64| (bytes - before) as f64 / MANY as f64;
    println!();
    println!("{:<44}{:>30}", format!("with {MANY} keys more"), "median (range)");
    println!("{:<44}{:>30.0}", "  set of a new key, ns", took.as_nanos() as f64 / MANY as f64);
    println!("{:<44}{:>30.0}", "  memory per key, bytes", each(used_bytes(node)?));
    measure(calls(&state)?, only)
}

/// Runs the cases alternately, several times, and prints them.
fn measure(mut cases: Vec<Case>, only: &str) -> Result<()> {
    cases.retain(|case| case.name.contains(only));
    let mut found = vec![Vec::new(); cases.len()];
    for _ in 0..REPEATS {
        for (case, found) in cases.iter_mut().zip(&mut found) {
            found.push((case.run)()?);
        }
    }
    for (case, found) in cases.iter().zip(found) {
        println!("{:<44}{:>30}", format!("  {}, {}", case.name, case.unit), spread(found));
    }
    Ok(())
}

/// Median and range.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    match (values.first(), values.get(values.len() / 2), values.last()) {
        (Some(low), Some(mid), Some(high)) => {
            let digits = if *mid < 100.0 { 1 } else { 0 };
            format!("{mid:.digits$} ({low:.digits$}-{high:.digits$})")
        }
        _ => String::new(),
    }
}

/// A case of `count` calls in sequence on this thread.
fn case(name: &str, count: u32, mut once: impl FnMut(u32) -> Result<()> + 'static) -> Case {
    let run = move || {
        let start = Instant::now();
        for i in 0..count {
            once(i)?;
        }
        Ok(start.elapsed().as_nanos() as f64 / f64::from(count))
    };
    Case { name: name.to_owned(), unit: "ns", run: Box::new(run) }
}

/// One process, one thread, without contention.
fn calls(state: &State) -> Result<Vec<Case>> {
    const QUICK: u32 = 200_000;
    state.set("/one", VALUE.as_slice())?;
    state.set("/large", vec![7; 1 << 20])?;
    state.set("/number", 0i64)?;
    state.set("/counted", 0i64)?;
    let each = || state.clone();
    let bytes = || each().cell::<Vec<u8>>("/one");
    let (mut read, written): (Cell<f64>, Cell<f64>) = (state.cell("/gain")?, state.cell("/gain")?);
    written.set(&1.0)?;
    let mut of_bytes = bytes()?;
    let s = each();
    let mut cases = vec![case("get, 22 bytes", QUICK, move |_| s.get("/one").map(drop_it))];
    cases.push(case("get by a cell, 22 bytes", QUICK, move |_| of_bytes.get().map(drop_it)));
    cases.push(case("get by a cell, f64", QUICK, move |_| read.get().map(drop_it)));
    let s = each();
    cases.push(case("get, 1 MiB", 200, move |_| s.get("/large").map(drop_it)));
    let s = each();
    cases.push(case("get of an absent key", QUICK, move |_| s.get("/nothing").map(drop_it)));
    let s = each();
    cases.push(case("entry, 22 bytes", QUICK, move |_| s.entry("/one").map(drop_it)));
    let s = each();
    let set = move |_| s.set("/one", VALUE.as_slice()).map(drop_it);
    cases.push(case("set, 22 bytes", QUICK, set));
    cases.push(case("set by a cell, f64", QUICK, move |i| written.set(&f64::from(i)).map(drop_it)));
    let (s, large) = (each(), vec![7u8; 1 << 20]);
    cases.push(case("set, 1 MiB", 200, move |_| s.set("/large", &large[..]).map(drop_it)));
    let s = each();
    cases.push(case("add", QUICK, move |_| s.add("/number", 1).map(drop_it)));
    let s = each();
    cases.push(case("entry and compare_and_set", QUICK, move |_| {
        let revision = s.entry("/counted")?.map_or(0, |entry| entry.revision);
        s.compare_and_set("/counted", revision, 1i64).map(drop_it)
    }));
    for keys in [2, 10, FEW] {
        let s = each();
        let names: Vec<String> = (0..keys).map(|i| format!("/few/{i}")).collect();
        cases.push(case(&format!("transaction of {keys} keys"), 5_000, move |_| {
            let mut transaction = s.transaction();
            for name in &names {
                transaction.get(name)?;
                transaction.set(name, VALUE.as_slice())?;
            }
            transaction.commit().map(drop_it)
        }));
    }
    let s = each();
    cases.push(case(&format!("snapshot of {FEW} keys"), 20, move |_| {
        let found = s.snapshot("/few")?.entries.len();
        assert_eq!(found, FEW, "a snapshot has all of its keys");
        Ok(())
    }));
    let s = each();
    cases.push(case(&format!("list of {FEW} keys"), 20, move |_| {
        assert_eq!(s.list("/few")?.len(), FEW, "a list has all of its keys");
        Ok(())
    }));
    Ok(cases)
}

/// Uses a result, so that the compiler cannot remove the call.
fn drop_it<T>(value: T) {
    drop(black_box(value));
}

/// Several processes.
fn together(domain: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, way) in [("add", "add"), ("compare_and_set", "cas")] {
        let domain = domain.to_owned();
        let run = Box::new(move || count_together(&domain, way));
        let name = format!("{name} by {COUNTERS} processes, in total");
        cases.push(Case { name, unit: "ns", run });
    }
    for hz in [1_000, 10_000] {
        let domain = domain.to_owned();
        let run = Box::new(move || watch_median(&domain, hz));
        cases.push(Case { name: format!("set to watcher at {hz} Hz, p50"), unit: "ns", run });
    }
    cases
}

/// A process of this benchmark, with a pipe in each direction.
struct Other {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Other {
    fn start(what: &str, domain: &str) -> Other {
        let exe = std::env::current_exe().expect("the benchmark has a path");
        let mut child = Command::new(exe)
            .args(["--child", what, domain])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the process starts");
        let out = child.stdout.take().expect("its output is piped");
        Other { child, lines: BufReader::new(out).lines() }
    }

    /// Its next line, which is a number.
    fn hear(&mut self) -> f64 {
        let line = self.lines.next().expect("the process still runs").expect("it can be read");
        line.parse().expect("the line is a number")
    }

    /// Waits until the process reports that it is ready, or done.
    fn ready(&mut self) {
        self.hear();
    }

    fn go(&mut self) {
        let stdin = self.child.stdin.as_mut().expect("its input is piped");
        stdin.write_all(b"go\n").expect("it listens");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // Both fail only for a process that has exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// ns per increment, from the first start to the last end; includes all increments.
fn count_together(domain: &str, way: &str) -> Result<f64> {
    let node = Node::builder("judge").domain(domain).open()?;
    let state = node.state()?;
    state.delete("/together")?;
    let mut others: Vec<Other> = (0..COUNTERS).map(|_| Other::start(way, domain)).collect();
    others.iter_mut().for_each(Other::ready);
    let start = Instant::now();
    others.iter_mut().for_each(Other::go);
    others.iter_mut().for_each(Other::ready);
    let took = start.elapsed();
    let made = COUNTERS as u64 * INCREMENTS;
    let stands = state.get_as::<i64>("/together")?;
    assert_eq!(stands, i64::try_from(made).ok(), "all increments are in the counter");
    Ok(took.as_nanos() as f64 / made as f64)
}

/// Median time from before a set until a watcher in another process receives it.
fn watch_median(domain: &str, hz: u32) -> Result<f64> {
    let node = Node::builder("setter").domain(domain).open()?;
    let state = node.state()?;
    let mut other = Other::start("watch", domain);
    other.ready();
    let period = Duration::from_secs(1) / hz;
    let start = Instant::now();
    for i in 0..hz.min(5_000) {
        if let Some(left) = (start + period * i).checked_duration_since(Instant::now()) {
            std::thread::sleep(left); // sleep: the pace is the workload
        }
        state.set("/watched", now_ns().to_le_bytes().as_slice())?;
    }
    state.delete("/watched")?;
    Ok(other.hear())
}

fn child(what: &str, domain: &str) -> Result<()> {
    let node = Node::builder(&format!("child_{}", std::process::id())).domain(domain).open()?;
    let state = node.state()?;
    if what == "watch" {
        return watch(&state);
    }
    // Opened, mapped and read once before it reports ready.
    state.get("/together")?;
    say(0.0);
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("the benchmark sends the start");
    for _ in 0..INCREMENTS {
        if what == "add" {
            state.add("/together", 1)?;
        } else {
            increment(&state)?;
        }
    }
    say(0.0);
    Ok(())
}

fn increment(state: &State) -> Result<()> {
    loop {
        let (revision, number) = match state.entry("/together")? {
            Some(entry) => (entry.revision, entry.value.as_int().unwrap_or(0)),
            None => (0, 0),
        };
        match state.compare_and_set("/together", revision, number + 1) {
            Err(Error::Conflict { .. }) => {}
            other => return other.map(drop),
        }
    }
}

/// Reports the median latency once the key is deleted.
fn watch(state: &State) -> Result<()> {
    let mut watch = state.watch("/watched")?;
    let mut times = Vec::new();
    say(0.0);
    loop {
        let change = watch.recv_timeout(WAIT_LIMIT)?;
        let at_ns = now_ns();
        let Some(entry) = change.entry else { break };
        let stamp = entry.value.as_bytes().and_then(|b| b.try_into().ok());
        times.push(at_ns.saturating_sub(stamp.map_or(0, u64::from_le_bytes)));
    }
    times.sort_unstable();
    say(times.get(times.len() / 2).map_or(f64::NAN, |ns| *ns as f64));
    Ok(())
}

fn say(number: f64) {
    println!("{number}");
}

/// Memory of the domain's files.
fn used_bytes(node: &Node) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let files = std::fs::read_dir(node.domain_path()).expect("the domain's folder can be read");
    Ok(files.flatten().filter_map(|f| f.metadata().ok()).map(|m| m.blocks() * 512).sum())
}

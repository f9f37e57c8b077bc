//! Roles over processes that are killed, stopped and resumed, and over files that are removed or overwritten.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use rnet_shm::domain::directory::{DomainConfig, DomainDir};
use rnet_shm::domain::lease::STALL_LIMIT;
use rnet_shm::domain::role::Role;
use rnet_shm::os::clock::now_ns;
use rnet_shm::os::random::random_u64;

const DIR: &str = "RNET_ROLE_DIR";
const INDEX: &str = "RNET_ROLE_INDEX";
const MARK: &str = "@@";
/// Interval between two checks of a holder.
const PAUSE: Duration = Duration::from_micros(200);
/// Time limit of events that must happen.
const LONG: Duration = Duration::from_secs(60);

fn domain(base: &Path) -> DomainDir {
    let config = DomainConfig { base: Some(base.to_owned()), ..DomainConfig::default() };
    DomainDir::open_or_create(&config).unwrap()
}

/// The highest term in which each candidate has seen itself hold the role, in a shared file.
struct Log(File);

impl Log {
    fn open(base: &Path) -> Log {
        let mut options = File::options();
        Log(options.read(true).write(true).create(true).open(base.join("log")).unwrap())
    }

    fn highest(&self) -> u64 {
        let mut bytes = [0; 64 * 8];
        let len = self.0.read_at(&mut bytes, 0).unwrap();
        let terms = bytes[..len].chunks_exact(8);
        terms.map(|term| u64::from_le_bytes(term.try_into().unwrap())).max().unwrap_or(0)
    }

    fn note(&self, index: u64, term: u64) {
        self.0.write_all_at(&term.to_le_bytes(), index * 8).unwrap();
    }
}

/// A candidate's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Report {
    Waits,
    Holds {
        term: u64,
        at_ns: u64,
    },
    /// It noticed that another process holds the role.
    Lost {
        term: u64,
    },
    /// Another candidate had held the role with a higher term before this one confirmed that it holds it.
    Two {
        term: u64,
        other: u64,
    },
}

#[test]
#[ignore = "a child of the other tests"]
fn child_entry() {
    let (Ok(base), Ok(index)) = (std::env::var(DIR), std::env::var(INDEX)) else { return };
    std::thread::spawn(|| {
        // The child exits when its parent exits.
        let _ = std::io::stdin().read_line(&mut String::new());
        std::process::exit(0);
    });
    let (base, index) = (PathBuf::from(base), index.parse().unwrap());
    let (log, dir) = (Log::open(&base), domain(&base));
    let role = Role::open(&dir, "link").unwrap();
    println!("{MARK} waits 0 0");
    loop {
        let held = role.wait_for_turn(&AtomicBool::new(false)).unwrap().unwrap();
        let term = held.term();
        println!("{MARK} holds {term} {}", now_ns());
        loop {
            // In this order: a term that was recorded before the query was held before the answer.
            let other = log.highest();
            if !held.holds() {
                break;
            }
            if other > term {
                println!("{MARK} two {term} {other}");
            }
            log.note(index, term);
            std::thread::sleep(PAUSE); // sleep: leaves the machine's few cores to the others
        }
        println!("{MARK} lost {term} 0");
    }
}

struct RoleTest {
    base: PathBuf,
    reports: mpsc::Receiver<(usize, Report)>,
    sender: mpsc::Sender<(usize, Report)>,
    candidates: Vec<Child>,
}

impl RoleTest {
    fn new() -> RoleTest {
        let base = PathBuf::from(format!("/dev/shm/rnet-role-{:x}", random_u64()));
        std::fs::create_dir(&base).unwrap();
        let (sender, reports) = mpsc::channel();
        RoleTest { base, reports, sender, candidates: Vec::new() }
    }

    fn path(&self) -> PathBuf {
        domain(&self.base).path().join("link")
    }

    fn start(&mut self, index: usize) -> Child {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "role::child_entry", "--ignored", "--nocapture", "--test-threads=1"])
            .envs([(DIR, self.base.to_str().unwrap()), (INDEX, &index.to_string())])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (lines, sender) = (BufReader::new(child.stdout.take().unwrap()), self.sender.clone());
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let Some((_, text)) = line.split_once(MARK) else { continue };
                let words: Vec<_> = text.split_whitespace().collect();
                let number = |at: usize| words[at].parse().unwrap();
                let report = match words[0] {
                    "waits" => Report::Waits,
                    "holds" => Report::Holds { term: number(1), at_ns: number(2) },
                    "lost" => Report::Lost { term: number(1) },
                    _ => Report::Two { term: number(1), other: number(2) },
                };
                if sender.send((index, report)).is_err() {
                    return;
                }
            }
        });
        child
    }

    /// Starts `count` candidates; all of them wait, except one.
    fn start_all(&mut self, count: usize) -> (usize, u64) {
        for index in 0..count {
            let child = self.start(index);
            self.candidates.push(child);
        }
        let (mut waiting, mut holder) = (0, None);
        while waiting < count || holder.is_none() {
            match self.next_report() {
                (_, Report::Waits) => waiting += 1,
                (candidate, Report::Holds { term, .. }) => {
                    assert!(holder.is_none(), "two at once");
                    holder = Some((candidate, term));
                }
                other => panic!("{other:?}"),
            }
        }
        holder.unwrap()
    }

    /// Waits until each candidate has mapped the file: candidates report that they wait before they do.
    fn until_all_have_open(&self, path: &Path) {
        let path = path.to_str().unwrap();
        for child in &self.candidates {
            let maps = format!("/proc/{}/maps", child.id());
            while !std::fs::read_to_string(&maps).unwrap().contains(path) {
                std::thread::sleep(PAUSE); // sleep: between two reads of /proc
            }
        }
    }

    fn next_report(&self) -> (usize, Report) {
        let report = self.receive_report();
        assert!(!matches!(report.1, Report::Two { .. }), "{report:?}");
        report
    }

    fn receive_report(&self) -> (usize, Report) {
        self.reports.recv_timeout(LONG).expect("a candidate reports")
    }

    /// The next holder of the role: candidate, term, and time.
    fn next(&self) -> (usize, u64, u64) {
        loop {
            if let (candidate, Report::Holds { term, at_ns }) = self.next_report() {
                return (candidate, term, at_ns);
            }
        }
    }

    fn signal(&self, candidate: usize, signal: i32) {
        let pid = self.candidates[candidate].id() as libc::pid_t;
        // SAFETY: a signal to a child that was not waited for yet.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    }

    /// Kills a candidate and starts another in its place.
    fn replace(&mut self, candidate: usize) {
        let new = self.start(candidate);
        let mut old = std::mem::replace(&mut self.candidates[candidate], new);
        old.kill().unwrap();
        old.wait().unwrap();
    }
}

impl Drop for RoleTest {
    fn drop(&mut self) {
        for child in &mut self.candidates {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.base);
    }
}

fn print_times(what: &str, mut took_ns: Vec<u64>) {
    took_ns.sort_unstable();
    let ms = |ns: u64| ns as f64 / 1e6;
    let (median, max) = (took_ns[took_ns.len() / 2], took_ns[took_ns.len() - 1]);
    println!("{what}: median {:.1} ms, max {:.1} ms, of {}", ms(median), ms(max), took_ns.len());
}

#[test]
fn dead_holder_is_replaced() {
    let mut net = RoleTest::new();
    let (mut candidate, mut term) = net.start_all(8);
    let mut took = Vec::new();
    for _ in 0..20 {
        let killed_ns = now_ns();
        net.replace(candidate);
        let (next, next_term, at_ns) = net.next();
        assert!(next_term > term, "{next_term} after {term}");
        took.push(at_ns.saturating_sub(killed_ns));
        (candidate, term) = (next, next_term);
    }
    print_times("killed to replaced", took);
}

#[test]
fn stopped_holder_is_replaced_and_notices() {
    let mut net = RoleTest::new();
    let (mut candidate, mut term) = net.start_all(4);
    let mut took = Vec::new();
    for _ in 0..4 {
        let stopped_ns = now_ns();
        net.signal(candidate, libc::SIGSTOP);
        let (next, next_term, at_ns) = net.next();
        assert!(next != candidate && next_term > term);
        // The holder was stopped up to one beat interval after its last beat, and up to one check interval
        // after its waiter's last check.
        let least = STALL_LIMIT
            - rnet_shm::domain::lease::HEARTBEAT_INTERVAL
            - 2 * rnet_shm::domain::lease::CHECK_INTERVAL;
        let passed = at_ns.saturating_sub(stopped_ns);
        assert!(passed >= least.as_nanos() as u64, "after {passed} ns");
        took.push(passed);
        net.signal(candidate, libc::SIGCONT);
        assert_eq!(net.next_report(), (candidate, Report::Lost { term }));
        (candidate, term) = (next, next_term);
    }
    print_times("stopped to replaced", took);
}

/// Each keeps what it has open until it continues or is killed.
#[test]
fn successor_knows_the_stopped_processes_that_held_the_role_before() {
    let mut net = RoleTest::new();
    let (first, _) = net.start_all(3);
    net.signal(first, libc::SIGSTOP);
    let (second, ..) = net.next();
    net.signal(second, libc::SIGSTOP);
    let (third, ..) = net.next();
    let role = Role::open(&domain(&net.base), "link").unwrap();
    let take = || role.wait_for_turn(&AtomicBool::new(false)).unwrap().unwrap();
    // A killed holder, and one that releases the role, are none of them.
    net.candidates[third].kill().unwrap();
    drop(take());
    let held = take();
    let pid = |candidate: usize| net.candidates[candidate].id();
    assert_eq!(held.stopped_predecessors(), [pid(second), pid(first)]);
    net.candidates[second].kill().unwrap();
    net.candidates[second].wait().unwrap();
    assert_eq!(held.stopped_predecessors(), [net.candidates[first].id()]);
}

/// Its lock belongs to a past term: its fate has no meaning.
#[test]
fn exit_of_a_stopped_holder_does_not_affect_its_successor() {
    let mut net = RoleTest::new();
    let (first, _) = net.start_all(3);
    net.signal(first, libc::SIGSTOP);
    let (second, term, _) = net.next();
    net.replace(first);
    assert_eq!(net.next_report(), (first, Report::Waits));
    // The successor's own exit does. The process that replaces it may be the first to notice.
    net.replace(second);
    let (_, next_term, _) = net.next();
    assert!(next_term > term, "{next_term} after {term}");
}

#[test]
fn removed_or_damaged_file_changes_the_holder() {
    let write = |path: &Path, bytes: &[u8], at: u64| {
        File::options().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
    };
    type Spoil<'a> = &'a dyn Fn(&Path);
    // And whether the file must be recreated, which two processes may do at the same time.
    let ways: [(&str, bool, Spoil<'_>); 7] = [
        ("removed", false, &|path| std::fs::remove_file(path).unwrap()),
        ("a lease of ones", false, &|path| write(path, &[0xff; 16], 16)),
        ("a lease of zeros", false, &|path| write(path, &[0; 16], 16)),
        ("cut off", true, &|path| {
            File::options().write(true).open(path).unwrap().set_len(0).unwrap();
        }),
        ("zeros", true, &|path| write(path, &[0; 4096], 0)),
        ("ones", true, &|path| write(path, &[0xff; 4096], 0)),
        ("a dangling link", true, &|path| {
            std::fs::remove_file(path).unwrap();
            std::os::unix::fs::symlink("/nowhere/at/all", path).unwrap();
        }),
    ];
    let mut net = RoleTest::new();
    let (mut candidate, mut term) = net.start_all(4);
    let path = net.path();
    // A process that finds a removed file and never had it open cannot end its holder's role
    // (docs/design/role.md).
    net.until_all_have_open(&path);
    for (what, recreated, spoil) in ways {
        spoil(&path);
        // In any order, and the previous holder may be the next one.
        let (mut lost, mut next) = (false, None);
        while !lost || next.is_none() {
            match net.receive_report() {
                (_, Report::Two { .. }) if recreated => {}
                (by, Report::Lost { term: of }) if (by, of) == (candidate, term) => lost = true,
                (by, Report::Holds { term: of, .. }) => next = Some((by, of)),
                // Of several candidates that found it damaged, one has created the file that stays.
                (by, Report::Lost { term: of }) => {
                    assert_eq!(next, Some((by, of)), "{what}");
                    next = None;
                }
                other => panic!("{what}: {other:?}"),
            }
        }
        let before = term;
        (candidate, term) = next.unwrap();
        assert!(term > before, "{what}: {term} after {before}");
    }
}

#[test]
fn one_of_64_candidates_holds_the_role_at_a_time() {
    let mut net = RoleTest::new();
    let (mut candidate, mut term) = net.start_all(64);
    let mut took = Vec::new();
    for _ in 0..5 {
        let killed_ns = now_ns();
        net.candidates[candidate].kill().unwrap();
        let (next, next_term, at_ns) = net.next();
        assert!(next_term > term && next != candidate);
        took.push(at_ns.saturating_sub(killed_ns));
        (candidate, term) = (next, next_term);
    }
    print_times("killed to replaced, of 64", took);
}

#[test]
fn released_role_is_taken_and_stop_ends_the_wait() {
    let net = RoleTest::new();
    let dir = domain(&net.base);
    let role = Role::open(&dir, "link").unwrap();
    let stop = AtomicBool::new(false);
    let first = role.wait_for_turn(&stop).unwrap().unwrap();
    assert!(first.holds());
    std::thread::scope(|scope| {
        let second = scope.spawn(|| role.wait_for_turn(&stop).unwrap().unwrap());
        let term = first.term();
        drop(first);
        let second = second.join().unwrap();
        assert!(second.holds() && second.term() > term);
        // Another role of the domain is independent.
        let other = Role::open(&dir, "other").unwrap();
        assert!(other.wait_for_turn(&stop).unwrap().is_some_and(|held| held.holds()));
        let third = scope.spawn(|| role.wait_for_turn(&stop).unwrap().is_none());
        stop.store(true, Ordering::SeqCst);
        assert!(third.join().unwrap());
        assert!(second.holds());
    });
    std::fs::remove_file(dir.path().join("link")).unwrap();
    std::fs::create_dir(dir.path().join("link")).unwrap();
    assert!(Role::open(&dir, "link").unwrap_err().to_string().contains("link"));
}

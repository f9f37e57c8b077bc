//! Roles over processes that are killed, stopped and go on, and over files that are removed and scribbled.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use rnet_shm::domain::directory::{DomainConfig, DomainDir};
use rnet_shm::domain::heartbeat::STALL_LIMIT;
use rnet_shm::domain::role::Role;
use rnet_shm::os::clock::now_ns;
use rnet_shm::os::random::random_u64;

const DIR: &str = "RNET_ROLE_DIR";
const INDEX: &str = "RNET_ROLE_INDEX";
const MARK: &str = "@@";
/// Between two looks of a holder.
const PAUSE: Duration = Duration::from_micros(200);
/// For anything that is going to happen at all.
const LONG: Duration = Duration::from_secs(60);

fn domain(base: &Path) -> DomainDir {
    let config = DomainConfig { base: Some(base.to_owned()), ..DomainConfig::default() };
    DomainDir::open_or_create(&config).unwrap()
}

/// The highest term in which each candidate has seen itself hold the role, in a file that all share.
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

/// What a candidate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Report {
    Waits,
    Holds {
        term: u64,
        at_ns: u64,
    },
    /// It noticed that the role was another's.
    Lost {
        term: u64,
    },
    /// Another with a higher term had held the role before this one was told that it holds it.
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
        // The parent's end is ours.
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
            // In this order: what was noted before we ask was held before we are told.
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
    said: mpsc::Receiver<(usize, Report)>,
    tell: mpsc::Sender<(usize, Report)>,
    candidates: Vec<Child>,
}

impl RoleTest {
    fn new() -> RoleTest {
        let base = PathBuf::from(format!("/dev/shm/rnet-role-{:x}", random_u64()));
        std::fs::create_dir(&base).unwrap();
        let (tell, said) = mpsc::channel();
        RoleTest { base, said, tell, candidates: Vec::new() }
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
        let (lines, tell) = (BufReader::new(child.stdout.take().unwrap()), self.tell.clone());
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let Some((_, said)) = line.split_once(MARK) else { continue };
                let words: Vec<_> = said.split_whitespace().collect();
                let number = |at: usize| words[at].parse().unwrap();
                let said = match words[0] {
                    "waits" => Report::Waits,
                    "holds" => Report::Holds { term: number(1), at_ns: number(2) },
                    "lost" => Report::Lost { term: number(1) },
                    _ => Report::Two { term: number(1), other: number(2) },
                };
                if tell.send((index, said)).is_err() {
                    return;
                }
            }
        });
        child
    }

    /// Starts so many candidates; all of them wait, but for one.
    fn start_all(&mut self, count: usize) -> (usize, u64) {
        for index in 0..count {
            let child = self.start(index);
            self.candidates.push(child);
        }
        let (mut waiting, mut holder) = (0, None);
        while waiting < count || holder.is_none() {
            match self.hear() {
                (_, Report::Waits) => waiting += 1,
                (who, Report::Holds { term, .. }) => {
                    assert!(holder.is_none(), "two at once");
                    holder = Some((who, term));
                }
                other => panic!("{other:?}"),
            }
        }
        holder.unwrap()
    }

    /// Waits until each candidate has the file mapped: they say that they wait before they do.
    fn until_all_have_open(&self, path: &Path) {
        let path = path.to_str().unwrap();
        for child in &self.candidates {
            let maps = format!("/proc/{}/maps", child.id());
            while !std::fs::read_to_string(&maps).unwrap().contains(path) {
                std::thread::sleep(PAUSE); // sleep: between two looks at /proc
            }
        }
    }

    fn hear(&self) -> (usize, Report) {
        let said = self.hear_any();
        assert!(!matches!(said.1, Report::Two { .. }), "{said:?}");
        said
    }

    fn hear_any(&self) -> (usize, Report) {
        self.said.recv_timeout(LONG).expect("a candidate says something")
    }

    /// The next one who holds the role: who, in which term, since when.
    fn next(&self) -> (usize, u64, u64) {
        loop {
            if let (who, Report::Holds { term, at_ns }) = self.hear() {
                return (who, term, at_ns);
            }
        }
    }

    fn signal(&self, who: usize, signal: i32) {
        let pid = self.candidates[who].id() as libc::pid_t;
        // SAFETY: a signal to a child that was not waited for yet.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    }

    /// Kills a candidate and starts another in its place.
    fn replace(&mut self, who: usize) {
        let new = self.start(who);
        let mut old = std::mem::replace(&mut self.candidates[who], new);
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
fn a_dead_holder_is_replaced() {
    let mut net = RoleTest::new();
    let (mut who, mut term) = net.start_all(8);
    let mut took = Vec::new();
    for _ in 0..20 {
        let killed_ns = now_ns();
        net.replace(who);
        let (next, next_term, at_ns) = net.next();
        assert!(next_term > term, "{next_term} after {term}");
        took.push(at_ns.saturating_sub(killed_ns));
        (who, term) = (next, next_term);
    }
    print_times("killed to replaced", took);
}

#[test]
fn a_stopped_holder_is_replaced_and_notices() {
    let mut net = RoleTest::new();
    let (mut who, mut term) = net.start_all(4);
    let mut took = Vec::new();
    for _ in 0..4 {
        let stopped_ns = now_ns();
        net.signal(who, libc::SIGSTOP);
        let (next, next_term, at_ns) = net.next();
        assert!(next != who && next_term > term);
        // Its last beat was up to one beat, and its waiter's last look one look, before it was stopped.
        let least = STALL_LIMIT
            - rnet_shm::domain::heartbeat::HEARTBEAT_INTERVAL
            - 2 * rnet_shm::domain::heartbeat::CHECK_INTERVAL;
        let passed = at_ns.saturating_sub(stopped_ns);
        assert!(passed >= least.as_nanos() as u64, "after {passed} ns");
        took.push(passed);
        net.signal(who, libc::SIGCONT);
        assert_eq!(net.hear(), (who, Report::Lost { term }));
        (who, term) = (next, next_term);
    }
    print_times("stopped to replaced", took);
}

/// Its lock is that of a term which is over: what becomes of it says nothing.
#[test]
fn the_end_of_a_stopped_holder_takes_nothing_from_its_successor() {
    let mut net = RoleTest::new();
    let (first, _) = net.start_all(3);
    net.signal(first, libc::SIGSTOP);
    let (second, term, _) = net.next();
    net.replace(first);
    assert_eq!(net.hear(), (first, Report::Waits));
    // The successor's own end does. Who started in its place may be the first to notice.
    net.replace(second);
    let (_, next_term, _) = net.next();
    assert!(next_term > term, "{next_term} after {term}");
}

#[test]
fn a_file_that_is_removed_or_spoilt_changes_hands() {
    let write = |path: &Path, bytes: &[u8], at: u64| {
        File::options().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
    };
    type Spoil<'a> = &'a dyn Fn(&Path);
    // And whether it has to be made anew in its place, where two may do so at the same moment.
    let ways: [(&str, bool, Spoil<'_>); 7] = [
        ("removed", false, &|path| std::fs::remove_file(path).unwrap()),
        ("a lease of ones", false, &|path| write(path, &[0xff; 16], 16)),
        ("a lease of zeros", false, &|path| write(path, &[0; 16], 16)),
        ("cut off", true, &|path| {
            File::options().write(true).open(path).unwrap().set_len(0).unwrap();
        }),
        ("zeros", true, &|path| write(path, &[0; 4096], 0)),
        ("ones", true, &|path| write(path, &[0xff; 4096], 0)),
        ("a link that leads nowhere", true, &|path| {
            std::fs::remove_file(path).unwrap();
            std::os::unix::fs::symlink("/nowhere/at/all", path).unwrap();
        }),
    ];
    let mut net = RoleTest::new();
    let (mut who, mut term) = net.start_all(4);
    let path = net.path();
    // One who comes to a removed file that it never had open cannot cut its holder off (docs/design/role.md).
    net.until_all_have_open(&path);
    for (what, anew, spoil) in ways {
        spoil(&path);
        // In any order, and the old holder may be the next one.
        let (mut lost, mut next) = (false, None);
        while !lost || next.is_none() {
            match net.hear_any() {
                (_, Report::Two { .. }) if anew => {}
                (by, Report::Lost { term: of }) if (by, of) == (who, term) => lost = true,
                (by, Report::Holds { term: of, .. }) => next = Some((by, of)),
                // Of several who found it spoilt one has made the file that stays.
                (by, Report::Lost { term: of }) => {
                    assert_eq!(next, Some((by, of)), "{what}");
                    next = None;
                }
                other => panic!("{what}: {other:?}"),
            }
        }
        let before = term;
        (who, term) = next.unwrap();
        assert!(term > before, "{what}: {term} after {before}");
    }
}

#[test]
fn of_64_one_holds_the_role_and_then_another() {
    let mut net = RoleTest::new();
    let (mut who, mut term) = net.start_all(64);
    let mut took = Vec::new();
    for _ in 0..5 {
        let killed_ns = now_ns();
        net.candidates[who].kill().unwrap();
        let (next, next_term, at_ns) = net.next();
        assert!(next_term > term && next != who);
        took.push(at_ns.saturating_sub(killed_ns));
        (who, term) = (next, next_term);
    }
    print_times("killed to replaced, of 64", took);
}

#[test]
fn who_gives_it_back_is_followed_and_who_is_to_stop_stops() {
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
        // Another role of the domain is another matter.
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

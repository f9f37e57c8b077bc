//! A domain with its survivors, and the checks after each kill.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rnet::state::State;
use rnet::{Node, Subscription};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::LONG;
use crate::ledger::{Ledger, Line};
use crate::readers::{Kind, Reader, ReportViolation};
use crate::roles::{DISK, VICTIM_TOPICS};
use crate::state;

/// The remains of dead nodes must be gone after this time, on an idle machine.
pub const CLEANUP_LIMIT: Duration = Duration::from_secs(1);
/// The memory of the domain may exceed its initial size by this much, because the survivors' pools vary.
const MEMORY_SLACK_LEN_BYTES: u64 = 8 << 20;

/// The memory limit of the state, whatever dies: it keeps its memory and reuses it.
const STATE_LEN_BYTES: u64 = 48 << 20;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The name of the node that [`World::leave_dead_node`] leaves.
pub const DEAD_NODE: &str = "corpse";

/// A domain with survivors in it, removed when dropped.
pub struct World {
    dir: PathBuf,
    binary: PathBuf,
    readers: Vec<Reader>,
    /// Subscribes to victims whose messages have a type; kept to receive its events.
    typed_subscriber: Option<Subscription>,
    writer: Option<Process>,
    node: Option<Node>,
    violations: Arc<Mutex<Vec<String>>>,
    /// For each reader, its count at the last settled state, and how many of the messages started until
    /// then it could still receive.
    accounts: Vec<(u64, u64)>,
    first_bytes: u64,
    first_fds: [usize; 2],
    /// The remains of dead nodes must be gone within this time: [`LONG`] if the machine may be busy, as in
    /// CI; [`CLEANUP_LIMIT`] if the time is tested.
    pub cleanup_limit: Duration,
    /// How long it took until all remains were gone.
    pub cleaned: Vec<Duration>,
    /// Processes killed.
    pub kills: u64,
    /// Of those killed at random, how many had reported that they are about to send.
    pub joined: u64,
    /// Lines of ledgers that were looked up at a reader.
    pub lines: u64,
    /// Those of them for which the reader had a separate row.
    pub rows: u64,
}

/// A child, killed when dropped.
pub struct Process {
    /// The process.
    pub child: Child,
    /// Its name.
    pub name: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    /// Waits for the line by which a process reports that it is ready.
    pub fn ready(&mut self) -> Outcome {
        let out = self.child.stdout.as_mut().ok_or("not piped")?;
        // The line is written at once, so only its beginning has to be waited for.
        let limit = Timespec::try_from(LONG)?;
        if poll(&mut [PollFd::new(out, PollFlags::IN)], Some(&limit))? == 0 {
            return Err(format!("{} prints nothing for {LONG:?}", self.name).into());
        }
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        if line == "ready\n" {
            Ok(())
        } else {
            Err(format!("{} printed {line:?}", self.name).into())
        }
    }

    /// Waits until it has exited.
    pub fn ended(&mut self, limit: Duration) -> Outcome<Option<ExitStatus>> {
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            if Instant::now() > until {
                return Ok(None);
            }
            pause();
        }
    }

    /// Waits until it is stopped.
    pub fn stopped(&mut self, limit: Duration) -> Outcome<bool> {
        let stat = format!("/proc/{}/stat", self.child.id());
        eventually(limit, || std::fs::read_to_string(&stat).is_ok_and(|s| s.contains(") T ")))
    }

    /// Resumes it.
    pub fn resume(&self) -> Outcome {
        let pid = rustix::process::Pid::from_child(&self.child);
        Ok(rustix::process::kill_process(pid, rustix::process::Signal::CONT)?)
    }
}

fn pause() {
    std::thread::sleep(Duration::from_micros(500)); // sleep: interval between two checks
}

fn eventually(limit: Duration, mut done: impl FnMut() -> bool) -> Outcome<bool> {
    let until = Instant::now() + limit;
    while !done() {
        if Instant::now() > until {
            return Ok(false);
        }
        pause();
    }
    Ok(true)
}

impl World {
    /// A domain without survivors, for operations of a node that comes alone.
    pub fn empty(binary: &Path) -> Outcome<World> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = PathBuf::from(format!("/dev/shm/rnet-survival-{}-{count}", std::process::id()));
        std::fs::create_dir(&dir)?;
        Ok(World {
            dir,
            binary: binary.to_owned(),
            readers: Vec::new(),
            typed_subscriber: None,
            writer: None,
            node: None,
            violations: Arc::default(),
            accounts: Vec::new(),
            first_bytes: u64::MAX - MEMORY_SLACK_LEN_BYTES,
            // Unlimited until measured.
            first_fds: [usize::MAX; 2],
            cleanup_limit: LONG,
            cleaned: Vec::new(),
            kills: 0,
            joined: 0,
            lines: 0,
            rows: 0,
        })
    }

    /// A domain with surviving readers and a surviving writer.
    pub fn start(binary: &Path) -> Outcome<World> {
        let mut world = World::empty(binary)?;
        let node = crate::roles::node(&world.dir, "keep_readers")?;
        let violations = world.violations.clone();
        let report: ReportViolation = Arc::new(move |what| note(&violations, what));
        for (topic, kind) in [
            ("/v/small", Kind::Reliable),
            ("/v/small", Kind::BestEffort),
            ("/v/small", Kind::Latest),
            ("/v/small", Kind::Reliable),
            ("/v/large", Kind::Holding),
            ("/v/large", Kind::BestEffort),
            ("/v/latched", Kind::Latched),
            ("/k/small", Kind::BestEffort),
            ("/k/large", Kind::Holding),
            ("/k/mixed", Kind::Latched),
            ("/k/detach", Kind::Reliable),
        ] {
            world.readers.push(Reader::start(&node, topic, kind, report.clone())?);
        }
        world.typed_subscriber = Some(crate::roles::typed_subscriber(&node, report)?);
        world.node = Some(node);
        let mut writer = world.spawn("writer", "keep_writer", &[], None)?;
        writer.ready()?;
        world.writer = Some(writer);
        Ok(world)
    }

    /// Starts a process in a role, with a fail point armed if one is given.
    pub fn spawn(
        &self,
        role: &str,
        name: &str,
        flags: &[&str],
        point: Option<&str>,
    ) -> Outcome<Process> {
        let mut command = Command::new(&self.binary);
        command.arg(role).arg(&self.dir).arg(name).args(flags);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).env_remove("RNET_FAIL_POINT");
        if let Some(point) = point {
            command.env("RNET_FAIL_POINT", point);
        }
        Ok(Process { child: command.spawn()?, name: name.to_owned() })
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Ends it; returns the number of violations, including those found at the end.
    pub fn end(self) -> usize {
        let violations = self.violations.clone();
        drop(self);
        violations.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Measures the domain while only the survivors are present.
    pub fn measure(&mut self) -> Outcome {
        self.first_bytes = self.bytes();
        self.first_fds = self.fds();
        Ok(())
    }

    /// Records a violation.
    pub fn violation(&self, what: String) {
        note(&self.violations, what);
    }

    /// The violations, also while another thread uses the world.
    pub fn notes(&self) -> Arc<Mutex<Vec<String>>> {
        self.violations.clone()
    }

    /// The number of violations.
    pub fn violations(&self) -> usize {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Counts a killed process; returns whether SIGKILL killed it.
    pub fn killed(&mut self, status: ExitStatus) -> bool {
        let by_kill = status.signal() == Some(9);
        self.kills += u64::from(by_kill);
        by_kill
    }

    /// Checks everything that must hold once the given victims are dead. `since` is when the last one died.
    pub fn settle(&mut self, victims: &[String], since: Instant, context: &str) -> Outcome {
        self.check_leftovers(since, context)?;
        if self.node.is_none() {
            return Ok(());
        }
        self.check_accounts(victims, context)?;
        self.check_state(victims, context)?;
        self.check_progress(context)?;
        self.check_resources(context)?;
        for reader in &self.readers {
            reader.forget();
        }
        Ok(())
    }

    fn domain(&self) -> Option<PathBuf> {
        let mut entries = std::fs::read_dir(&self.dir).ok()?.flatten();
        let is_domain =
            |e: &std::fs::DirEntry| e.file_name().as_encoded_bytes().starts_with(b"rnet-");
        entries.find(is_domain).map(|entry| entry.path())
    }

    fn survivors(&self) -> BTreeSet<String> {
        let names: &[&str] =
            if self.node.is_some() { &["keep_readers", "keep_writer"] } else { &[] };
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// The entries of the domain that do not belong to the survivors.
    fn leftovers(&self) -> Vec<String> {
        let Some(domain) = self.domain() else { return Vec::new() };
        let survivors = self.survivors();
        let list = |sub: &str| {
            let entries = std::fs::read_dir(domain.join(sub)).into_iter().flatten().flatten();
            entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        let stem = |name: &str| name.split('@').next().unwrap_or_default().to_owned();
        let mut left: Vec<String> = list(".")
            .into_iter()
            .filter(|name| {
                !["VERSION", "deaths", "names", "nodes", "observers", "state"]
                    .contains(&name.as_str())
            })
            .collect();
        // No survivor is an observer.
        left.extend(list("observers").iter().map(|name| format!("observers/{name}")));
        for sub in ["names", "nodes"] {
            let here = list(sub);
            left.extend(
                here.iter().filter(|n| !survivors.contains(&stem(n))).map(|n| format!("{sub}/{n}")),
            );
            if here.len() < survivors.len() {
                left.push(format!("a survivor is missing in {sub}: {here:?}"));
            }
        }
        left
    }

    /// How long the cleanup took, as text.
    pub fn cleanup_times(&self) -> String {
        let mut cleaned = self.cleaned.clone();
        cleaned.sort_unstable();
        let at = |q: f64| cleaned.get(((cleaned.len() as f64 - 1.0) * q) as usize).copied();
        format!("nothing left after: p50 {:?} p90 {:?} max {:?}", at(0.5), at(0.9), at(1.0))
    }

    fn check_leftovers(&mut self, since: Instant, context: &str) -> Outcome {
        let gone = eventually(LONG, || self.leftovers().is_empty())?;
        let took = since.elapsed();
        self.cleaned.push(took);
        if !gone {
            self.violation(format!("{context}: left behind: {:?}", self.leftovers()));
        } else if took > self.cleanup_limit {
            self.violation(format!("{context}: the remains were there for {took:?}"));
        }
        Ok(())
    }

    fn lines(&self, victims: &[String]) -> Vec<(usize, Line)> {
        let lines = victims.iter().flat_map(|name| {
            let path = self.dir.join(format!("ledger.{name}"));
            let lines = Ledger::read(&path).unwrap_or_default();
            let _ = std::fs::remove_file(path);
            lines.into_iter().enumerate().map(|(at, line)| (at % VICTIM_TOPICS.len(), line))
        });
        lines.filter(|(_, line)| line.publisher != 0).collect()
    }

    /// `committed <= received + lost <= started`: for each victim that the subscriber still distinguishes,
    /// and for all together since the last check.
    fn check_accounts(&mut self, victims: &[String], context: &str) -> Outcome {
        let lines = self.lines(victims);
        self.accounts.resize(self.readers.len(), (0, 0));
        for (at, reader) in self.readers.iter().enumerate().filter(|(_, r)| r.of_victims) {
            let stream = VICTIM_TOPICS.iter().position(|(topic, _)| reader.what.starts_with(topic));
            let own = || lines.iter().filter(|(s, _)| Some(*s) == stream).map(|(_, line)| line);
            let committed: u64 = own().map(|line| line.committed).sum();
            let started: u64 = own().map(|line| line.started).sum();
            let newest_only = reader.kind == Kind::Latest;
            // The newest of several publishers is one message, so only a single publisher is certain to be
            // heard.
            let alone = newest_only && victims.len() == 1;
            let done = |line: &Line| {
                let heard = reader.heard(line.publisher);
                match (newest_only, heard.lost) {
                    (true, _) => !alone || heard.next >= line.committed,
                    (false, Some(lost)) => heard.received + lost >= line.committed,
                    (false, None) => true,
                }
            };
            let (before, late) = self.accounts[at];
            let has = || {
                let (received, lost) = reader.sums();
                (received + lost).saturating_sub(before)
            };
            if !eventually(LONG, || own().all(done) && (newest_only || has() >= committed))? {
                let heard: Vec<_> =
                    own().map(|line| (line, reader.heard(line.publisher))).collect();
                let has = has();
                let unheard =
                    heard.iter().filter(|(line, h)| h.received == 0 && line.committed > 0);
                let events: Vec<_> = unheard
                    .map(|(line, _)| (line.publisher, reader.events(line.publisher)))
                    .collect();
                self.violation(format!(
                    "{context}: {} has {has} with those lost, of {committed} committed: {heard:?}; of those \
                     not heard at all it has these events: {events:?}",
                    reader.what
                ));
            }
            let has = has();
            if !newest_only && has > started + late {
                self.violation(format!(
                    "{context}: {} has {has} with those lost, and only {started} were started \
                     (and {late} before)",
                    reader.what
                ));
            }
            for line in own() {
                let heard = reader.heard(line.publisher);
                let all = heard.received + heard.lost.unwrap_or(0);
                if all > line.started || heard.next > line.started {
                    self.violation(format!("{context}: {} of {line:?}: {heard:?}", reader.what));
                }
                self.lines += 1;
                self.rows += u64::from(heard.lost.is_some());
            }
            // At most one for each victim, killed between the send and its ledger entry.
            self.accounts[at] = (before + has, started.saturating_sub(has));
        }
        Ok(())
    }

    fn state(&self) -> Outcome<Option<State>> {
        Ok(self.node.as_ref().map(Node::state).transpose()?)
    }

    /// Checks that the last wills of the victims are done, and that their writes are intact.
    fn check_state(&self, victims: &[String], context: &str) -> Outcome {
        let Some(state) = self.state()? else { return Ok(()) };
        for name in victims {
            if !eventually(LONG, || state::will_is_done(&state, name).unwrap_or(false))? {
                self.violation(format!("{context}: the last will of {name} is not done"));
            }
            for wrong in state::check_dead_node(&state, name)? {
                self.violation(format!("{context}: {wrong}"));
            }
        }
        Ok(())
    }

    fn check_count(&self, context: &str) -> Outcome {
        let Some(state) = self.state()? else { return Ok(()) };
        let looked = || state::counted(&state).map_err(|what| format!("{context}: {what}"));
        let before = looked()?;
        if !eventually(LONG, || looked().is_ok_and(|count| count > before))? {
            self.violation(format!("{context}: the survivor's count stays at {before}"));
        }
        Ok(())
    }

    /// Checks that the survivors still communicate.
    pub fn check_progress(&self, context: &str) -> Outcome {
        for reader in self.readers.iter().filter(|r| !r.of_victims) {
            let before = reader.progress();
            if !eventually(LONG, || reader.progress() > before)? {
                self.violation(format!("{context}: {} hears nothing more", reader.what));
            }
        }
        self.check_count(context)
    }

    fn writer_pid(&self) -> u32 {
        self.writer.as_ref().map_or(0, |w| w.child.id())
    }

    /// The descriptors of the two survivors: files of this domain, and those that watch processes. The
    /// judge may be one of several tests in its process, which have their own files. A publisher has one
    /// descriptor for each chunk of its pool, whose bytes are counted; one of a chunk that was freed is a
    /// leak. The single store on disk is not counted: on a busy machine either survivor may take the other
    /// for stopped, and take over as persister.
    fn fds(&self) -> [usize; 2] {
        let chunk = |to: &Path| {
            let name = to.file_name().map(|name| name.to_string_lossy());
            let number = name.as_deref().and_then(|name| name.strip_prefix('p'));
            number.is_some_and(|rest| rest.contains('.') && !rest.ends_with(" (deleted)"))
        };
        let disk = self.dir.join(DISK);
        let counts = |link: &std::fs::DirEntry| {
            std::fs::read_link(link.path()).is_ok_and(|to| {
                to.starts_with(&self.dir) && !chunk(&to) && !to.starts_with(&disk)
                    || to.to_string_lossy().starts_with("anon_inode:")
            })
        };
        [std::process::id(), self.writer_pid()].map(|pid| {
            let links = std::fs::read_dir(format!("/proc/{pid}/fd"));
            links.into_iter().flatten().flatten().filter(counts).count()
        })
    }

    /// Memory of the domain, without that of the state.
    fn bytes(&self) -> u64 {
        let mut sum = 0;
        let mut folders = vec![self.dir.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let Ok(meta) = entry.metadata() else { continue };
                if entry.file_name() == "state" {
                    continue;
                }
                sum += meta.blocks() * 512;
                if meta.is_dir() {
                    folders.push(entry.path());
                }
            }
        }
        sum
    }

    /// Memory of dead nodes that a survivor still maps.
    fn maps_of_the_dead(&self) -> Vec<String> {
        let survivors = self.survivors();
        let dir = self.dir.display().to_string();
        let mut found = Vec::new();
        for pid in [std::process::id(), self.writer_pid()] {
            let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            let ours = maps.lines().filter(|line| line.contains(&dir));
            found.extend(ours.filter_map(|line| {
                let stem = line.split("/nodes/").nth(1)?.split('@').next()?;
                (!survivors.contains(stem)).then(|| format!("{pid}: {line}"))
            }));
        }
        found
    }

    /// Checks that memory, descriptors and mappings are back to their values with the survivors alone.
    fn check_resources(&self, context: &str) -> Outcome {
        let high = self.first_bytes + MEMORY_SLACK_LEN_BYTES;
        if !eventually(LONG, || self.bytes() <= high)? {
            self.violation(format!("{context}: {} bytes, were {}", self.bytes(), self.first_bytes));
        }
        let state = self.domain().and_then(|dir| std::fs::metadata(dir.join("state")).ok());
        if let Some(state) = state.filter(|meta| meta.blocks() * 512 > STATE_LEN_BYTES) {
            self.violation(format!("{context}: {} bytes of state", state.blocks() * 512));
        }
        let fewer =
            |now: [usize; 2]| now.iter().zip(&self.first_fds).all(|(now, first)| now <= first);
        if !eventually(LONG, || fewer(self.fds()))? {
            let (now, first) = (self.fds(), self.first_fds);
            self.violation(format!("{context}: {now:?} descriptors, were {first:?}"));
        }
        if !eventually(LONG, || self.maps_of_the_dead().is_empty())? {
            let maps = self.maps_of_the_dead();
            self.violation(format!("{context}: mapped of the dead: {maps:?}"));
        }
        Ok(())
    }

    /// Checks that a node that never met a survivor can use the domain: it joins and leaves nothing behind.
    /// Files whose maker might still live are removed by a later node.
    pub fn check_usable(&self, context: &str) -> Outcome {
        let until = Instant::now() + LONG;
        loop {
            let mut next = self.spawn("victim", "next", &["lonely", "once", "durable"], None)?;
            match next.ended(LONG)? {
                Some(status) if status.success() => {}
                status => self.violation(format!("{context}: the next node: {status:?}")),
            }
            let _ = std::fs::remove_file(self.dir.join("ledger.next"));
            if self.leftovers().is_empty() {
                return Ok(());
            }
            if Instant::now() > until {
                self.violation(format!("{context}: left behind: {:?}", self.leftovers()));
                return Ok(());
            }
            pause();
        }
    }

    /// Starts a process that keeps the state on disk, and stops it there while no other node is present.
    pub fn stop_a_persister(&self) -> Outcome<Process> {
        let mut persister =
            self.spawn("victim", DEAD_NODE, &["lonely", "stays", "durable"], None)?;
        persister.ready()?;
        let pid = rustix::process::Pid::from_child(&persister.child);
        rustix::process::kill_process(pid, rustix::process::Signal::STOP)?;
        if !persister.stopped(LONG)? {
            return Err("the persister cannot be stopped".into());
        }
        Ok(persister)
    }

    /// Starts a process that joins the domain, and kills it while no other node is present: at a fail
    /// point, or when it holds everything that it can.
    pub fn leave_dead_node(&mut self, point: Option<&str>) -> Outcome {
        let mut corpse = self.spawn("victim", DEAD_NODE, &["lonely", "stays"], point)?;
        if point.is_none() {
            corpse.ready()?;
            corpse.child.kill()?;
        }
        let status = corpse.ended(LONG)?.ok_or("the corpse-to-be hangs")?;
        self.killed(status);
        // The next node of this name writes a ledger of the same name.
        std::fs::remove_file(self.dir.join(format!("ledger.{DEAD_NODE}")))?;
        Ok(())
    }
}

fn note(violations: &Mutex<Vec<String>>, what: String) {
    let _ = writeln!(std::io::stdout(), "VIOLATION {what}");
    violations.lock().unwrap_or_else(PoisonError::into_inner).push(what);
}

impl Drop for World {
    fn drop(&mut self) {
        // Before the writer, because they would report its loss.
        self.readers.clear();
        self.typed_subscriber = None;
        self.writer = None;
        self.node = None;
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

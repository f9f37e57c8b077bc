//! One run: starts the processes of a job for one system, leads them through the phases, measures.

use crate::additions;
use crate::hosts::{self, Hosts};
use crate::leftovers::{NAME, is_left_behind};
use crate::memory::Memory;
use crate::process::{Server, Usage, Worker};
use crate::raw::{Phase, Process, Run};
use crate::registry::Registry;
use crate::workloads::Job;
use bench_harness::result::PhaseResult;
use bench_harness::spec::{Event, Order, Role, Spec};
use bench_harness::{Error, Host, Net, Result};
use rnet_bench::worker::WorkerLine;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Time limit for all processes to discover each other,
const JOIN: Duration = Duration::from_secs(20);
/// and how much longer for each of their endpoints.
const JOIN_EACH: Duration = Duration::from_millis(10);
/// Excess time of a phase over its plan: a reader may be far behind its writer.
const WAIT_LIMIT: Duration = Duration::from_secs(20);

static RUNS: AtomicU32 = AtomicU32::new(0);

/// Shared data of all runs of a comparison.
pub struct Comparison<'a> {
    /// The systems.
    pub registry: &'a Registry,
    /// The folder of the comparison.
    pub bench: &'a Path,
    /// Where durable values are kept: a folder on a real disk.
    pub disk: &'a Path,
}

/// Runs a job for a system. The result has the error.
pub fn run(
    comparison: &Comparison,
    workload: &str,
    system: &str,
    repetition: usize,
    job: &Job,
) -> Run {
    let start = Instant::now();
    let mut phases = Vec::new();
    let outcome = RunProcesses::start(comparison, system, job)
        .and_then(|mut processes| processes.run_phases(job, &mut phases))
        .and_then(|()| additions::check(job, &phases));
    Run {
        workload: workload.into(),
        variant: job.variant.clone(),
        system: system.into(),
        repetition,
        error: outcome.err().map(|e| e.to_string()),
        elapsed_s: start.elapsed().as_secs_f64(),
        phases,
    }
}

/// Where the runs' directories stand; those for durable values stand on a disk.
const MEMORY: &str = "/dev/shm";

/// Removes the remains of killed comparisons.
pub fn sweep(disk: &Path) {
    hosts::sweep();
    let entries = [Path::new(MEMORY), disk].map(std::fs::read_dir).into_iter().flatten();
    for entry in entries.flatten().flatten() {
        if is_left_behind(&entry.file_name()) {
            // A file that cannot be removed belongs to another user and does no harm.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A directory of the run's own, removed with what was left in it.
struct Directory(PathBuf);

impl Directory {
    fn new(parent: &Path, run: u32) -> Result<Self> {
        let path = parent.join(format!("{NAME}{}-{run}", std::process::id()));
        // Of an earlier process with the same number, in another container.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path)
            .map_err(|e| Error::new(format!("{}: {e}", path.display())))?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A file that cannot be removed does not disturb the next run.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The processes of a run. The fields are dropped in this order.
struct RunProcesses {
    workers: Vec<Worker>,
    said: Receiver<WorkerLine>,
    /// The server and the links of both hosts.
    servers: Vec<Server>,
    _hosts: Option<Hosts>,
    _directories: (Directory, Option<Directory>),
}

impl RunProcesses {
    fn start(comparison: &Comparison, system: &str, job: &Job) -> Result<Self> {
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let directory = Directory::new(Path::new(MEMORY), run)?;
        let on_disk = job.durable.then(|| Directory::new(comparison.disk, run)).transpose()?;
        let (dir, disk) = (&directory.0, on_disk.as_ref().map(|d| d.0.clone()));
        // Up to 100, so that DDS ports stay below those that the kernel gives away. Two comparisons may share
        // one; their messages contain the directory's name, too.
        let number = (std::process::id().wrapping_mul(31).wrapping_add(run) % 100 + 1) as u16;
        let mut net = Net { dir: dir.clone(), disk, number, broker_port: None, host: None };
        let hosts = job.cable.map(|cable| Hosts::join(&net.tag(), cable)).transpose()?;
        // The first host's: the publishers' and the server's.
        net.host = hosts.as_ref().map(|hosts| hosts.ends[0].clone());
        let broker = |net: &Net, port| comparison.registry.broker(system, net, port);
        let mut servers: Vec<_> =
            Server::start(&broker, &mut net, comparison.bench)?.into_iter().collect();
        let there = |host: &Host| Net { host: Some(host.clone()), ..net.clone() };
        for net in hosts.iter().flat_map(|hosts| &hosts.ends).map(there) {
            std::fs::create_dir(net.host_dir())?;
            let link = comparison.registry.system(system).and_then(|system| system.link(&net));
            if let (Some(link), Some(host)) = (link, &net.host) {
                let name = format!("link {}", host.name);
                servers.push(Server::run(name, link, Some(host), comparison.bench)?);
            }
        }
        let program = comparison.bench.join("python/worker.py");
        let python = comparison.registry.entries.get(system).and_then(|e| e.python.as_deref());
        let mut workers = Vec::new();
        let (sender, said) = channel();
        for (number, (name, role)) in job.processes.iter().enumerate() {
            let subscribes = matches!(role, Role::Peer { publishes, .. } if publishes.is_empty());
            let host = hosts.as_ref().map(|hosts| &hosts.ends[usize::from(subscribes)]);
            let spec = Spec {
                system: system.into(),
                net: host.map_or_else(|| net.clone(), there),
                role: role.clone(),
                phases: job.phases.len(),
            };
            let python = python.map(|p| (p, &*program));
            workers.push(Worker::start((number, name), &spec, python, sender.clone())?);
        }
        let _directories = (directory, on_disk);
        let mut processes = Self { workers, said, servers, _hosts: hosts, _directories };
        let deadline = Instant::now() + JOIN + JOIN_EACH * job.topics().len() as u32;
        processes.all(deadline, "ready", |event| match event {
            Event::Ready => Ok(()),
            other => Err(Error::new(format!("said {other:?} and not that it is ready"))),
        })?;
        Ok(processes)
    }

    /// Waits for one event from each worker; the first that fails ends the wait.
    fn all<T>(
        &mut self,
        deadline: Instant,
        awaited: &str,
        mut take: impl FnMut(Event) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut taken: Vec<Option<T>> = self.workers.iter().map(|_| None).collect();
        while taken.iter().any(Option::is_none) {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok((number, line)) = self.said.recv_timeout(left) else {
                let late = self.workers.iter().zip(&taken).filter(|(_, taken)| taken.is_none());
                let names: Vec<&str> = late.map(|(worker, _)| worker.name.as_str()).collect();
                let names = names.join(", ");
                return Err(Error::new(format!("not {awaited} in time: {names}")));
            };
            let event = self.workers[number].event(line.as_deref(), awaited)?;
            taken[number] = Some(take(event)?);
        }
        Ok(taken.into_iter().flatten().collect())
    }

    fn usage(&self) -> Result<Vec<Usage>> {
        let workers = self.workers.iter().map(Worker::usage);
        workers.chain(self.servers.iter().map(Server::usage)).collect()
    }

    /// Bytes that the cable has carried so far, where there is one.
    fn wire_bytes(&self) -> Result<Option<u64>> {
        let (Some(_), Some(first)) = (&self._hosts, self.workers.first()) else { return Ok(None) };
        hosts::wire_bytes(first.id()).map(Some)
    }

    /// Memory of all processes; `None` if the kernel does not report it.
    fn memory(&self) -> Option<Memory> {
        let workers = self.workers.iter().map(Worker::id);
        let pids = workers.chain(self.servers.iter().map(Server::id));
        Memory::of(pids, &self._directories.0.0).ok()
    }

    fn run_phases(&mut self, job: &Job, phases: &mut Vec<Phase>) -> Result<()> {
        for (number, plan) in job.phases.iter().enumerate() {
            let rate_hz = match plan.limited_to {
                None => plan.rate_hz,
                Some((earlier, share)) => Some(share * slowest_reader_hz(&phases[earlier])?),
            };
            let before = self.usage()?;
            let wire_before = self.wire_bytes()?;
            let start = Instant::now();
            for (worker, (_, role)) in self.workers.iter_mut().zip(&job.processes) {
                let rates_hz = match (role, plan.limited_to) {
                    (Role::Peer { publishes, .. }, Some(_)) => vec![rate_hz; publishes.len()],
                    _ => Vec::new(),
                };
                worker.order(&Order::Go { go: number, rates_hz })?;
            }
            let deadline = start + Duration::from_secs_f64(plan.seconds) + WAIT_LIMIT;
            let mut results = self
                .all(deadline, "done", |event| match event {
                    Event::Done { phase, result } if phase == number => Ok(*result),
                    other => Err(Error::new(format!("said {other:?} in phase {number}"))),
                })?
                .into_iter();
            let elapsed_s = start.elapsed().as_secs_f64();
            let after = self.usage()?;
            let wire_bytes = self.wire_bytes()?.zip(wire_before).map(|(now, then)| now - then);
            let memory = self.memory();
            let names = self
                .workers
                .iter()
                .map(|w| w.name.as_str())
                .chain(self.servers.iter().map(|s| s.name.as_str()));
            let processes = names
                .zip(before.iter().zip(&after))
                .map(|(name, (before, after))| process(name, before, after, results.next()))
                .collect();
            phases.push(Phase {
                label: plan.label.clone(),
                len: plan.len,
                rate_hz,
                elapsed_s,
                memory,
                wire_bytes,
                processes,
            });
        }
        self.workers.iter_mut().for_each(Worker::stop);
        self.workers.drain(..).for_each(Worker::join);
        Ok(())
    }
}

fn process(name: &str, before: &Usage, after: &Usage, result: Option<PhaseResult>) -> Process {
    Process {
        name: name.into(),
        cpu_ns: after.cpu_ns - before.cpu_ns,
        rss_kib: after.rss_kib,
        rss_peak_kib: after.rss_peak_kib,
        result,
    }
}

/// Messages per second that arrived at the subscription that got the fewest.
fn slowest_reader_hz(phase: &Phase) -> Result<f64> {
    phase
        .processes
        .iter()
        .filter_map(|p| p.result.as_ref())
        .flat_map(|r| &r.received)
        .filter(|r| r.span_ns > 0 && r.count > 1)
        .map(|r| (r.count - 1) as f64 / (r.span_ns as f64 / 1e9))
        .min_by(f64::total_cmp)
        .ok_or_else(|| Error::new(format!("nothing arrived in phase {:?}", phase.label)))
}

//! A whole comparison: the systems in turn, repetition after repetition.

use crate::hosts;
use crate::machine::{self, Machine};
use crate::progress::Progress;
use crate::raw::{self, Options, Raw, Skipped};
use crate::registry::Registry;
use crate::run::{self, Comparison};
use crate::workloads::{self, Choice, Context, Job, Workload};
use crate::{RunArguments, study3};
use bench_harness::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// Repetitions of a comparison whose figures one may quote.
const REPEAT: usize = 5;
/// Factor of `--quick` for durations.
const QUICK_SCALE: f64 = 0.4;
/// Not part of a whole comparison.
const ONLY_ON_DEMAND: &[&str] = &["carry"];

/// One run that is to be done in each repetition.
struct Planned<'a> {
    workload: &'a Workload,
    system: String,
}

/// Runs the selected workloads and writes the raw data.
///
/// # Errors
/// A name that is not known, a file that cannot be written. A system that fails is data.
pub fn run(arguments: &RunArguments, bench: &Path) -> Result<()> {
    let start = Instant::now();
    let registry = Registry::new(bench);
    let all = workloads::all();
    let names: Vec<&str> = all.iter().map(|w| w.name).chain([study3::NAME]).collect();
    known("workload", &arguments.workloads, &names)?;
    known("system", &arguments.systems, &registry.order)?;
    let repeat = arguments.repeat.map_or(if arguments.quick { 1 } else { REPEAT }, usize::from);
    let scale = arguments.scale.unwrap_or(if arguments.quick { QUICK_SCALE } else { 1.0 });
    if !(0.01..=100.0).contains(&scale) {
        return Err(Error::new(format!("--scale is {scale}, and must be from 0.01 to 100")));
    }
    let robot = bench.join("topologies/sierra_nevada.toml");
    let topology = arguments.topology.clone().unwrap_or(robot);
    let context = Context { scale, repeat, topology };
    let disk = arguments.disk.clone().unwrap_or_else(|| bench.join("target"));
    std::fs::create_dir_all(&disk)
        .map_err(|e| Error::new(format!("--disk {}: {e}", disk.display())))?;
    let comparison = Comparison { registry: &registry, bench, disk: &disk };
    let wanted = |name: &str| match &arguments.workloads[..] {
        [] => !ONLY_ON_DEMAND.contains(&name),
        some => some.iter().any(|w| w == name),
    };
    let mut raw = Raw {
        format: 1,
        machine: Machine::this(bench, &disk),
        options: Options {
            repeat,
            quick: arguments.quick,
            scale,
            started: now_utc(),
            elapsed_s: 0.0,
            command: std::env::args().collect::<Vec<_>>().join(" "),
        },
        systems: BTreeMap::new(),
        workloads: BTreeMap::new(),
        skipped: Vec::new(),
        runs: Vec::new(),
        study3: None,
    };
    // Written first, so that an unwritable path is reported now and not after half an hour.
    raw.write(&arguments.json)?;
    run::sweep(&disk);
    let mut planned = Vec::new();
    for workload in all.iter().filter(|w| wanted(w.name)) {
        let systems = choose(workload, &registry, &arguments.systems);
        for id in &systems {
            let entry = &registry.entries[id];
            raw.systems.insert(id.clone(), entry.clone());
            match &entry.unavailable {
                None => planned.push(Planned { workload, system: id.clone() }),
                Some(why) => raw.skipped.push(Skipped {
                    workload: workload.name.into(),
                    variant: String::new(),
                    system: id.clone(),
                    why: why.clone(),
                }),
            }
        }
        let (title, about) = (workload.title.into(), workload.about.into());
        raw.workloads.insert(workload.name.into(), raw::Workload { title, about, systems });
    }
    repeat_all(&comparison, &context, &planned, &mut raw, &arguments.json)?;
    if wanted(study3::NAME) {
        eprintln!("compare: study3: building and running criterion's benchmark");
        match study3::run(bench, arguments.quick) {
            Ok(figures) => raw.study3 = Some(figures),
            Err(why) => {
                eprintln!("compare: study3: {why}");
                raw.skipped.push(Skipped {
                    workload: study3::NAME.into(),
                    variant: String::new(),
                    system: String::new(),
                    why: why.to_string(),
                });
            }
        }
    }
    raw.options.elapsed_s = start.elapsed().as_secs_f64();
    raw.write(&arguments.json)?;
    eprintln!("compare: {} runs in {:.0} s", raw.runs.len(), raw.options.elapsed_s);
    Ok(())
}

fn repeat_all(
    comparison: &Comparison,
    context: &Context,
    planned: &[Planned],
    raw: &mut Raw,
    json: &Path,
) -> Result<()> {
    // Each system's own list, without unsupported loads.
    let mut total_s = 0.0;
    let mut repetitions: Vec<Vec<(&Planned, Job)>> = Vec::new();
    for repetition in 0..context.repeat {
        let mut jobs = Vec::new();
        for plan in planned {
            for job in (plan.workload.jobs)(context, repetition)? {
                if let Err(why) = supports(comparison, &plan.system, &job) {
                    if repetition == 0 {
                        raw.skipped.push(Skipped {
                            workload: plan.workload.name.into(),
                            variant: job.variant.clone(),
                            system: plan.system.clone(),
                            why: why.to_string(),
                        });
                    }
                    continue;
                }
                total_s += job.seconds();
                jobs.push((plan, job));
            }
        }
        repetitions.push(jobs);
    }
    let mut progress = Progress::new(total_s);
    for (repetition, mut jobs) in repetitions.into_iter().enumerate() {
        shuffle(&mut jobs, repetition as u64);
        for (plan, job) in jobs {
            let part = format!("{} {}/{}", plan.workload.name, repetition + 1, context.repeat);
            progress.now(&part, &format!("{} {}", job.variant, plan.system));
            let (name, system) = (plan.workload.name, &plan.system);
            let run = run::run(comparison, name, system, repetition, &job);
            if let Some(error) = &run.error {
                progress.say(&format!("compare: {name} {} {system}: {error}", job.variant));
            }
            raw.runs.push(run);
            progress.done(job.seconds());
        }
        // So that an early stop keeps the measurements so far.
        raw.write(json)?;
    }
    Ok(())
}

/// Orders the jobs by workload and variant, and within these the systems again in each repetition, so that
/// none always runs after the same other. The same repetition has the same order in every run.
fn shuffle(jobs: &mut [(&Planned, Job)], repetition: u64) {
    let key = |(plan, job): &(&Planned, Job)| (plan.workload.name, job.variant.clone());
    // A stable sort by first appearance brings the systems of a variant together.
    let mut order: Vec<_> = Vec::new();
    for job in jobs.iter() {
        if !order.contains(&key(job)) {
            order.push(key(job));
        }
    }
    jobs.sort_by_key(|job| order.iter().position(|k| *k == key(job)));
    // A linear congruential generator (Knuth, MMIX) is random enough for an order.
    let mut state = repetition;
    let mut next = move |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    for group in jobs.chunk_by_mut(|a, b| key(a) == key(b)) {
        for last in (1..group.len()).rev() {
            group.swap(last, next(last + 1));
        }
    }
}

fn supports(comparison: &Comparison, system: &str, job: &Job) -> Result<()> {
    if let Some(system) = comparison.registry.system(system) {
        if job.cable.is_some() {
            hosts::can_carry(system, comparison.bench)?;
        }
        return job.topics().into_iter().try_for_each(|topic| system.supports(topic));
    }
    if job.durable && machine::is_memory(comparison.disk) {
        let disk = comparison.disk.display();
        return Err(Error::new(format!("{disk} is memory: name a folder on a disk with --disk")));
    }
    match comparison.registry.store(system) {
        Some(store) => job.calls().try_for_each(|call| store.supports(call, job.durable)),
        None => Ok(()),
    }
}

/// The systems of a workload: those it names, or of the ones asked for those of its kinds.
fn choose(workload: &Workload, registry: &Registry, asked: &[String]) -> Vec<String> {
    let named = workload.systems.ids(registry);
    if asked.is_empty() {
        return named;
    }
    let fits = match workload.systems {
        Choice::All | Choice::These(_) => registry.like(&named),
        Choice::Compiled => named.into_iter().chain(Choice::Python.ids(registry)).collect(),
        _ => named,
    };
    fits.into_iter().filter(|id| asked.contains(id)).collect()
}

fn known(what: &str, asked: &[String], names: &[impl AsRef<str>]) -> Result<()> {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match asked.iter().find(|a| !names.contains(&a.as_str())) {
        None => Ok(()),
        Some(name) => {
            Err(Error::new(format!("there is no {what} {name:?}; there are: {}", names.join(", "))))
        }
    }
}

fn now_utc() -> String {
    let output = std::process::Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]).output();
    output.map_or_else(|_| String::new(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
}

//! Kills at random moments, several victims at a time.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::LONG;
use crate::rng::Rng;
use crate::world::{Process, World};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Victims that live at a time.
const AT_A_TIME: usize = 3;
/// Kills between two checks of the promises.
const BATCH: usize = 24;
/// The longest life of a victim, for most of them counted from its first send.
const LIFE_US: u64 = 60_000;
/// For one in this many, the life is counted from its start: it dies while it joins, or soon after.
const EARLY: u64 = 4;

/// Kills for `limit`, in batches, at times that `seed` determines. `each` is called after each batch, with
/// its number.
pub fn run(
    world: &mut World,
    seed: u64,
    limit: Duration,
    each: &mut dyn FnMut(&World, u64),
) -> Outcome {
    let until = Instant::now() + limit;
    let mut rng = Rng::new(seed);
    let mut batch = 0;
    loop {
        kill_some(world, seed, batch, &mut rng)?;
        batch += 1;
        each(world, batch);
        if Instant::now() >= until {
            return Ok(());
        }
    }
}

fn kill_some(world: &mut World, seed: u64, batch: u64, rng: &mut Rng) -> Outcome {
    let context = format!("seed {seed} batch {batch}");
    let mut names = Vec::new();
    let mut alive: Vec<Victim> = Vec::new();
    while names.len() < BATCH || !alive.is_empty() {
        while alive.len() < AT_A_TIME && names.len() < BATCH {
            let name = format!("b{batch}n{}", names.len());
            let life = Duration::from_micros(rng.below(LIFE_US));
            let now = Instant::now();
            let until = (rng.below(EARLY) == 0).then(|| now + life);
            let process = world.spawn("victim", &name, &["tells"], None)?;
            alive.push(Victim { process, life, until, since: now });
            names.push(name);
        }
        hear(world, &mut alive, &context)?;
        let now = Instant::now();
        while let Some(at) = alive.iter().position(|v| v.until.is_some_and(|until| until <= now)) {
            let mut process = alive.swap_remove(at).process;
            let early = process.child.try_wait()?;
            process.child.kill()?;
            let status = process.child.wait()?;
            if !world.killed(early.unwrap_or(status)) {
                world.violation(format!("{context}: {} exited by itself: {status}", process.name));
            }
        }
    }
    world.settle(&names, Instant::now(), &context)
}

struct Victim {
    process: Process,
    life: Duration,
    /// When it is killed; `None` until it is about to send.
    until: Option<Instant>,
    since: Instant,
}

/// Waits until a victim is about to send, or until the next one is due to be killed.
fn hear(world: &mut World, alive: &mut [Victim], context: &str) -> Outcome {
    let next = alive.iter().map(|v| v.until.unwrap_or(v.since + LONG)).min();
    let Some(next) = next else { return Ok(()) };
    let limit = Timespec::try_from(next.saturating_duration_since(Instant::now()))?;
    let joining = || alive.iter().filter(|v| v.until.is_none());
    let outs = joining().filter_map(|v| v.process.child.stdout.as_ref());
    let mut outs: Vec<PollFd<'_>> = outs.map(|out| PollFd::new(out, PollFlags::IN)).collect();
    match poll(&mut outs, Some(&limit)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let said: Vec<bool> = outs.iter().map(|out| !out.revents().is_empty()).collect();
    let now = Instant::now();
    for (victim, said) in alive.iter_mut().filter(|v| v.until.is_none()).zip(said) {
        if said {
            // If it has exited instead, that is detected when it is due to be killed.
            world.joined += u64::from(victim.process.ready().is_ok());
            victim.until = Some(now + victim.life);
        } else if now >= victim.since + LONG {
            let name = &victim.process.name;
            world.violation(format!("{context}: {name} has not joined in {LONG:?}"));
            victim.until = Some(now);
        }
    }
    Ok(())
}

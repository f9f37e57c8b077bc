//! Kills at random moments, several victims at a time.

use std::time::{Duration, Instant};

use crate::dice::Dice;
use crate::world::{Process, World};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Victims that live at a time.
const AT_A_TIME: usize = 3;
/// Kills between two looks at what must hold.
const BATCH: usize = 24;
/// A victim lives for at most this long.
const LIFE_US: u64 = 60_000;

/// Kills for `limit`, in batches; `seed` says when. `each` is called after each batch, with its number.
pub fn run(
    world: &mut World,
    seed: u64,
    limit: Duration,
    each: &mut dyn FnMut(&World, u64),
) -> Outcome {
    let until = Instant::now() + limit;
    let mut dice = Dice::new(seed);
    let mut batch = 0;
    loop {
        kill_some(world, seed, batch, &mut dice)?;
        batch += 1;
        each(world, batch);
        if Instant::now() >= until {
            return Ok(());
        }
    }
}

fn kill_some(world: &mut World, seed: u64, batch: u64, dice: &mut Dice) -> Outcome {
    let context = format!("seed {seed} batch {batch}");
    let mut names = Vec::new();
    let mut alive: Vec<(Process, Instant)> = Vec::new();
    while names.len() < BATCH || !alive.is_empty() {
        while alive.len() < AT_A_TIME && names.len() < BATCH {
            let name = format!("b{batch}n{}", names.len());
            let until = Instant::now() + Duration::from_micros(dice.below(LIFE_US));
            alive.push((world.spawn("victim", &name, &[], None)?, until));
            names.push(name);
        }
        let next = alive.iter().enumerate().min_by_key(|(_, (_, until))| *until).map(|(at, _)| at);
        let Some(next) = next else { break };
        let (mut victim, until) = alive.swap_remove(next);
        std::thread::sleep(until.saturating_duration_since(Instant::now())); // sleep: until its random end
        let early = victim.child.try_wait()?;
        victim.child.kill()?;
        let status = victim.child.wait()?;
        if let Some(status) = early {
            world.violation(format!("{context}: {} ended by itself: {status}", victim.name));
        } else {
            world.killed(status);
        }
    }
    world.settle(&names, Instant::now(), &context)
}

//! Kills for as long as one likes; the last line says how many and what came of it.

use std::time::{Duration, SystemTime};

use rnet_survival::random;
use rnet_survival::world::{GONE_AFTER, World};

/// Runs for `SOAK_SECONDS` (600), with `SOAK_SEED` (the time); `Ok(false)` if a promise was broken or
/// nothing was killed.
pub fn run() -> Result<bool, Box<dyn std::error::Error>> {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let seconds = number("SOAK_SECONDS").unwrap_or(600);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let seed = number("SOAK_SEED").unwrap_or(now.as_nanos() as u64);
    println!("soak: {seconds} s, SOAK_SEED={seed}");
    let mut world = World::start(&std::env::current_exe()?)?;
    world.gone_within = GONE_AFTER;
    // Its first batches bring the survivors to the size that they then have to keep.
    random::run(&mut world, seed, Duration::ZERO, false)?;
    world.measure()?;
    let done = random::run(&mut world, seed, Duration::from_secs(seconds), true);
    if let Err(error) = &done {
        world.violation(format!("the soak broke off: {error}"));
    }
    let mut cleaned = std::mem::take(&mut world.cleaned);
    cleaned.sort_unstable();
    let at = |q: f64| cleaned.get(((cleaned.len() as f64 - 1.0) * q) as usize).copied();
    println!(
        "gone after the last kill of a batch: p50 {:?} p90 {:?} max {:?}",
        at(0.5),
        at(0.9),
        at(1.0)
    );
    let (kills, violations) = (world.kills, world.violations());
    drop(world);
    println!("kills={kills} violations={violations}");
    Ok(violations == 0 && kills > 0)
}

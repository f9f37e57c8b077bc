//! Kills at random moments for SURVIVAL_SECONDS, or 8: part of `make test-slow`. `make soak` does so for a
//! configured time.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rnet_survival::random;
use rnet_survival::world::World;

#[test]
#[ignore = "kills at random; run by `make test-slow`"]
fn nodes_killed_at_random_harm_no_other() -> Result<(), Box<dyn std::error::Error>> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let seed = now.as_nanos() as u64;
    let seconds = std::env::var("SURVIVAL_SECONDS").map_or(Ok(8), |given| given.parse())?;
    let mut world = World::start(Path::new(env!("CARGO_BIN_EXE_survival")))?;
    random::run(&mut world, seed, Duration::ZERO, &mut |_, _| {})?;
    world.measure()?;
    random::run(&mut world, seed, Duration::from_secs(seconds), &mut |_, _| {})?;
    println!("{}", world.cleanup_times());
    assert!(world.kills > 0, "no process was killed");
    let (kills, joined, lines, rows) = (world.kills, world.joined, world.lines, world.rows);
    println!("kills={kills} joined={joined} lines={lines} rows={rows}");
    assert!(joined > 0, "no victim lived until it could send");
    assert!(rows > 0, "no message was accounted for in {lines} lines");
    assert_eq!(world.violations(), 0, "seed {seed}; see the lines VIOLATION above");
    Ok(())
}

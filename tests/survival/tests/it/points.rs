//! Kills a node at every fail point in the sources. A point that does not fire fails the run.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rnet_survival::LONG;
use rnet_survival::points;
use rnet_survival::world::{DEAD_NODE, World};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_survival"))
}

/// One world at a time: each counts the resources of its survivors, including this process.
static ONE_WORLD: Mutex<()> = Mutex::new(());

/// How long a surviving victim has to notice a death before the next one.
const ONE_DEATH: Duration = Duration::from_secs(3);

/// The position of a point decides which nodes must be present for a node to pass it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scene {
    /// The domain does not exist yet.
    Nothing,
    /// Only a dead node is present.
    Corpse,
    /// The same, and the victim takes its name.
    Namesake,
    /// Only a stopped node is present, which should write to disk.
    Stopped,
    /// A peer dies that holds a sample beyond its subscription.
    Partner,
    /// The survivors are present.
    Survivors,
}

fn scene(point: &str) -> Scene {
    if point == "temp_file.renamed" {
        return Scene::Nothing;
    }
    // If other nodes are present, a region with free space and a persister exist already.
    let first = ["state.sized", "state.backed", "state.made", "state.slab", "state.writing"];
    if first.contains(&point) {
        return Scene::Nothing;
    }
    if ["durable.copied", "durable.placed"].contains(&point) {
        return Scene::Stopped;
    }
    let sweeps = ["state.sweep", "state.swept", "state.will", "state.unowned"];
    if sweeps.iter().any(|start| point.starts_with(start)) {
        return Scene::Corpse;
    }
    match point.split('.').next() {
        Some("domain") => Scene::Nothing,
        Some("sweep") => Scene::Corpse,
        Some("name_reuse") => Scene::Namesake,
        Some("remove_dead") => Scene::Partner,
        _ => Scene::Survivors,
    }
}

/// The point of an earlier death that the cleanup needs to pass a point.
fn death(point: &str) -> Option<&'static str> {
    match point {
        "state.sweep_lease" => Some("state.lease_taken"),
        "state.sweep_slab" => Some("state.slab_claimed"),
        _ => None,
    }
}

/// Points that no node of this test passes: those that need a full region, and those that need a removed
/// directory (`crates/rnet-node/tests/it/removed_directory.rs`).
const ELSEWHERE: [&str; 5] =
    ["state.emptying", "recovery.directory", "recovery.name", "recovery.folder", "recovery.file"];

/// Runs a victim until the point kills it; `false` if it finished without passing the point.
fn die(world: &mut World, point: &str, name: &str, flags: &[&str]) -> Outcome<bool> {
    let mut victim = world.spawn("victim", name, flags, Some(point))?;
    let until = Instant::now() + LONG;
    // Repeatedly: a victim that learns of the death before it has seen the subscription end takes another
    // path.
    for partner in 0.. {
        if scene(point) != Scene::Partner || Instant::now() > until {
            break;
        }
        let mut partner = world.spawn("partner", &format!("p{partner}.{name}"), &[], None)?;
        let ready = partner.ready();
        if ready.is_err() && victim.ended(ONE_DEATH)?.is_some() {
            break;
        }
        ready?;
        partner.child.kill()?;
        let status = partner.child.wait()?;
        world.killed(status);
        if victim.ended(ONE_DEATH)?.is_some() {
            break;
        }
    }
    match victim.ended(LONG)? {
        Some(status) => {
            let fired = world.killed(status);
            if !fired && !status.success() {
                world.violation(format!("{point}: the victim failed: {status}"));
            }
            Ok(fired)
        }
        None => {
            world.violation(format!("{point}: the victim hangs"));
            Ok(false)
        }
    }
}

fn kill_alone(point: &str) -> Outcome<(bool, usize)> {
    let mut world = World::empty(binary())?;
    let stopped = match scene(point) {
        Scene::Nothing => None,
        Scene::Stopped => Some(world.stop_a_persister()?),
        _ => {
            world.leave_dead_node(death(point))?;
            None
        }
    };
    let name = if scene(point) == Scene::Namesake { DEAD_NODE } else { "v" };
    let fired = die(&mut world, point, name, &["lonely", "once", "durable"])?;
    drop(stopped);
    world.check_usable(point)?;
    Ok((fired, world.violations()))
}

fn kill_among_survivors(world: &mut World, point: &str, name: &str) -> Outcome<bool> {
    // Most are on the path of every node, some only on that of a node that meets a stopped reader.
    let ways: &[&[&str]] = match scene(point) {
        // The publisher must still be present when its reader dies, however slow the machine is.
        Scene::Partner => &[&["endless"]],
        _ => &[&["once"], &["once", "stubborn"], &["once", "durable"]],
    };
    for (way, flags) in ways.iter().enumerate() {
        let name = format!("{name}w{way}");
        let fired = die(world, point, &name, flags)?;
        world.settle(&[name], Instant::now(), point)?;
        if fired {
            return Ok(true);
        }
    }
    Ok(false)
}

#[test]
fn every_fail_point_kills_one_node_and_harms_no_other() -> Outcome {
    let _alone = ONE_WORLD.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all = points::all();
    all.retain(|point| {
        let other = points::is_of_calls(point) || points::is_of_launch(point);
        !ELSEWHERE.contains(&point.as_str()) && !other
    });
    assert!(all.len() > 100, "only {} fail points are named in the sources", all.len());
    // Later passes find another state of the log and the pool.
    let again = all.iter().filter(|p| p.starts_with("push.") || p.starts_with("pool."));
    let runs: Vec<String> =
        all.iter().cloned().chain(again.map(|point| format!("{point}@3"))).collect();
    let mut fired = BTreeSet::new();
    let mut violations = 0;
    let mut world = World::start(binary())?;
    world.settle(&[], Instant::now(), "before")?;
    for (at, point) in runs.iter().enumerate() {
        let began = Instant::now();
        let hit = match scene(point) {
            Scene::Nothing | Scene::Corpse | Scene::Namesake | Scene::Stopped => {
                let (hit, wrong) = kill_alone(point)?;
                violations += wrong;
                hit
            }
            Scene::Survivors | Scene::Partner => {
                kill_among_survivors(&mut world, point, &format!("n{at}"))?
            }
        };
        if hit {
            fired.insert(point.clone());
        }
        println!("{point}: {} ms", began.elapsed().as_millis());
        if at == 0 {
            world.measure()?;
        }
    }
    println!("{}", world.cleanup_times());
    violations += world.violations();
    let silent: Vec<&String> = runs.iter().filter(|point| !fired.contains(*point)).collect();
    assert_eq!(silent, Vec::<&String>::new(), "these did not fire");
    assert_eq!(violations, 0, "see the lines VIOLATION above");
    assert!(world.kills > 0, "no process was killed");
    Ok(())
}

/// A writer that is stopped between any two of its stores blocks no other node, and continues.
#[test]
fn writer_stopped_in_the_middle_of_a_message_blocks_no_other() -> Outcome {
    let _alone = ONE_WORLD.lock().unwrap_or_else(PoisonError::into_inner);
    let mut world = World::start(binary())?;
    let mut stopped = 0;
    for point in points::all().iter().filter(|p| p.starts_with("push.") || p.starts_with("notify."))
    {
        let name = format!("s.{point}");
        let flags = ["once", "deaf"];
        let mut victim = world.spawn("victim", &name, &flags, Some(&format!("{point}@2=stop")))?;
        if !victim.stopped(LONG)? {
            world.violation(format!("{point}: never stopped"));
            continue;
        }
        stopped += 1;
        world.check_progress(point)?;
        victim.resume()?;
        match victim.ended(LONG)? {
            Some(status) if status.success() => {}
            status => world.violation(format!("{point}: after it was stopped: {status:?}")),
        }
        world.settle(&[name], Instant::now(), point)?;
    }
    assert!(stopped > 0, "no process was stopped");
    assert_eq!(world.violations(), 0, "see the lines VIOLATION above");
    Ok(())
}

#[test]
fn sources_have_fail_points_on_each_path() {
    let all = points::all();
    for path in [
        "push", "take", "bind", "admit", "name", "node", "leave", "pool", "sweep", "domain",
        "state",
    ] {
        assert!(all.iter().any(|p| p.starts_with(path)), "none on the path {path}");
    }
}

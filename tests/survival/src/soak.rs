//! Kills for a configured time; the last line has the number of kills and violations, whatever the result.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rnet_survival::random;
use rnet_survival::world::{CLEANUP_LIMIT, World};

/// A soak of this length or longer must reach this number of kills.
const FULL_SOAK: (u64, u64) = (600, 10_000);
/// A batch takes about a second; one that takes this long hangs.
const BATCH_TIMEOUT: Duration = Duration::from_secs(60);

/// The progress of a soak.
#[derive(Clone, Debug, Default)]
struct SoakProgress {
    dir: PathBuf,
    kills: u64,
    violations: usize,
    /// Also contains later violations.
    notes: Arc<Mutex<Vec<String>>>,
}

impl SoakProgress {
    fn of(world: &World) -> SoakProgress {
        SoakProgress {
            dir: world.dir().to_owned(),
            kills: world.kills,
            violations: world.violations(),
            notes: world.notes(),
        }
    }

    fn noted(&self) -> usize {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn print(&self) {
        println!("kills={} violations={}", self.kills, self.violations);
    }
}

/// Runs for `SOAK_SECONDS` (600), with `SOAK_SEED` (the time). Fails if a promise was broken, if it hangs
/// or stops early, and if there were too few kills.
pub fn run() -> ExitCode {
    let (beat, beats) = channel();
    let watch = std::thread::spawn(move || watch(&beats));
    let outcome = catch_unwind(AssertUnwindSafe(|| soak(&beat)));
    let last = match outcome {
        Ok(Ok(progress)) => Ok(progress),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("a panic, see above".to_owned()),
    };
    drop(beat);
    // Ends now, with the last progress report.
    let reported = watch.join().unwrap_or_default();
    let progress = last.unwrap_or_else(|error| {
        println!("VIOLATION the soak broke off: {error}");
        SoakProgress { violations: reported.noted() + 1, ..reported }
    });
    progress.print();
    ExitCode::from(u8::from(progress.violations > 0))
}

/// Ends the process if no batch ends for too long.
fn watch(beats: &Receiver<SoakProgress>) -> SoakProgress {
    let mut progress = SoakProgress::default();
    loop {
        match beats.recv_timeout(BATCH_TIMEOUT) {
            Ok(next) => progress = next,
            Err(RecvTimeoutError::Disconnected) => return progress,
            Err(RecvTimeoutError::Timeout) => {
                println!("VIOLATION no batch has ended for {BATCH_TIMEOUT:?}");
                progress.violations = 1 + progress.noted();
                // The others die with this process, and no other process cleans up after them.
                let _ = std::fs::remove_dir_all(&progress.dir);
                progress.print();
                std::process::exit(1);
            }
        }
    }
}

fn soak(beat: &Sender<SoakProgress>) -> Result<SoakProgress, Box<dyn std::error::Error>> {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let seconds = number("SOAK_SECONDS").unwrap_or(FULL_SOAK.0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let seed = number("SOAK_SEED").unwrap_or(now.as_nanos() as u64);
    println!("soak: {seconds} s, SOAK_SEED={seed}");
    let mut world = World::start(&std::env::current_exe()?)?;
    world.cleanup_limit = CLEANUP_LIMIT;
    let mut each = |world: &World, batch: u64| {
        let progress = SoakProgress::of(world);
        if batch.is_multiple_of(20) {
            println!("batch {batch}: kills={} violations={}", progress.kills, progress.violations);
        }
        // The receiver is gone only if the watch has panicked.
        let _ = beat.send(progress);
    };
    each(&world, 1);
    // Its first batches bring the survivors to the size that they then have to keep.
    random::run(&mut world, seed, Duration::ZERO, &mut each)?;
    world.measure()?;
    random::run(&mut world, seed, Duration::from_secs(seconds), &mut each)?;
    let mut cleaned = std::mem::take(&mut world.cleaned);
    cleaned.sort_unstable();
    let at = |q: f64| cleaned.get(((cleaned.len() as f64 - 1.0) * q) as usize).copied();
    println!(
        "gone after the last kill of a batch: p50 {:?} p90 {:?} max {:?}",
        at(0.5),
        at(0.9),
        at(1.0)
    );
    println!(
        "joined={} lines={} with a row of their own={}",
        world.joined, world.lines, world.rows
    );
    if world.rows == 0 {
        world.violation(format!("none of {} victims' lines was found at a reader", world.lines));
    }
    if world.joined == 0 {
        world.violation("none of the victims lived until it could send".to_owned());
    }
    let least = if seconds >= FULL_SOAK.0 { FULL_SOAK.1 } else { 1 };
    if world.kills < least {
        let kills = world.kills;
        world.violation(format!("{kills} were killed, {least} have to be in {seconds} s"));
    }
    let _ = beat.send(SoakProgress::of(&world));
    let kills = world.kills;
    // Its readers check the samples that they hold a last time.
    let violations = world.end();
    Ok(SoakProgress { kills, violations, ..SoakProgress::default() })
}

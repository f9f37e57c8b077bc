//! Runs rounds for a configured time; the last line has their number and their results.

use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use rnet_state_tests::points;
use rnet_state_tests::round::{self, Plan};
use rnet_survival::rng::Rng;

/// In seconds, unless `STATE_SOAK_SECONDS` is set.
const SECONDS: u64 = 120;

/// Runs for `STATE_SOAK_SECONDS` (120), with `SOAK_SEED` (the time). Fails if a history cannot be
/// explained. The last lines name the file with that history.
pub fn run() -> ExitCode {
    match soak() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            println!("VIOLATION the soak broke off: {error}");
            ExitCode::FAILURE
        }
    }
}

fn soak() -> Result<usize, Box<dyn std::error::Error + Send + Sync>> {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let seconds = number("STATE_SOAK_SECONDS").unwrap_or(SECONDS);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let seed = number("SOAK_SEED").unwrap_or(now.as_nanos() as u64);
    println!("soak of the state: {seconds} s, SOAK_SEED={seed}");
    let points = if cfg!(debug_assertions) { points::of_state() } else { Vec::new() };
    let binary = std::env::current_exe()?;
    let mut rng = Rng::new(seed);
    let until = Instant::now() + Duration::from_secs(seconds);
    let (mut rounds, mut operations, mut kills, mut violations) = (0, 0, 0, 0);
    while Instant::now() < until && violations == 0 {
        let seed = rng.below(u64::MAX);
        let life = Duration::from_millis(5 + rng.below(60));
        let plan = Plan { seed, lives: 12, life, operations: 3000, points: points.clone() };
        let (report, history) = round::run(&binary, &plan)?;
        for wrong in &report.wrong {
            println!("VIOLATION seed {seed}: {wrong}");
        }
        if !report.wrong.is_empty() {
            let path = std::env::temp_dir().join(format!("rnet-state-history-{seed}.json"));
            std::fs::write(&path, serde_json::to_vec_pretty(&history)?)?;
            println!("the history is in {}", path.display());
        }
        rounds += 1;
        operations += report.operations;
        kills += report.killed;
        violations += report.wrong.len();
        println!("round {rounds}: operations={operations} kills={kills} violations={violations}");
    }
    Ok(violations)
}

//! The processes of a round.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::log::Log;
use crate::round::node;
use crate::workload::Workload;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Runs the role in the arguments; its process ends with the judge's.
///
/// # Errors
/// A reply that the state must not give; the log contains it as well.
pub fn run(args: &[String]) -> Outcome {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let [role, dir, name, log, process, seed, operations] = args else {
        return Err("usage: ROLE DIR NAME LOG NUMBER SEED COUNT".into());
    };
    if role != "mix" {
        return Err(format!("unknown role: {role}").into());
    }
    let log = Log::create(Path::new(log))?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let listener = std::thread::spawn(move || {
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        stopped.store(true, Ordering::Relaxed);
    });
    let node = node(Path::new(dir), name)?;
    let state = node.state()?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "ready")?;
    out.flush()?;
    let mut workload = Workload::new(&state, log, process.parse()?, seed.parse()?);
    workload.leave()?;
    for _ in 0..operations.parse()? {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        workload.step()?;
    }
    let _ = listener.join();
    Ok(())
}

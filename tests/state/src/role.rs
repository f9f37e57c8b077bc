//! The processes of a round.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::log::Log;
use crate::round::node;
use crate::workload::Workload;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Runs the role that the arguments name; its process ends with the judge's.
///
/// # Errors
/// Whatever the state must not answer; it stands in the log as well.
pub fn run(args: &[String]) -> Outcome {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let [role, dir, name, log, process, seed, operations] = args else {
        return Err("a role needs a directory, a name, a log, a number, a seed, a count".into());
    };
    if role != "mix" {
        return Err(format!("there is no role {role}").into());
    }
    let log = Log::create(Path::new(log))?;
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    let listener = std::thread::spawn(move || {
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        told.store(true, Ordering::Relaxed);
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

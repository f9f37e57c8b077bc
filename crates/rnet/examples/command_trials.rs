//! How long after its deadline a receiver of commands falls back, when its driver is killed or stopped: trials, with
//! a driver process of its own for each. `cargo run --release --example command_trials -- 1000`

use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rnet::msgs::Twist;
use rnet::{FallbackReason, Node};

const DEADLINE: Duration = Duration::from_millis(50);
const PERIOD: Duration = Duration::from_millis(5);
const DIR: &str = "RNET_TRIALS_DIR";

fn node(dir: &std::path::Path, name: &str) -> rnet::Result<Node> {
    Node::builder(name).dir(dir).domain("trials").open()
}

/// Drives until it is killed.
fn drive(dir: &std::path::Path) -> rnet::Result<()> {
    let name = format!("driver_{}", std::process::id());
    let mut driver = node(dir, &name)?.drive::<Twist>("/cmd_vel").take(None)?;
    loop {
        driver.send(&Twist::default())?;
        std::thread::sleep(PERIOD); // sleep: the period of the commands
    }
}

enum Said {
    Applied(Instant),
    Fallback(FallbackReason, Instant),
}

fn main() -> rnet::Result<()> {
    if let Some(dir) = std::env::var_os(DIR) {
        return drive(dir.as_ref());
    }
    let trials = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(100);
    let dir = std::path::PathBuf::from(format!("/dev/shm/command-trials-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("the directory can be made");
    let (tell, told) = mpsc::channel();
    let said = tell.clone();
    let base = node(&dir, "base")?;
    let command = base
        .command::<Twist>("/cmd_vel")
        .deadline(DEADLINE)
        .fallback_handler(move |why| said.send(Said::Fallback(why, Instant::now())).expect("heard"))
        .apply(move |_| tell.send(Said::Applied(Instant::now())).expect("heard"))?;
    let program = std::env::current_exe().expect("this program has a path");
    let (mut late_us, mut gone) = (Vec::with_capacity(trials), 0);
    for trial in 0..trials {
        let mut child = Command::new(&program)
            .env(DIR, &dir)
            .stdout(Stdio::null())
            .spawn()
            .expect("a driver can be started");
        // A while after the first command, whenever that comes.
        let mut applied = 0;
        while applied < 3 + trial % 5 {
            applied += usize::from(matches!(told.recv(), Ok(Said::Applied(_))));
        }
        let (killed, pid) = (trial % 2 == 0, child.id() as i32);
        // SAFETY: it is a child of this process, which has not been waited for.
        unsafe { libc::kill(pid, if killed { libc::SIGKILL } else { libc::SIGSTOP }) };
        let mut last = Instant::now();
        let (why, at) = loop {
            match told.recv().expect("the receiver is there") {
                Said::Applied(at) => last = at,
                Said::Fallback(why, at) => break (why, at),
            }
        };
        match why {
            FallbackReason::Deadline => {
                let late = at.saturating_duration_since(last + DEADLINE);
                late_us.push(late.as_nanos() as f64 / 1e3);
            }
            // The end of a killed driver is known at once, and its authority with it.
            _ => gone += 1,
        }
        let _ = child.kill();
        child.wait().expect("it is a child");
        while !command.status().holder.is_empty() {
            std::thread::sleep(Duration::from_millis(1)); // sleep: until its end is known
        }
        while told.try_recv().is_ok() {}
    }
    late_us.sort_unstable_by(f64::total_cmp);
    let last = late_us.len().saturating_sub(1);
    let at = |q: f64| late_us.get((last as f64 * q).ceil() as usize).unwrap_or(&0.0);
    println!(
        "{trials} trials: {gone} fell back at once, as the driver was known to be gone; {} by the deadline of 50 ms, \
         µs after it: median {:.0}, p99 {:.0}, max {:.0}",
        late_us.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    drop(command);
    drop(base);
    let _ = std::fs::remove_dir_all(dir);
    Ok(())
}

//! Load cells in the feet: 10,000 samples per second, one message each.
//!
//! The simulation provides the forces once per millisecond. Between them, the cells follow with a time
//! constant, like a cell with its amplifier, and add noise.
#![forbid(unsafe_code)]

use std::num::NonZeroU64;
use std::process::ExitCode;
use std::time::Duration;

use rnet::{Error, Node, Publisher, Subscriber};
use rnet_demo::messages::{FORCE_PERIOD_NS, FootForces, RobotState};
use rnet_demo::process::{self, Process};
use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::Timespec;

/// A node that was delayed for longer skips the missed samples: a sensor does not measure the past. After a
/// shorter delay, it sends them at once.
const MAX_BEHIND_NS: u64 = 5_000_000;
const TIME_CONSTANT_NS: f64 = 500_000.0;
const NOISE_N: f32 = 0.5;

fn main() -> ExitCode {
    process::run(force)
}

fn force(process: &Process) -> rnet::Result<()> {
    let node = Node::new("force")?;
    let mut publisher = node.publisher::<FootForces>("/robot/force").open()?;
    let mut state = node.subscriber::<RobotState>("/robot/state").open()?;
    state.wait_for_publishers_timeout(1, Duration::from_secs(10))?;
    process.joined();
    // The kernel may delay a wakeup by 50 us to save energy, which is half of the period.
    if let Err(error) = set_current_timer_slack(NonZeroU64::new(1)) {
        eprintln!("timer slack is unchanged: {error}");
    }
    let broken = std::env::var("DEMO_BREAK").is_ok_and(|node| node == "force");
    let (sent, left_out) = stream(process, &mut publisher, &mut state, broken)?;
    if left_out > 0 {
        eprintln!("{left_out} samples were skipped: the machine was too busy");
    }
    process::report_quiet(&[("/robot/force", sent)]);
    process.wait_for_stop();
    Ok(())
}

/// Samples and sends until the demo is over; returns the numbers of sent and skipped samples.
fn stream(
    process: &Process,
    publisher: &mut Publisher<FootForces>,
    state: &mut Subscriber<RobotState>,
    broken: bool,
) -> rnet::Result<(u64, u64)> {
    let mut cells = Cells::default();
    let mut target = [0.0f32; 4];
    let (mut count, mut left_out) = (0, 0);
    let mut due = rnet::now_ns();
    while !process.is_quiet() && !process.is_stopped() {
        due += FORCE_PERIOD_NS;
        let now = rnet::now_ns();
        if now > due + MAX_BEHIND_NS {
            let missed = (now - due) / FORCE_PERIOD_NS;
            left_out += missed;
            due += missed * FORCE_PERIOD_NS;
        }
        sleep_until(due);
        match state.latest_timeout(Duration::ZERO) {
            Ok(sample) => target = sample.contact_forces.map(|force| force as f32),
            Err(Error::Timeout { .. } | Error::PeerLost { .. }) => {}
            Err(error) => return Err(error),
        }
        let sampled_ns = rnet::now_ns();
        let message = FootForces { count, sampled_ns, force: cells.sample(&target) };
        count += 1;
        // DEMO_BREAK=force: loses a message without counting it, to test that it is detected.
        if !(broken && count == 1000) {
            publisher.send(&message)?;
        }
    }
    Ok((count, left_out))
}

fn sleep_until(due_ns: u64) {
    let due = Timespec {
        tv_sec: (due_ns / 1_000_000_000) as i64,
        tv_nsec: (due_ns % 1_000_000_000) as _,
    };
    // Interrupted by a signal, or overdue: the sample is taken now.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &due);
}

/// Four load cells.
struct Cells {
    force: [f32; 4],
    random: u64,
}

impl Default for Cells {
    fn default() -> Cells {
        Cells { force: [0.0; 4], random: 0x9e37_79b9_7f4a_7c15 }
    }
}

impl Cells {
    /// The next sample, one period after the last one.
    fn sample(&mut self, target: &[f32; 4]) -> [f32; 4] {
        let mix = 1.0 - (-(FORCE_PERIOD_NS as f64) / TIME_CONSTANT_NS).exp() as f32;
        let mut sample = [0.0; 4];
        for (leg, sample) in sample.iter_mut().enumerate() {
            self.force[leg] += mix * (target[leg] - self.force[leg]);
            *sample = self.force[leg] + NOISE_N * self.noise();
        }
        sample
    }

    /// Uniformly distributed in -1 to 1; xorshift64 (Marsaglia, "Xorshift RNGs", 2003).
    fn noise(&mut self) -> f32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

//! The safety monitor: raises an urgent stop when the controller is silent, a foot strikes too hard, the body
//! tips, or a stop is ordered. It releases the stop when the problem is over.
//!
//! The stop is authority: the torques are a command, and a driver with a higher priority than the controller
//! that sends nothing makes the motors hold. A silent controller is only reported: the command's deadline
//! already makes the motors hold.
//!
//! It waits for all its inputs at once ([`rnet::WaitSet`]).
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use rnet::{Driver, Error, Message, Node, OnFull, Publisher, Sample, Subscriber, WaitSet};
use rnet_demo::messages::{
    FootForces, JointTorques, RobotState, STOP_CONTROLLER_SILENT, STOP_FORCE, STOP_ORDERED,
    STOP_TILT, StopEvent,
};
use rnet_demo::process::{self, Command, Process};

/// Longer than a busy machine delays the loop, and soon enough: the actuators hold by themselves after 20 ms.
const SILENCE_NS: i64 = 60_000_000;
/// The stop is released after this time without a problem.
const CLEAR_NS: u64 = 300_000_000;
/// Five times the weight of the robot, on one foot; walking and standing up stay below half of it.
const MAX_FORCE_N: f32 = 900.0;
/// Cosine of the tilt from which the robot inevitably falls.
const MIN_UPRIGHT: f64 = 0.90;
/// The controller's priority is 10.
const PRIORITY: i32 = 100;
const LEASE: Duration = Duration::from_millis(500);
/// Timeout for the motors: shorter than the permitted delay of the checks.
const TAKE: Duration = Duration::from_millis(500);
/// Maximum interval between two checks for commands from `run.py`.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    process::run(safety)
}

fn safety(process: &Process) -> rnet::Result<()> {
    let node = Node::new("safety")?;
    // A stop must arrive, and must not wait for a reader that hangs.
    let reliable = OnFull::Detach { stall: Duration::from_millis(100) };
    let mut stop = node
        .publisher::<StopEvent>("/safety/stop")
        .urgent()
        .reliable(reliable)
        .transient_local(1)
        .open()?;
    let mut state = node.subscriber::<RobotState>("/robot/state").open()?;
    let mut torque = node.subscriber::<JointTorques>("/robot/torque").open()?;
    let mut force = node.subscriber::<FootForces>("/robot/force").open()?;
    state.wait_for_publishers_timeout(1, Duration::from_secs(10))?;
    process.joined();

    let mut set = WaitSet::new(&node);
    let mut monitor = Monitor::default();
    let mut halt = StopDriver { node: &node, driver: None, renewed: Instant::now() };
    let mut sent = 0;
    while !process.is_quiet() && !process.is_stopped() {
        match process.next(Duration::ZERO) {
            Some(Command::Other(word)) if word == "stop" => monitor.ordered = true,
            Some(Command::Other(word)) if word == "go" => monitor.ordered = false,
            _ => {}
        }
        set.wait_timeout(&mut [&mut state, &mut torque, &mut force], POLL_INTERVAL)?;
        drain(&mut torque, |m| monitor.torque_ns = Some(m.time_ns))?;
        drain(&mut force, |m| monitor.handle_force(&m.force))?;
        drain(&mut state, |m| monitor.handle_state(&m))?;
        let news = monitor.decide(rnet::now_ns());
        // Makes the robot safe first, then reports it.
        halt.keep(monitor.halts());
        if let Some((active, reason)) = news {
            send(&mut stop, &mut sent, active, reason)?;
        }
    }
    halt.keep(false);
    process::report_quiet(&[("/safety/stop", sent)]);
    // Continues to receive, so that the arrival of the last messages can be verified.
    while !process.is_stopped() {
        set.wait_timeout(&mut [&mut state, &mut torque, &mut force], POLL_INTERVAL)?;
        drain(&mut torque, |_| ())?;
        drain(&mut force, |_| ())?;
        drain(&mut state, |_| ())?;
    }
    Ok(())
}

fn send(
    stop: &mut Publisher<StopEvent>,
    sent: &mut u64,
    active: bool,
    reason: u32,
) -> rnet::Result<()> {
    let raised_ns = rnet::now_ns();
    stop.send(&StopEvent { count: *sent, raised_ns, active: u32::from(active), reason })?;
    *sent += 1;
    Ok(())
}

/// Receives all available messages; the death of a peer is an expected event here.
fn drain<T: Message>(
    subscriber: &mut Subscriber<T>,
    mut see: impl FnMut(Sample<'_, T>),
) -> rnet::Result<()> {
    loop {
        match subscriber.try_recv() {
            Ok(Some(sample)) => see(sample),
            Ok(None) => return Ok(()),
            Err(Error::PeerLost { topic, node }) => eprintln!("{node} died ({topic})"),
            Err(error) => return Err(error),
        }
    }
}

/// Authority over the motors, for holding them.
struct StopDriver<'a> {
    node: &'a Node,
    driver: Option<Driver<JointTorques>>,
    renewed: Instant,
}

impl StopDriver<'_> {
    /// Takes, renews or releases authority. Failures are retried in the next check; without renewal, the
    /// lease expires.
    fn keep(&mut self, wanted: bool) {
        let done = match self.driver.take().filter(|_| wanted) {
            None if !wanted => return,
            None => {
                let drive = self.node.drive::<JointTorques>("/robot/torque").priority(PRIORITY);
                drive.lease(LEASE).timeout(TAKE).take()
            }
            Some(driver) if self.renewed.elapsed() < LEASE / 4 => {
                self.driver = Some(driver);
                return;
            }
            Some(mut driver) => driver.renew().map(|()| driver),
        };
        self.renewed = Instant::now();
        match done {
            Ok(driver) => self.driver = Some(driver),
            Err(error) => eprintln!("cannot take authority to stop: {error}"),
        }
    }
}

/// The decision logic, without messaging.
#[derive(Debug, Default)]
struct Monitor {
    ordered: bool,
    state_ns: i64,
    torque_ns: Option<i64>,
    bad: Option<u32>,
    bad_at_ns: u64,
    raised: Option<u32>,
}

impl Monitor {
    fn handle_state(&mut self, state: &RobotState) {
        self.state_ns = state.time_ns;
        // Third row, third column of the rotation matrix: the vertical component of the body's up axis.
        let [x, y, ..] = state.orientation;
        if 1.0 - 2.0 * (x * x + y * y) < MIN_UPRIGHT {
            self.bad = Some(STOP_TILT);
        }
        // In simulated time, so that a simulation that stops is not reported. Before its first torque, a
        // controller is not silent but absent.
        if self.torque_ns.is_some_and(|torque_ns| self.state_ns - torque_ns > SILENCE_NS) {
            self.bad = Some(STOP_CONTROLLER_SILENT);
        }
    }

    fn handle_force(&mut self, force: &[f32; 4]) {
        if force.iter().any(|force| *force > MAX_FORCE_N) {
            self.bad = Some(STOP_FORCE);
        }
    }

    /// Whether authority is needed to hold the motors.
    fn halts(&self) -> bool {
        self.raised.is_some_and(|reason| reason != STOP_CONTROLLER_SILENT)
    }

    /// The next event, if the state has changed.
    fn decide(&mut self, now_ns: u64) -> Option<(bool, u32)> {
        let bad = if self.ordered { Some(STOP_ORDERED) } else { self.bad.take() };
        // While the robot is held, the controller cannot send.
        let bad = bad.filter(|bad| !(self.halts() && *bad == STOP_CONTROLLER_SILENT));
        match (bad, self.raised) {
            // More severe than a silent controller, which was only reported so far.
            (Some(reason), Some(STOP_CONTROLLER_SILENT)) if reason != STOP_CONTROLLER_SILENT => {
                self.bad_at_ns = now_ns;
                self.raised = Some(reason);
                Some((true, reason))
            }
            (Some(reason), None) => {
                self.bad_at_ns = now_ns;
                self.raised = Some(reason);
                Some((true, reason))
            }
            (Some(_), Some(_)) => {
                self.bad_at_ns = now_ns;
                None
            }
            (None, Some(reason)) if now_ns - self.bad_at_ns > CLEAR_NS => {
                // After a hold, the silence of the controller counts from here.
                let received_ns = self.torque_ns.filter(|_| !self.halts());
                self.torque_ns = received_ns.or(self.torque_ns.map(|_| self.state_ns));
                self.raised = None;
                Some((false, reason))
            }
            (None, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_raises_one_stop_and_torques_release_it() {
        let mut monitor = Monitor { torque_ns: Some(0), ..Monitor::default() };
        monitor.state_ns = SILENCE_NS;
        assert_eq!(monitor.decide(1), None);
        monitor.bad = Some(STOP_CONTROLLER_SILENT);
        assert_eq!(monitor.decide(2), Some((true, STOP_CONTROLLER_SILENT)));
        monitor.bad = Some(STOP_CONTROLLER_SILENT);
        assert_eq!(monitor.decide(3), None);
        assert_eq!(monitor.decide(3 + CLEAR_NS), None);
        assert_eq!(monitor.decide(4 + CLEAR_NS), Some((false, STOP_CONTROLLER_SILENT)));
        assert_eq!(monitor.decide(5 + CLEAR_NS), None);
    }

    #[test]
    fn order_halts_motors_until_it_is_released() {
        let mut monitor = Monitor { bad: Some(STOP_CONTROLLER_SILENT), ..Monitor::default() };
        assert_eq!(monitor.decide(1), Some((true, STOP_CONTROLLER_SILENT)));
        assert!(!monitor.halts());
        monitor.ordered = true;
        assert_eq!(monitor.decide(2), Some((true, STOP_ORDERED)));
        monitor.ordered = false;
        // While held, the robot gets no torques from the controller: that alone must not prolong the hold.
        monitor.bad = Some(STOP_CONTROLLER_SILENT);
        assert_eq!(monitor.decide(2 + CLEAR_NS), None);
        assert!(monitor.halts());
        monitor.bad = Some(STOP_CONTROLLER_SILENT);
        assert_eq!(monitor.decide(3 + CLEAR_NS), Some((false, STOP_ORDERED)));
        assert!(!monitor.halts());
    }

    #[test]
    fn hard_strike_raises_stop() {
        let mut monitor = Monitor::default();
        monitor.handle_force(&[0.0, MAX_FORCE_N, 0.0, 0.0]);
        assert_eq!(monitor.decide(1), None);
        monitor.handle_force(&[0.0, MAX_FORCE_N + 1.0, 0.0, 0.0]);
        assert_eq!(monitor.decide(2), Some((true, STOP_FORCE)));
    }
}

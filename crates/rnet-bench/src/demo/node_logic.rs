//! What each node does with what it hears.

use super::arm::{Arm, LINK_M, MASS_KG};
use super::endpoints::{HEIGHT, NodeEndpoints, WIDTH};
use super::robot::{BATTERY, DRIVE, ESTIMATE, FORCE, SHUTTER, STATE, STOP, Signal, TORQUE};
use crate::measure::figure::Latencies;
use rnet_format::Outcome;

/// Without torques for so long the motors hold the arm where it is.
const HOLD_AFTER_NS: u64 = 20_000_000;
/// Without torques for so long the safety monitor raises the stop, and takes it back so long after they came again.
const SILENCE_NS: u64 = 60_000_000;
const CLEAR_NS: u64 = 300_000_000;
/// Of this many states one opens the camera's shutter: 30 a second.
const STATES_PER_FRAME: u64 = 33;

/// What a node does. `step` is called after each wake; `due` says whether it is time for what it does by itself.
pub trait NodeLogic {
    fn step(&mut self, endpoints: &mut NodeEndpoints, now_ns: u64, due: bool) -> Outcome;

    /// When it changed to and fro: the simulation by whom the motors are driven (`true`: the controller), the safety
    /// monitor whether there is a stop.
    fn changes(&mut self) -> Vec<(u64, bool)> {
        Vec::new()
    }

    /// From a state to its torques.
    fn round_trips(&mut self) -> Latencies {
        Latencies::default()
    }
}

pub fn node_logic(name: &str) -> Box<dyn NodeLogic> {
    match name {
        "simulation" => Box::<Simulation>::default(),
        "controller" => Box::new(Controller),
        "estimator" => Box::<Estimator>::default(),
        "force" => Box::new(Force { random: 0x9e37_79b9_7f4a_7c15 }),
        "camera" => Box::new(Camera),
        "battery" => Box::new(Battery { charge: 1.0 }),
        "safety" => Box::<Safety>::default(),
        "operator" => Box::<Operator>::default(),
        _ => Box::new(Listener),
    }
}

/// Owner of the physics: it stands where a robot has its motors and sensors.
#[derive(Default)]
struct Simulation {
    arm: Arm,
    torque: [f64; 2],
    heard_ns: u64,
    driven: bool,
    hold: [f64; 2],
    steps: u64,
    changes: Vec<(u64, bool)>,
    round_trips: Latencies,
}

impl NodeLogic for Simulation {
    fn step(&mut self, endpoints: &mut NodeEndpoints, now_ns: u64, due: bool) -> Outcome {
        let before = self.driven;
        if let Some(torque) = endpoints.take_new(TORQUE) {
            self.round_trips.record(now_ns.saturating_sub(torque.read_ns));
            self.torque = [torque.values[0], torque.values[1]];
            (self.heard_ns, self.driven) = (now_ns, true);
        } else if self.driven && now_ns - self.heard_ns > HOLD_AFTER_NS {
            (self.driven, self.hold) = (false, self.arm.angle);
        }
        if self.driven != before {
            self.changes.push((now_ns, self.driven));
        }
        if !due {
            return Ok(());
        }
        let torque = if self.driven { self.torque } else { self.arm.toward(self.hold) };
        self.arm.step(torque, 1e-3);
        let Arm { angle: [a, b], speed: [v, w] } = self.arm;
        endpoints.send(STATE, rnet::now_ns(), [a, b, v, w])?;
        self.steps += 1;
        if self.steps.is_multiple_of(STATES_PER_FRAME) {
            endpoints.send(SHUTTER, rnet::now_ns(), [a, b, v, w])?;
        }
        Ok(())
    }

    fn changes(&mut self) -> Vec<(u64, bool)> {
        std::mem::take(&mut self.changes)
    }

    fn round_trips(&mut self) -> Latencies {
        std::mem::take(&mut self.round_trips)
    }
}

fn arm_of(state: &Signal) -> Arm {
    let [a, b, v, w] = state.values;
    Arm { angle: [a, b], speed: [v, w] }
}

/// Answers each state with torques, and so closes the loop.
struct Controller;

impl NodeLogic for Controller {
    fn step(&mut self, endpoints: &mut NodeEndpoints, _: u64, _: bool) -> Outcome {
        let Some(state) = endpoints.take_new(STATE) else { return Ok(()) };
        let [a, b, ..] = endpoints.newest(DRIVE).0.values;
        let [t, u] = arm_of(&state).toward([a, b]);
        endpoints.send(TORQUE, state.read_ns, [t, u, a - state.values[0], b - state.values[1]])
    }
}

/// Where the hand is, and its speed, smoothed.
#[derive(Default)]
struct Estimator {
    speed: f64,
}

impl NodeLogic for Estimator {
    fn step(&mut self, endpoints: &mut NodeEndpoints, _: u64, _: bool) -> Outcome {
        let Some(state) = endpoints.take_new(STATE) else { return Ok(()) };
        let arm = arm_of(&state);
        let [elbow, hand] = arm.joint_positions();
        let ([v, w], [x, y]) = (arm.speed, hand);
        let (u, z) =
            (-elbow[1] * v - (y - elbow[1]) * (v + w), elbow[0] * v + (x - elbow[0]) * (v + w));
        self.speed += 0.05 * (u.hypot(z) - self.speed);
        endpoints.send(ESTIMATE, state.read_ns, [x, y, self.speed, 0.0])
    }
}

/// The load cell in the wrist: 10,000 samples a second, with noise.
struct Force {
    random: u64,
}

impl NodeLogic for Force {
    fn step(&mut self, endpoints: &mut NodeEndpoints, now_ns: u64, due: bool) -> Outcome {
        if !due {
            return Ok(());
        }
        // xorshift64 (Marsaglia, "Xorshift RNGs", 2003): evenly spread over -1 to 1.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let noise = (self.random >> 40) as f64 / f64::from(1 << 23) - 1.0;
        let [.., v, w] = endpoints.newest(STATE).0.values;
        let pull = MASS_KG * (9.81 + LINK_M * (v + w) * (v + w));
        endpoints.send(FORCE, now_ns, [pull + 0.1 * noise, 0.0, 0.0, 0.0])
    }
}

/// A picture of the arm whenever the shutter opens.
struct Camera;

impl NodeLogic for Camera {
    fn step(&mut self, endpoints: &mut NodeEndpoints, _: u64, _: bool) -> Outcome {
        let Some(state) = endpoints.take_new(SHUTTER) else { return Ok(()) };
        let [elbow, hand] = arm_of(&state).joint_positions();
        endpoints.send_image(|image| {
            image.fill(32);
            for ([x, y], [to_x, to_y]) in [([0.0, 0.0], elbow), (elbow, hand)] {
                for n in 0..200 {
                    let part = f64::from(n) / 200.0;
                    let at = |from: f64, to: f64| (from + part * (to - from)) * 220.0;
                    let column = (WIDTH as f64 / 2.0 + at(x, to_x)) as usize;
                    let row = (HEIGHT as f64 / 2.0 - at(y, to_y)) as usize;
                    let pixel = 3 * (row.min(HEIGHT - 1) * WIDTH + column.min(WIDTH - 1));
                    image[pixel..pixel + 3].fill(255);
                }
            }
        })
    }
}

struct Battery {
    charge: f64,
}

impl NodeLogic for Battery {
    fn step(&mut self, endpoints: &mut NodeEndpoints, now_ns: u64, due: bool) -> Outcome {
        if !due {
            return Ok(());
        }
        let [t, u, ..] = endpoints.newest(TORQUE).0.values;
        let current = 0.5 + 0.05 * (t.abs() + u.abs());
        self.charge -= current * 1e-5;
        endpoints.send(BATTERY, now_ns, [22.0 + 3.0 * self.charge, current, self.charge, 0.0])
    }
}

/// Raises an urgent stop when the controller falls silent, and takes it back when it speaks again.
#[derive(Default)]
struct Safety {
    stopped: bool,
    silent_ns: u64,
    /// When there was a stop, and when no more.
    changes: Vec<(u64, bool)>,
}

impl NodeLogic for Safety {
    fn step(&mut self, endpoints: &mut NodeEndpoints, now_ns: u64, _: bool) -> Outcome {
        let (state, torque) = (endpoints.newest(STATE).0, endpoints.newest(TORQUE).0);
        // A simulation that stands still blames nobody, and before its first torque no controller is silent.
        let silent = torque.read_ns > 0 && state.read_ns > torque.read_ns + SILENCE_NS;
        if silent {
            self.silent_ns = now_ns;
        }
        if silent == self.stopped || (!silent && now_ns < self.silent_ns + CLEAR_NS) {
            return Ok(());
        }
        self.stopped = silent;
        self.changes.push((now_ns, silent));
        endpoints.send(STOP, now_ns, [f64::from(u8::from(silent)), 0.0, 0.0, 0.0])
    }

    fn changes(&mut self) -> Vec<(u64, bool)> {
        std::mem::take(&mut self.changes)
    }
}

/// Says where the arm is to be, and stands still while there is a stop or no charge.
#[derive(Default)]
struct Operator {
    seconds: f64,
}

impl NodeLogic for Operator {
    fn step(&mut self, endpoints: &mut NodeEndpoints, now_ns: u64, due: bool) -> Outcome {
        if !due {
            return Ok(());
        }
        let stopped = endpoints.newest(STOP).0.values[0] > 0.0;
        let battery = endpoints.newest(BATTERY).0;
        let is_empty = battery.read_ns > 0 && battery.values[2] < 0.05;
        if !stopped && !is_empty {
            self.seconds += 0.05;
        }
        let (a, b) = (0.8 * (0.7 * self.seconds).sin(), 0.6 * (1.1 * self.seconds).sin());
        endpoints.send(DRIVE, now_ns, [a, b, 0.0, 0.0])
    }
}

/// Hears, and is heard by nobody: the logger and the display.
struct Listener;

impl NodeLogic for Listener {
    fn step(&mut self, _: &mut NodeEndpoints, _: u64, _: bool) -> Outcome {
        Ok(())
    }
}

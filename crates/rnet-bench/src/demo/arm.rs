//! The embedded model: an arm of two links that hangs in a plane, a point mass at the end of each link.
//!
//! Angles are in rad, the first against the vertical, the second against the first link; torques in N m.

/// Length of a link, in m.
pub const LINK_M: f64 = 0.5;
/// The mass at the end of a link, in kg.
pub const MASS_KG: f64 = 1.0;
/// Of each joint, in N m s/rad.
const FRICTION: f64 = 0.1;
const GRAVITY: f64 = 9.81;
const STIFFNESS: [f64; 2] = [120.0, 60.0];
const DAMPING: [f64; 2] = [16.0, 6.0];

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Arm {
    pub angle: [f64; 2],
    /// In rad/s.
    pub speed: [f64; 2],
}

impl Arm {
    /// What keeps it where it is.
    fn gravity(&self) -> [f64; 2] {
        let [a, b] = self.angle;
        let outer = MASS_KG * GRAVITY * LINK_M * (a + b).sin();
        [2.0 * MASS_KG * GRAVITY * LINK_M * a.sin() + outer, outer]
    }

    /// The torques that move it to these angles: gravity is balanced, the rest is a spring and a damper.
    pub fn toward(&self, target: [f64; 2]) -> [f64; 2] {
        let gravity = self.gravity();
        std::array::from_fn(|i| {
            gravity[i] + STIFFNESS[i] * (target[i] - self.angle[i]) - DAMPING[i] * self.speed[i]
        })
    }

    /// Moves it on: the equations of motion, by semi-implicit Euler.
    pub fn step(&mut self, torque: [f64; 2], seconds: f64) {
        let [v, w] = self.speed;
        let (sin, cos) = self.angle[1].sin_cos();
        let unit = MASS_KG * LINK_M * LINK_M;
        let (m11, m12, m22) = (unit * (3.0 + 2.0 * cos), unit * (1.0 + cos), unit);
        // Centrifugal and Coriolis torques.
        let bias = [-unit * sin * w * (2.0 * v + w), unit * sin * v * v];
        let gravity = self.gravity();
        let [t1, t2]: [f64; 2] =
            std::array::from_fn(|i| torque[i] - bias[i] - gravity[i] - FRICTION * self.speed[i]);
        let determinant = m11 * m22 - m12 * m12;
        self.speed[0] += seconds * (m22 * t1 - m12 * t2) / determinant;
        self.speed[1] += seconds * (m11 * t2 - m12 * t1) / determinant;
        for (angle, speed) in self.angle.iter_mut().zip(self.speed) {
            *angle += seconds * speed;
        }
    }

    /// Where elbow and hand are, from the shoulder: to the right and up, in m.
    pub fn joint_positions(&self) -> [[f64; 2]; 2] {
        let [a, b] = self.angle;
        let elbow = [LINK_M * a.sin(), -LINK_M * a.cos()];
        [elbow, [elbow[0] + LINK_M * (a + b).sin(), elbow[1] - LINK_M * (a + b).cos()]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP_S: f64 = 1e-3;

    #[test]
    fn the_arm_reaches_its_target_and_stays() {
        let mut arm = Arm::default();
        let target = [0.8, -0.6];
        for _ in 0..5_000 {
            arm.step(arm.toward(target), STEP_S);
        }
        let off = arm.angle.iter().zip(target).map(|(angle, target)| angle - target);
        assert!(off.chain(arm.speed).all(|off| off.abs() < 1e-3), "{arm:?}");
    }

    #[test]
    fn without_torque_it_swings_and_loses_energy() {
        let mut arm = Arm { angle: [1.0, 0.5], ..Arm::default() };
        let energy = |arm: &Arm| {
            let height: f64 = arm.joint_positions().iter().map(|place| place[1]).sum();
            let (v, w) = (arm.speed[0], arm.speed[1]);
            let unit = MASS_KG * LINK_M * LINK_M;
            let outer = v * v + (v + w) * (v + w) + 2.0 * arm.angle[1].cos() * v * (v + w);
            MASS_KG * GRAVITY * height + unit * (v * v + outer) / 2.0
        };
        let mut before = energy(&arm);
        for _ in 0..60 {
            for _ in 0..1_000 {
                arm.step([0.0; 2], STEP_S);
            }
            // The steps of the integration may add a little of their own.
            assert!(energy(&arm) < before + 0.05, "{arm:?}");
            before = energy(&arm);
        }
        assert!(arm.angle.iter().all(|angle| angle.abs() < 0.2), "{arm:?}");
    }
}

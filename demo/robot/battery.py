"""A small battery model: it feeds the motors, its charge decreases, its voltage sags.

The current follows from the motors' power: the mechanical power of each joint, plus the copper loss of
holding a torque, plus the electronics. A joint that is driven backwards does not recuperate. The voltage is
that of a lithium pack: linear from empty to full, minus the drop over the inner resistance.
"""

from math import sqrt

CAPACITY_AH = 8.0
FULL_V, EMPTY_V = 29.4, 22.4  # seven cells
INNER_RESISTANCE_OHM = 0.06
ELECTRONICS_W = 25.0
COPPER_LOSS_W_N2M2 = 0.03  # 60 N m at standstill heat a motor with 108 W


def motor_power(torques, joint_velocities):
    """Electrical power (W) of all motors, from torques (N m) and joint speeds (rad/s)."""
    power = 0.0
    for torque, speed in zip(torques, joint_velocities):
        power += max(0.0, torque * speed) + COPPER_LOSS_W_N2M2 * torque * torque
    return power


class Battery:
    """Call `update` after each step; then read `voltage` (V), `current` (A, positive out of the battery) and
    `charge`.
    """

    def __init__(self, charge=1.0, capacity_ah=CAPACITY_AH):
        self.charge = charge  # state of charge, 0 to 1
        self.capacity_ah = capacity_ah
        self.current = 0.0
        self.voltage = self._open_circuit()

    def _open_circuit(self):
        return EMPTY_V + (FULL_V - EMPTY_V) * self.charge

    def update(self, dt_s, torques, joint_velocities):
        """Draws the power of `motor_power` and the electronics for `dt_s`. An empty battery stays empty."""
        power = ELECTRONICS_W + motor_power(torques, joint_velocities)
        open_v = self._open_circuit()
        # power = current * (open_v - R current); the smaller root is the operating point. If no current
        # yields that power, the pack delivers its maximum.
        root = sqrt(max(0.0, open_v * open_v - 4 * INNER_RESISTANCE_OHM * power))
        self.current = (open_v - root) / (2 * INNER_RESISTANCE_OHM)
        self.voltage = open_v - INNER_RESISTANCE_OHM * self.current
        self.charge = max(0.0, self.charge - self.current * dt_s / (3600.0 * self.capacity_ah))

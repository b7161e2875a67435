"""What the sensors of a model would have read during a run.

| kind | at | reads |
|---|---|---|
| encoder, jointpos | joint | position; counts |
| tachometer, jointvel | joint | velocity |
| torque | joint | torque that acts at the joint |
| force_torque | joint | torque, force of the joint on its child, at the child's origin in its axes |
| imu | frame | angular_velocity, specific_force in the frame's axes |
| gyro, accelerometer | frame | one half of an imu |
| position | frame | position of the origin in the world |

| setting | of | meaning |
|---|---|---|
| rate [Hz] | all | readings change at these times only and are held in between |
| counts, offset | encoder | counts in a turn (or a metre), and what is added to the position before counting |
| bias | all | is added |
| noise | all | standard deviation of white noise that is added |
| density | all | the same by its density [unit/√Hz]: a deviation of density · √rate |
| cutoff | all | readings stay within −cutoff and cutoff |
| seed | all | of the random numbers, 0 if not given |

An imu has bias, noise, density and cutoff for each of its readings, as gyro_bias and accelerometer_bias; a force_torque
sensor as torque_bias and force_bias.

Specific force is the acceleration of the frame's origin less that of gravity: at rest it points up.
"""

from spanloop.results.sensing.reading import sensed

__all__ = ["sensed"]

"""What the sensors of a model would have read during a run.

| kind | at | reads |
|---|---|---|
| encoder | joint | position; counts |
| tachometer | joint | velocity |
| torque | joint | torque that acts at the joint |
| force_torque | joint | torque, force of the joint on its child, at the child's origin in its axes |
| imu | frame | angular_velocity, specific_force in the frame's axes |
| gyro, accelerometer | frame | one half of an imu |
| position | frame | position of the origin in the world |

| setting | of | meaning |
|---|---|---|
| rate [Hz] | all | readings change at these times only and are held in between |
| counts, offset | encoder | counts in a turn (or a metre), and what is added to the position before counting |
| bias, noise | one reading | added to it; noise is white, given by its density [unit/√Hz]: deviation density · √rate |
| gyro_bias, gyro_noise, accelerometer_... | imu | the same |
| torque_bias, torque_noise, force_... | force_torque | the same |
| seed | all with noise | of the random numbers, 0 if not given |

Specific force is the acceleration of the frame's origin less that of gravity: at rest it points up.
"""

from spanloop.results.sensing.reading import sensed

__all__ = ["sensed"]

"""Writes docs/demo.svg, the README's picture: the motion of `spanloop demo`.

python docs/pictures/demo.py
"""

from pathlib import Path

import spanloop as sl
from spanloop.simulation.control.periodic_motion import lead
from spanloop.view import animation

robot = sl.Dynamics(sl.zoo.three_pumas())
led = lead(robot, sl.zoo.three_pumas_start(), sl.zoo.three_pumas_path, period=6.0)
run = sl.simulate(robot, led.q, led.v, duration=6.0, sample=2e-3, controller=led.control)
animation.write(run, Path(__file__).parents[1] / "demo.svg", title="Three PUMA arms carry one disc")

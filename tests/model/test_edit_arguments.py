"""Whatever an edit is given, it answers with a model or with a sentence."""

from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError

WRONG = (None, 3, ["joint1"], ("tool",), "jont1", "", {"a": 1}, np.ones(1), object(), b"x", math.nan)
ARM = zoo.puma().with_actuator("motor", "joint1").with_sensor("imu", "imu", "tool")
ROD = zoo.pendulum(1)
EDITS = {
    "lock": lambda x: ARM.lock(x),
    "lock at": lambda x: ARM.lock(at=x),
    "lock at a value": lambda x: ARM.lock(at={"joint1": x}),
    "weld": lambda x: ARM.weld("tool", x),
    "weld name": lambda x: ARM.weld("tool", "world", name=x),
    "attach": lambda x: ARM.attach(x),
    "attach at": lambda x: ARM.attach(ROD, x),
    "attach joint": lambda x: ARM.attach(ROD, "tool", x),
    "attach prefix": lambda x: ARM.attach(ROD, "tool", prefix=x),
    "attach frame": lambda x: ARM.attach(ROD, "tool", frame=x),
    "remove": lambda x: ARM.remove(x),
    "remove kind": lambda x: ARM.remove("link1", kind=x),
    "rename": lambda x: ARM.rename(x),
    "rename to": lambda x: ARM.rename({"joint1": x}),
    "mirror": lambda x: ARM.mirror(x),
    "mirror swap": lambda x: ARM.mirror("y", swap=x),
    "scale": lambda x: ARM.scale(length=x),
    "rezero": lambda x: ARM.rezero(x),
    "drive": lambda x: ARM.drive(x),
    "actuate": lambda x: ARM.actuate(x),
    "unactuate": lambda x: ARM.unactuate(x),
    "loop": lambda x: ARM.with_loop(x, "world"),
    "loop joint": lambda x: ARM.with_loop("tool", "world", x),
    "loop name": lambda x: ARM.with_loop("tool", "world", name=x),
    "frame": lambda x: ARM.with_frame(x, "link1"),
    "frame body": lambda x: ARM.with_frame("f", x),
    "frame position": lambda x: ARM.with_frame("f", "link1", x),
    "frame rotation": lambda x: ARM.with_frame("f", "link1", rotation=x),
    "gravity": lambda x: ARM.with_gravity(x),
    "inertia": lambda x: ARM.with_inertia(x, mass=1),
    "mass": lambda x: ARM.with_inertia("link1", mass=x),
    "moments": lambda x: ARM.with_inertia("link1", inertia=x),
    "actuator": lambda x: ARM.with_actuator(x, "joint1"),
    "actuator joint": lambda x: ARM.with_actuator("m", x),
    "actuator setting": lambda x: ARM.with_actuator("m", "joint1", gear=x),
    "sensor": lambda x: ARM.with_sensor(x, "imu", "tool"),
    "sensor kind": lambda x: ARM.with_sensor("s", x, "tool"),
    "sensor at": lambda x: ARM.with_sensor("s", "imu", x),
    "coupling": lambda x: ARM.with_coupling(x, "joint1"),
    "coupling source": lambda x: ARM.with_coupling("joint1", x),
    "coupling name": lambda x: ARM.with_coupling("joint2", "joint1", name=x),
    "joint": lambda x: ARM.with_joint(x, damping=1),
    "joint value": lambda x: ARM.with_joint("joint1", damping=x),
    "joint limits": lambda x: ARM.with_joint("joint1", limits=x),
    "joint rest": lambda x: ARM.with_joint("joint1", rest=x),
    "parameters": lambda x: ARM.with_parameters(x),
    "parameters by name": lambda x: ARM.with_parameters({"link1.mass": x}),
    "a joint by name": lambda x: ARM.joint(x),
    "a body by name": lambda x: ARM.body(x),
    "a frame by name": lambda x: ARM.frame(x),
    "a slice": lambda x: ARM.v_slice(x),
}


def test_wrong_arguments_of_edits_get_a_sentence():
    for edit in EDITS.values():
        for x in WRONG:
            with contextlib.suppress(sl.SpanloopError):
                edit(x)


@pytest.mark.parametrize("verb", ["lock", "remove", "drive", "actuate", "unactuate"])
def test_names_come_one_by_one_or_in_a_list(verb):
    two = getattr(ARM, verb)("joint2", "joint3")
    assert getattr(ARM, verb)(["joint2", "joint3"]) == two
    with says(InputError, f"{verb}: a name is 7; expected a name"):
        getattr(ARM, verb)("joint2", 7)

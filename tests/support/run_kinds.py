"""Every kind of run that a GPU takes over: a model with its start, and the options of sl.simulate."""

from __future__ import annotations

import numpy as np

import spanloop as sl

RUNS = 5


class Integral(sl.control.Controller):
    """Torques from a memory: the integral of the first angle's error."""

    inputs, memory = 0, 1

    def torques(self, t, q, v, u, z):
        return np.array([-5.0 * z[0], *[0.0 * x for x in v[1:]]])

    def update(self, t, h, q, v, u, z):
        return (z[0] + h * q[0],)


def many(q, spread=0.01, seed=3):
    rng, q = np.random.default_rng(seed), np.asarray(q, float)
    return q + spread * rng.normal(size=(RUNS, *q.shape))


def looped():
    model, start = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    q = np.tile(start, (RUNS, 1))
    speeds = sl.Dynamics(model).project(q, many(np.zeros(3), 0.5))[1]
    return (model, q, speeds)


def ball():
    b = sl.Builder("ball").body("ball", 1.0, inertia=(0.004,) * 3, geometry=[sl.contacts.Sphere(0.1)])
    model = b.free("flight", "world", "ball").build().with_ground(friction=0.3, restitution=0.5)
    q = np.tile([1.0, 0, 0, 0, 0, 0, 0.105], (RUNS, 1))
    q[:, 6] += 0.004 * np.arange(RUNS)
    return model, q, np.tile([0, 0, 0, 0.5, 0, 0.0], (RUNS, 1))


def clutch():
    b = sl.Builder("discs").body("one", 1.0, inertia=(0.2, 0.2, 0.3)).body("two", 1.0, inertia=(0.5, 0.5, 0.7))
    b.revolute("first", "world", "one", "z").revolute("second", "world", "two", "z", (0, 0, 0.1))
    return b.loop("one", "two", "fixed", name="clutch", switchable=True).build(), None, many(np.zeros(2), 1.0)


def boom():
    beam = sl.flexible.beam(2.0, E=7e10, density=2700.0, section=sl.flexible.tube(0.02, 0.018), modes=1, damping=0.01)
    b = sl.Builder("crane").body("hub", 2.0, inertia=(0.01,) * 3).body("boom", flexible=beam)
    model = b.revolute("shoulder", "world", "hub", "y").fixed("clamp", "hub", "boom").build()
    return model, np.tile(sl.Dynamics(model).static_deflection({"shoulder": 0.0}), (RUNS, 1)), None


def stopped():
    b = sl.Builder("door").body("door", 1.0, (0.3, 0, 0), (0.01, 0.05, 0.05))
    model = b.revolute("hinge", "world", "door", "y", limits=(-0.05, 0.05)).build()
    return model, many([0.04], 0.002), None


def weighed():
    model = sl.zoo.puma()
    return model, many(np.full(6, 0.3)), np.zeros((RUNS, 6))


def bouncing():
    b = sl.Builder("ball").body("ball", 1.0, inertia=(1e-9,) * 3).prismatic("height", "world", "ball", "z")
    model = b.loop("world", "ball", sl.joints.PointOnPlane("z"), name="ground", switchable=True).build()
    return model, 1e-3 * np.arange(1.0, RUNS + 1)[:, None], None


def geared():
    return sl.zoo.pendulum(2).with_coupling("hinge2", "hinge1", ratio=-2.0), np.tile([0.2, -0.4], (RUNS, 1)), None


def driven():
    b = sl.Builder("driven").body("a", 1.0, (0.2, 0, 0), (0.01,) * 3).body("b", 1.0, (0.2, 0, 0), (0.01,) * 3)
    b.revolute("first", "world", "a", "y").revolute("second", "a", "b", "y", (0.4, 0, 0), driven=True)
    return b.build(), many(np.full(2, 0.1)), None


def actuated():
    model = sl.zoo.puma().with_actuator("m", "joint1", gear=50.0, rotor_inertia=1e-4, max_torque=30.0)
    return model, many(np.full(6, 0.3)), None


def stacked():
    box, sphere = sl.contacts.Box(0.2, 0.2, 0.2), sl.contacts.Sphere(0.1)
    b = sl.Builder("pair").body("box", mass=1.0, inertia=(0.004,) * 3, geometry=[box])
    b.body("ball", mass=1.0, inertia=(0.004,) * 3, geometry=[sphere])
    model = b.free("fp", "world", "box").free("fs", "world", "ball").build().with_ground(friction=0.3)
    q = np.tile([1.0, 0, 0, 0, 0, 0, 0.1, 1.0, 0, 0, 0, 0, 0, 0.3], (RUNS, 1))
    return model.with_contact("both", "ball", "box", friction=0.3), q, None


CLUTCH = [sl.events.Attach("clutch", at=0.0113, capture=True), sl.events.Release("clutch", at=0.0307)]
CASES = {
    "tree": (weighed, {}),
    "loop": (looped, {}),
    "loop, midpoint": (looped, {"integrator": "midpoint"}),
    "loop, euler": (looped, {"integrator": "euler"}),
    "loop, feedback": (looped, {"closures": "feedback"}),
    "loop, minimal": (looped, {"closures": "minimal"}),
    "implicit": (lambda: (sl.zoo.puma(), many(np.full(6, 0.3)), None), {"integrator": "implicit"}),
    "torques of steps": (weighed, {"tau": np.random.default_rng(5).normal(size=(RUNS, 40, 6))}),
    "controller": (weighed, {"controller": lambda t, q, v: -20.0 * q - 2.0 * v}),
    "controller with memory": (looped, {"controller": Integral()}),
    "callback": (looped, {"controller": sl.control.callback(lambda t, q, v: -0.3 * v)}),
    "forces": (weighed, {"forces": lambda t, q, v: {"link6": [0, 0, 0, 0, 0, 3.0 * t]}}),
    "live parameters": (
        weighed,
        {"parameters": sl.zoo.puma().parameters().values * (1.0 + 0.01 * np.arange(RUNS)[:, None])},
    ),
    "condition": (weighed, {"events": {"speed": lambda t, q, v: 0.15 - v[1]}}),
    "limits end": (stopped, {}),
    "limits stop": (stopped, {"limits": "stop"}),
    "switched loop": (clutch, {"events": CLUTCH}),
    "one-sided constraint": (bouncing, {"events": [sl.events.OneSided("ground", restitution=0.5)]}),
    "coupling": (geared, {}),
    "driven joint": (driven, {"tau": [0.5, 2.0]}),
    "actuator": (actuated, {"tau": [5.0, 0, 0, 0, 0, 0]}),
    "inputs of steps": (
        weighed,
        {"controller": lambda t, q, v, u: -u[0] * q - v, "inputs": np.linspace(1.0, 9.0, 40)[:, None]},
    ),
    "free base": (lambda: (sl.zoo.quadruped(), None, many(np.zeros(18), 0.3)), {"contacts": "ignore"}),
    "body that vanishes, contacts": (stacked, {"events": [sl.events.Vanish("box", at=0.01)]}),
    "contacts": (ball, {}),
    "contacts, located": (ball, {"contacts": "events"}),
    "flexible": (boom, {"integrator": "implicit"}),
}


def assert_same(a, b, bound):
    assert [x.reason for x in a.outcomes] == [x.reason for x in b.outcomes]
    for name in ("times", "q", "v", "tau"):
        one, other = getattr(a, name), getattr(b, name)
        assert (one is None) == (other is None), name
        if one is not None:
            np.testing.assert_allclose(other, one, rtol=bound, atol=bound, err_msg=name)
    np.testing.assert_array_equal(b.events.run, a.events.run)
    np.testing.assert_allclose(b.events.time, a.events.time, atol=bound)

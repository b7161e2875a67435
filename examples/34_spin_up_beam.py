"""A beam is spun up: the problem that models without geometric stiffening get wrong [Kane, Ryan & Banerjee 1987].

A hub turns a cantilever of 10 m from rest to 6 rad/s in 15 s, faster in the end than the beam's first frequency. A bent
beam shortens, and the centrifugal force pulls it straight. The same beam without that second-order field diverges.

The page, with figures: docs/examples/34_spin_up_beam.md
"""

from dataclasses import replace

import numpy as np

import spanloop as sl

LENGTH, RAMP, SPEED = 10.0, 15.0, 6.0  # m, s, rad/s
SECTION = {"E": 7e10, "density": 3000.0, "area": 4e-4, "I": 2e-7}  # EI 1.4e4 N m², EA 2.8e7 N, 1.2 kg/m


def spinning(**options):
    """A beam on a hub whose angle is given."""
    beam = sl.flexible.beam(LENGTH, **SECTION, **options)
    b = sl.Builder("spin_up", gravity=(0, 0, 0)).body("beam", flexible=beam)
    return b.revolute("hub", "world", "beam", "z", driven=True).build()


def ramp(t, q, v):
    """Acceleration of the hub; its speed is (6/15)(t − (15/2π) sin(2πt/15)) until it is 6 rad/s."""
    return {"hub": np.where(t < RAMP, SPEED / RAMP * (1.0 - np.cos(2.0 * np.pi / RAMP * t)), 0.0)}


def tip(run):
    """Position of the tip (samples, 2) in the axes of the hub, from that of the straight beam."""
    angle, place = run["hub"].q, run["beam.tip"].position
    along, across = np.cos(angle), np.sin(angle)
    x, y = place[:, 0], place[:, 1]
    return np.stack([along * x + across * y - LENGTH, along * y - across * x], axis=1)


def spun(model, duration=20.0, step=5e-3):
    return sl.simulate(model, duration=duration, step=step, integrator="rk4", controller=ramp)


# ---- the largest deflection lags behind the hub; then the beam is pulled straight

CASES = {  # name: of the beam, step [s], bound of the error
    "1 mode": ({"modes": {"y": 1}, "basis": "cantilever"}, 5e-3, 0.011),
    "3 modes": ({"modes": {"y": 3}, "basis": "cantilever"}, 5e-3, 0.004),
    "tip and 1 inner mode": ({"modes": {"y": 1}}, 5e-3, 0.004),
    "2 pieces": ({"modes": {"y": 0}, "pieces": 2}, 2e-3, 0.001),
    "4 pieces": ({"modes": {"y": 0}, "pieces": 4}, 1e-3, 0.0004),
}
EXACT = 0.57375  # m: eight pieces, of this program 0.57370 m and of another 0.57377 m
runs = {name: spun(spinning(**beam), step=step) for name, (beam, step, _) in CASES.items()}
print("largest deflection [m], at [s], error [%], largest after 16 s [m]")
for name, (_, _, bound) in CASES.items():
    y, times = -tip(runs[name])[:, 1], runs[name].times
    error = y.max() / EXACT - 1.0
    print(f"{name:21} {y.max():.4f} {times[y.argmax()]:6.2f} {100 * error:6.2f} {np.abs(y[times > 16.0]).max():9.4f}")
    assert abs(error) < bound
    assert np.abs(y[times > 16.0]).max() < 4e-3

# ---- with extension the beam is longer in the end, by ρA ω² L³ / (3 EA)

stretched = spun(spinning(modes={"y": 1, "extension": 0}), step=1e-3)
x = tip(stretched)[:, 0]
longer = x[stretched.times > 16.0].mean()
exact = SECTION["density"] * SPEED**2 * LENGTH**3 / (3.0 * SECTION["E"])
print(f"elongation {longer:.4e} m; ρA ω² L³ / (3 EA) = {exact:.4e} m")
assert abs(longer - exact) < 1e-3 * exact


# ---- without the second-order field: a body whose particles move along the modes only


def without_stiffening(model):
    def straight(joint):
        if not joint.kind.bends:
            return joint
        mass = joint.kind.particles
        zero = tuple(tuple(tuple((0.0, 0.0, 0.0) for _ in row) for row in table) for table in mass.bent)
        return replace(joint, kind=replace(joint.kind, particles=replace(mass, bent=zero)))

    return replace(model, joints=tuple(map(straight, model.joints)))


wrong = spun(without_stiffening(runs["3 modes"].model), duration=8.5)
print(f"without the second-order field the tip is {-tip(wrong)[-1, 1]:.1f} m off at 8.5 s")
assert -tip(wrong)[-1, 1] > 2.0

"""Saha's two arms: the Stanford arm on its cycloidal path, and both arms in free fall.

Tables 3 and 4 are `sl.zoo.puma` and `sl.zoo.stanford`; the PUMA's path is in `07_torques_along_a_path.py`. The text
does not state gravity (9.81 m/s² along −z of frame 1 here) nor how long the arms fall (1 s here). Table 4a starts the
Stanford arm's fall from zeros, where b₃ alone falls, along the vertical; section 2.5.2 starts its path from θ₂ = π/2.
We simulate both.

The page, with figures: docs/examples/11_free_fall.md
"""

import numpy as np

import spanloop as sl

# the Stanford arm's torques: θ₂ from π/2 and the others from 0, to π/3; b₃ from 0 to 0.1 m, in 10 s [eq. 22-23]
stanford = sl.zoo.stanford()
t = np.linspace(0.0, 10.0, 2001)
end = np.full(6, np.pi / 3)
end[2] = 0.1
q, v, a = sl.zoo.cycloidal_path(sl.zoo.stanford_start(), end, 10.0, t)
tau = sl.compile(stanford, "inverse_dynamics", method="decoupled_complement")(q, v, a)
for joint, column in zip(stanford.joints, tau.T, strict=True):
    unit = "N" if joint.kind.name == "prismatic" else "N m"
    print(f"stanford {joint.name}: from {column.min():8.3f} to {column.max():8.3f} {unit}")

# the work of the torques equals the gain of energy
energy = sl.Dynamics(stanford).energy(q, v).sum(axis=1)
power = (tau * v).sum(axis=1)
work = ((power[1:] + power[:-1]) / 2 * np.diff(t)).sum()
print(f"work {work:.4f} J, gain of energy {energy[-1] - energy[0]:.4f} J")
assert abs(work - (energy[-1] - energy[0])) < 1e-4  # of the trapezoidal rule

# ---- free fall


def fall(model, start):
    """Simulate one second from rest without torques, by I = U D Uᵀ; return the run and its energy drift [J]."""
    run = sl.simulate(model, start, duration=1.0, method="decoupled_complement")
    total = run.energy.sum(axis=1)
    return run, np.abs(total - total[0]).max()


starts = {"PUMA": (sl.zoo.puma(), np.zeros(6)), "Stanford": (stanford, sl.zoo.stanford_start())}
falls = {}
for name, (model, start) in starts.items():
    run, drift = fall(model, start)
    falls[name] = run
    print(f"{name} after 1 s: q = {run.q[-1].round(4)}, energy drifts by {drift:.0e} J")
    assert drift < 1e-8

    # half the step and another algorithm of forward dynamics give the same end
    finer = sl.simulate(model, start, duration=1.0, step=0.0005, method="articulated_body_textbook")
    error = np.abs(finer.q[-1] - run.q[-1]).max()
    print(f"{name} by articulated bodies with half the step: differs by {error:.0e}")
    assert error < 1e-6

# from zeros the Stanford arm only slides: b₃ = g t²/2
run, drift = fall(stanford, sl.zoo.stanford_start("table"))
b3 = run["joint3"].q
print(f"from zeros: b3 falls {abs(b3[-1]):.6f} m, the others move by {np.abs(np.delete(run.q, 2, axis=1)).max():.0e}")
np.testing.assert_allclose(np.abs(b3), 9.81 * run.times**2 / 2, atol=1e-9)

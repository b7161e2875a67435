"""Simulate a four-bar: with an audit, with an event, with a controller, and a thousand of them at once."""

import numpy as np

import spanloop as sl

model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()

# one run; the audit checks energy, closure and limits
run = sl.simulate(model, q, duration=5.0)
print(run.audit())

# ended by an event, located to a billionth of the step
run = sl.simulate(model, q, duration=5.0, events={"crank too fast": lambda t, q, v: v["crank_hinge"] + 8.0})
print(run.outcome)


# driven by a controller that is compiled into the time loop
def turn(t, q, v):
    """45 revolutions a minute."""
    return {"crank_hinge": 20.0 * (4.712 - v["crank_hinge"])}


run = sl.simulate(model, q, duration=5.0, controller=turn)
print(f"crank turns at {run['crank_hinge'].v[-1]:.3f} rad/s, closure error at most {run.residual:.0e} m")

# a thousand masses of the coupler at once, on all cores
base = model.parameters()
draws = np.tile(base.values, (1000, 1))
draws[:, base.names.index("coupler.mass")] *= np.linspace(0.5, 2.0, 1000)
runs = sl.simulate(model, q, duration=1.0, parameters=draws, sample=0.1, integrator=sl.Integrator(threads=0))
ends = runs.q[:, -1, 0]
print(f"{len(ends)} runs; the crank ends between {ends.min():.2f} and {ends.max():.2f} rad")

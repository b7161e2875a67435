"""Studies that several tests use, and a comparison of results to the bit."""

from __future__ import annotations

import spanloop as sl

st = sl.studies
KEEP = {
    "fast": st.Largest("abs(v.crank_hinge)"),
    "when": st.TimeOfLargest("abs(v.crank_hinge)"),
    "low": st.Smallest("coupler_tip.position.z"),
    "mean": st.Mean("energy.kinetic"),
    "end": st.Last("energy.total"),
    "path": st.Samples("q.crank_hinge"),
}


def four_bar(**changed):
    vary = {
        "coupler.mass": st.Normal(1.0, 0.1, relative=True),
        "coupler_hinge.position.x": st.Uniform(0.95, 1.05, relative=True),
        "v.crank_hinge": st.Uniform(0.5, 2.0),
    }
    given = {"vary": vary, "runs": 37, "seed": 3, "q": sl.zoo.four_bar_start(), "duration": 0.05, "step": 1e-3}
    given |= {"sample": 0.01, "keep": KEEP}
    return sl.Study(sl.zoo.four_bar(), **{**given, **changed})


def arm(**changed):
    """A tree with a controller whose gains vary, an event, and starts that vary."""
    model = sl.zoo.pendulum(2)
    vary = {
        "input.stiffness": st.LogNormal(20.0, 0.5),
        "q.hinge1": st.Uniform(0.1, 1.4),
    }

    def law(t, q, v, u):
        return {"hinge1": -u[0] * q["hinge1"] - u[1] * v["hinge1"]}

    given = {"vary": vary, "runs": 37, "seed": 4, "duration": 0.4, "step": 2e-3, "controller": law}
    given |= {"inputs": {"stiffness": 20.0, "damping": 1.0}, "events": {"inside": lambda t, q, v: q["hinge1"] + 0.05}}
    given |= {"keep": {"fast": st.Largest("abs(v.hinge2)"), "end": "q.hinge2", "work": st.Mean("tau.hinge1")}}
    return sl.Study(model, **{**given, **changed})


def same(a, b):
    assert set(a.data_vars) == set(b.data_vars)
    for name in a.data_vars:
        x, y = a[name].values, b[name].values
        if x.dtype.kind == "f":
            assert x.tobytes() == y.tobytes(), name
        else:
            assert (x == y).all(), name

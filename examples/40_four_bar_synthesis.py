"""Dimensional synthesis of a four-bar: lengths whose coupler curve follows a given one, by differential evolution.

The target is the coupler curve of Hoeken's linkage (crank 1, coupler and rocker 2.5, ground 2, point at 5), which is
nearly straight for half a turn: the answer is known. A run turns the crank once at constant speed and adds up the
squared distance of the coupler's point from where it should be at that time. Lengths are live parameters, so that a
generation is one batch of one compiled kernel; loops are closed for each row of lengths. Four-bars whose crank cannot
turn end in a singular position: they fail, and count as worst.

The page, with figures: docs/examples/40_four_bar_synthesis.md
"""

import numpy as np

import spanloop as sl

st = sl.studies
UNIT = 0.1  # m
HOEKEN = {"crank": 1.0, "coupler": 2.5, "rocker": 2.5, "ground": 2.0, "point": 5.0}
SPEED = 2.0 * np.pi  # rad/s: one turn in a second


def four_bar() -> sl.Model:
    """Every length is the position of a joint, some of them fixed: so each is a parameter of its own."""
    b = sl.Builder("four bar")
    for name in ("crank", "coupler", "rocker"):
        b.body(name, 0.1, inertia=(1e-4,) * 3)
    for name in ("coupler_end", "rocker_end", "point"):
        b.body(name, 0.0, inertia=(0.0,) * 3)
    b.revolute("drive", "world", "crank", "-y")
    b.revolute("pin", "crank", "coupler", "-y", (UNIT * HOEKEN["crank"], 0, 0))
    b.revolute("pivot", "world", "rocker", "-y", (UNIT * HOEKEN["ground"], 0, 0))
    b.fixed("coupler_length", "coupler", "coupler_end", (UNIT * HOEKEN["coupler"], 0, 0))
    b.fixed("rocker_length", "rocker", "rocker_end", (UNIT * HOEKEN["rocker"], 0, 0))
    b.fixed("point_place", "coupler", "point", (UNIT * HOEKEN["point"], 0, 0))
    b.loop("coupler_end", "rocker_end", sl.joints.Revolute((0.0, 1.0, 0.0)), name="closing")
    return b.build().with_gravity((0, 0, 0)).drive("drive")


def start() -> np.ndarray:
    """Crank along the ground, pointing away from it; the elbow is up."""
    model = four_bar()
    return sl.Dynamics(model).assemble({"drive": np.pi, "pin": -2.2, "pivot": 2.1}, fixed=["drive"])


def curve(t):
    """Where the point of Hoeken's linkage is at a time, in closed form: x, z [m]."""
    a, b, c, d, p = (UNIT * x for x in HOEKEN.values())
    x, z = a * np.cos(np.pi + SPEED * t), a * np.sin(np.pi + SPEED * t)  # the crank's pin
    dx, dz = d - x, -z
    away = np.sqrt(dx * dx + dz * dz)
    along = (away * away + b * b - c * c) / (2.0 * away)
    up = np.sqrt(b * b - along * along)
    return x + p / b * (along * dx - up * dz) / away, z + p / b * (along * dz + up * dx) / away


def miss(t, q, v, s):
    """The squared distance of the point from where it should be [cm²]."""
    x, z = curve(t)
    return 1e4 * ((s["point.position.x"] - x) ** 2 + (s["point.position.z"] - z) ** 2)


VARIED = {
    "pin.position.x": "crank",
    "coupler_length.position.x": "coupler",
    "rocker_length.position.x": "rocker",
    "pivot.position.x": "ground",
    "point_place.position.x": "point",
}
ranges = {name: st.Uniform(0.6 * UNIT * HOEKEN[bar], 1.5 * UNIT * HOEKEN[bar]) for name, bar in VARIED.items()}
ranges["point_place.position.z"] = st.Uniform(-0.1, 0.1)
model = four_bar()
turn = {"q": start(), "v": {"drive": SPEED}, "duration": 1.0, "step": 0.005}
study = sl.Study(model, ranges, runs=1000, keep={"miss": st.Mean(miss, unit="cm²")}, **turn)
known = {name: UNIT * HOEKEN[bar] for name, bar in VARIED.items()} | {"point_place.position.z": 0.0}
exact = sl.Study(model, table={n: [x] for n, x in known.items()}, keep={"miss": st.Mean(miss)}, **turn).run()
print(f"Hoeken's own lengths miss the curve by {float(exact.results()['miss'].values[0]):.0e} cm²")

spread = study.run().results()
turning = spread["outcome"].values == "finished"
least = spread["miss"].values[turning].min()
print(f"of 1000 random four-bars {100 * turning.mean():.0f} % turn; the best of them misses by {least:.2f} cm²")

best = study.best("miss", population=120, generations=150, seed=1, tolerance=1e-12)
close = "less" if best.objective < 1e-3 else "more"
print(f"differential evolution, {best.runs} runs: the curve is missed by {close} than 0.001 cm²")
for name, bar in VARIED.items():
    print(f"  {bar}: {best.values[name] / UNIT:.2f}, Hoeken's {HOEKEN[bar]:.1f}")
print(f"  point beside the coupler: {best.values['point_place.position.z'] / UNIT:.2f}, Hoeken's 0.0")
path = {"x": st.Samples("point.position.x"), "z": st.Samples("point.position.z")}
found = sl.Study(model, table={n: [x] for n, x in best.values.items()}, keep=path, sample=0.01, **turn).run()

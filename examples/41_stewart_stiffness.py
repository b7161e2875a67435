"""Workspace and stiffness of a Stewart platform: a study over a grid of positions, most of them out of reach.

In each run the platform starts level at a position, its legs held by springs (servo stiffness) at the lengths that they
have there, and a sideways force pushes it. Where legs would be too long or too short the run ends at once: that is the
edge of the workspace. The displacement after the motion has died out gives the stiffness. Beside it stands the closed
form, K = Jᵀ k J of the legs' directions and moments, at every point of the map.

The page, with figures: docs/examples/41_stewart_stiffness.md
"""

import numpy as np

import spanloop as sl

st = sl.studies
LEGS = [f"slide{k}" for k in range(1, 7)]
STIFFNESS, DAMPING = 1e5, 2e3  # N/m, N s/m of a leg's servo
SHORT, LONG = 1.05, 1.45  # m
FORCE = 100.0  # N, along x
model = sl.zoo.stewart().with_gravity((0, 0, 0))
start = sl.zoo.stewart_start(position=(0.0, 0.0, 1.2), turn=(0.0, 0.0, 0.0))


def leg_ends() -> tuple[np.ndarray, np.ndarray]:
    """Where legs stand on the ground, and where they hold the platform, in its frame: (6, 3) each."""
    feet = np.array([model.joint(f"cardan{k}").placement.position for k in range(1, 7)])
    corners = np.array([f.placement.position for f in model.frames if f.name.startswith("corner")])
    return feet, corners


def legs_at(x, z) -> np.ndarray:
    """Vectors (n, 6, 3) along the legs of a level platform at (x, 0, z)."""
    feet, corners = leg_ends()
    return np.stack([x, 0.0 * x, z], axis=-1)[:, None] + corners - feet


def assign(draws):
    """Positions become coordinates of the platform, and leg lengths the servos' targets."""
    x, z = draws["x"], draws["z"]
    lengths = np.linalg.norm(legs_at(x, z), axis=-1)
    targets = {f"input.{leg}": lengths[:, k] for k, leg in enumerate(LEGS)}
    return {"q.floating[4]": x, "q.floating[6]": z, **targets}


def hold(t, q, v, u):
    return {leg: STIFFNESS * (u[k] - q[leg]) - DAMPING * v[leg] for k, leg in enumerate(LEGS)}


def reach(t, q, v):
    """Positive as long as every leg is between its shortest and longest."""
    room = [np.minimum(LONG - q[leg], q[leg] - SHORT) for leg in LEGS]
    least = room[0]
    for x in room[1:]:
        least = np.minimum(least, x)
    return least


def exact(x, z) -> np.ndarray:
    """The stiffness (n,) along x in closed form: C = (Jᵀ k J)⁻¹ of the platform's six degrees of freedom."""
    _, corners = leg_ends()
    along = legs_at(x, z)
    along = along / np.linalg.norm(along, axis=-1, keepdims=True)
    J = np.concatenate([np.cross(corners, along), along], axis=-1)  # rates of length by [angular; linear] velocity
    C = np.linalg.inv(STIFFNESS * np.swapaxes(J, 1, 2) @ J)
    return 1.0 / C[:, 3, 3]


study = sl.Study(
    model,
    {"x": st.Levels(-0.6, 0.6, 25, unit="m"), "z": st.Levels(0.9, 1.5, 25, unit="m")},
    design="grid",
    assign=assign,
    q=start,
    inputs=dict.fromkeys(LEGS, 1.2),
    controller=hold,
    forces={"platform": [0, 0, 0, FORCE, 0, 0]},
    events={"reach": reach},
    limits="ignore",
    duration=0.4,
    step=1e-3,
    keep={"moved": st.Last("platform.position.x", unit="m"), "speed": st.Last("platform.speed")},
)
results = study.run().results()
x, z = results["x"].values, results["z"].values
inside = results["outcome"].values == "finished"
lengths = np.linalg.norm(legs_at(x, z), axis=-1)
agree = inside == ((lengths > SHORT) & (lengths < LONG)).all(axis=1)
stiffness = np.full(len(x), np.nan)
stiffness[inside] = FORCE / (results["moved"].values - x)[inside]
error = np.abs(stiffness / exact(x, z) - 1.0)[inside]
print(f"{len(study)} positions, {inside.sum()} inside the workspace; leg lengths say the same at {agree.sum()}")
print(f"stiffness along x from {np.nanmin(stiffness) / 1e3:.1f} to {np.nanmax(stiffness) / 1e3:.1f} kN/m")
k = int(np.nanargmax(stiffness))
print(f"stiffest at x = {x[k]:.2f} m, z = {z[k]:.2f} m")
print(f"beside the closed form: off by at most {100 * error.max():.1f} %, as far as the legs turn under the load")
print(f"the platform stands: {results['speed'].values[inside].max():.0e} m/s at most")

"""A stage on two parallel leaf springs: a closed loop of flexible bodies, whose stiffness depends on its load.

Both leaves are clamped below and welded to the stage above; the second weld closes the loop. The weight of the stage
presses the leaves and makes them softer, until they buckle; hanging, it makes them stiffer. The closed form is that of
a guided leaf under an axial load. Meijaard, Brouwer & Jonker (2010) measured such a mechanism.

The page, with figures: docs/examples/36_leaf_guidance.md
"""

import numpy as np

import spanloop as sl

LENGTH, APART, GRAVITY = 0.1, 0.06, 9.81  # m, m, m/s²
LEAF = sl.flexible.rectangle(0.3e-3, 20e-3)  # spring steel, thin in the direction of the sway
YOUNG, DENSITY = 2.1e11, 7800.0
BENDING, WEIGHT = YOUNG * LEAF.Iz, DENSITY * LEAF.area * LENGTH  # N m², kg


def guidance(stage, upward=True, damping=0.0):
    """The mechanism with a stage of this mass [kg]; x is along the leaves, y the direction of the sway."""
    leaf = sl.flexible.beam(LENGTH, E=YOUNG, density=DENSITY, section=LEAF, modes={"y": 2}, damping=damping)
    b = sl.Builder("leaf_guidance", gravity=(-GRAVITY if upward else GRAVITY, 0.0, 0.0))
    b.body("left", flexible=leaf).body("right", flexible=leaf)
    b.body("stage", stage, (0.0, APART / 2, 0.0), (1e-4 * stage,) * 3).frame("seat", "stage", (0.0, APART, 0.0))
    b.fixed("clamp_left", "world", "left").fixed("clamp_right", "world", "right", (0.0, APART, 0.0))
    return b.fixed("weld_left", "left.tip", "stage").loop("seat", "right.tip", name="weld_right").build()


def leaf_stiffness(pull):
    """Sway stiffness [N/m] of a leaf whose ends stay parallel, under an axial pull [N]."""
    u = 0.5 * LENGTH * np.sqrt(abs(pull) / BENDING)
    if pull > 0.0:
        return pull / (LENGTH * (1.0 - np.tanh(u) / u))
    return -pull / (LENGTH * (np.tan(u) / u - 1.0))


def slowest(model):
    """Square of the slowest mode's frequency [rad²/s²], negative where it grows."""
    modes = sl.Dynamics(model).modes(model.neutral())
    return float((-(modes.poles**2)).real.min())


# ---- frequency of the sway under the stage's weight

print("pull [EI/L²]   frequency [rad/s]   closed form")
loads, found, expected = [-8.0, -5.0, -2.0, 2.0, 5.0], [], []
for load in loads:
    pull = load * BENDING / LENGTH**2
    mass = 2.0 * abs(pull) / GRAVITY - WEIGHT  # half of each leaf's weight acts in its middle
    found.append(np.sqrt(slowest(guidance(mass, upward=load < 0.0))))
    moving = mass + 2.0 * WEIGHT * 13.0 / 35.0  # of a leaf bent as an S
    expected.append(np.sqrt(2.0 * leaf_stiffness(pull) / moving))
    print(f"{load:8.0f} {found[-1]:20.4f} {expected[-1]:18.4f}")
assert np.abs(np.array(found) / expected - 1.0)[2:4].max() < 1e-3
assert np.abs(np.array(found) / expected - 1.0).max() < 2e-3

# ---- the mass at which the leaves buckle: π² EI/L² on each

critical = 2.0 * np.pi**2 * BENDING / LENGTH**2 / GRAVITY - WEIGHT
light, heavy = slowest(guidance(0.995 * critical)), slowest(guidance(1.005 * critical))
print(f"critical mass {critical:.4f} kg: with 0.5 % less it sways at {np.sqrt(light):.2f} rad/s,", end=" ")
print(f"with 0.5 % more it falls at {np.sqrt(-heavy):.2f} 1/s")
assert light > 0.0 > heavy

# ---- pushed to the side, it settles; the stage comes down by 3/5 y²/L, and stays parallel

model = guidance(0.2, damping=1.0)
push = {"stage": [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]}  # N
run = sl.simulate(model, duration=3.0, step=5e-4, integrator="rk4", forces=push)
x, y = (run["stage"].position[-1] - run["stage"].position[0])[:2]
stiffness = 2.0 * leaf_stiffness(-0.5 * (0.2 + WEIGHT) * GRAVITY)
print(f"1 N moves it by {1e3 * y:.4f} mm; closed form {1e3 / stiffness:.4f} mm")
print(f"it comes down by {-1e6 * x:.2f} µm; 3/5 y²/L = {0.6e6 * y**2 / LENGTH:.2f} µm")
print(f"the loop is closed to {run.residual:.0e} m")
assert abs(y * stiffness - 1.0) < 5e-3
assert abs(-x / (0.6 * y**2 / LENGTH) - 1.0) < 0.02
assert run.residual < 1e-10

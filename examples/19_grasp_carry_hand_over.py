"""Three PUMAs grasp a disc, carry it, hand it over, put it down and let go: one kernel, eight events.

Arms 1 and 2 take the disc from a table and lift it; arm 3 takes hold, arm 1 lets go; arms 2 and 3 lower the disc until
it touches the table beside its first place, and draw back. Every grasp holds the pose that it finds (capture=True): the
drives are springs and dampers, so that the tools are never quite where they were told to be.

The page, with figures: docs/examples/19_grasp_carry_hand_over.md
"""

import numpy as np

import spanloop as sl
from spanloop import control, events

HOLDING = ("holding1", "holding2", "holding3")
FIRST, HIGH, SECOND = (0.0, 0.0, 1.0), (0.05, 0.08, 1.15), (0.1, 0.15, 1.0)  # places of the disc [m]
BACK = 0.08  # m, from the rim to a tool that has drawn back
STIFFNESS = np.tile((6000.0, 6000.0, 4000.0, 400.0, 400.0, 200.0), 3)  # N m/rad
DAMPING = np.tile((600.0, 700.0, 400.0, 30.0, 30.0, 4.0), 3)  # N m s/rad

# ---- three arms, a disc and two places on the table: five loops that open and close

arms = sl.zoo.three_pumas().remove(*HOLDING)
model = arms
for k, holding in enumerate(HOLDING, 1):
    model = model.with_loop(f"arm{k}_tool", f"grasp{k}", "fixed", name=holding, switchable=True)
for name, place in (("on_first", FIRST), ("on_second", SECOND)):
    model = model.with_frame(f"{name}_place", "world", place)
    model = model.with_loop(f"{name}_place", "object", "fixed", name=name, switchable=True)

# ---- angles of the arms while the disc moves along a line, with the tools at its rim or drawn back

home = sl.zoo.three_pumas_start()


def reaching(back):
    """The arms on tools drawn back by so many metres; their angles follow from the place of the disc."""
    drawn = arms
    for k, holding in enumerate(HOLDING, 1):
        at = arms.frame(f"grasp{k}").placement
        outward = np.array([at.position[0], at.position[1], 0.0]) / np.hypot(*at.position[:2])
        drawn = drawn.with_frame(f"back{k}", "object", at.position + back * outward, at.rotation)
        drawn = drawn.with_loop(f"arm{k}_tool", f"back{k}", "fixed", name=holding)
    robot = sl.Dynamics(drawn, target="python")

    def angles(start, end):
        """(9, 18) at nine places along a line of the disc."""
        q, found = home, []
        for s in np.linspace(0.0, 1.0, 9)[:, None]:
            disc = (1.0 - s) * start + s * end
            q = robot.assemble(np.concatenate([home[:4], disc, q[7:]]), fixed=["floating"])
            found.append(q[7:])
        return np.array(found)

    return angles


at_rim, drawn_back = reaching(0.0), reaching(BACK)


def straight(start, end):
    return start + np.linspace(0.0, 1.0, 9)[:, None] * (end - start)


rest = {place: drawn_back(place, place)[0] for place in (FIRST, HIGH, SECOND)}
rim = {place: at_rim(place, place)[0] for place in (FIRST, HIGH, SECOND)}
MOVES = (  # begin, end [s], arms, their angles on the way
    (0.0, 0.5, (0, 1), straight(rest[FIRST], rim[FIRST])),
    (0.7, 1.5, (0, 1), at_rim(FIRST, HIGH)),
    (0.7, 1.5, (2,), straight(rest[FIRST], rest[HIGH])),
    (1.5, 1.9, (2,), straight(rest[HIGH], rim[HIGH])),
    (2.2, 3.0, (1, 2), at_rim(HIGH, SECOND)),
    (2.2, 3.0, (0,), straight(rim[HIGH], rest[HIGH])),
    (3.3, 3.7, (1, 2), straight(rim[SECOND], rest[SECOND])),
)


def target(t):
    """Angles (18) of the arms at time t, and their rates: each move goes from rest to rest."""
    angles, rates = [*rest[FIRST]], [0.0] * 18
    for begin, end, moved, way in MOVES:
        x = np.clip((t - begin) / (end - begin), 0.0, 1.0)
        s, rate = x**3 * (10.0 - 15.0 * x + 6.0 * x**2), 30.0 * x**2 * (1.0 - x) ** 2 / (end - begin)
        for j in (6 * arm + k for arm in moved for k in range(6)):
            c = np.polyfit(np.linspace(0.0, 1.0, 9), way[:, j], 8)
            angles[j] = angles[j] + np.polyval([*c[:-1], 0.0], s)
            rates[j] = rates[j] + np.polyval(np.polyder(c), s) * rate
    return angles, rates


def drives(t, q, v):
    angles, rates = target(t)
    return np.concatenate([np.zeros(6), STIFFNESS * (angles - q[7:]) + DAMPING * (rates - v[6:])])


def touches(t, q, v):
    """Height of the disc above the table [m], on the way down."""
    return np.where(t > 2.5, q[6] - SECOND[2], 1.0)


# ---- the story

EVENTS = [
    events.Attach("holding1", at=0.6, capture=True),
    events.Attach("holding2", at=0.6, capture=True),
    events.Release("on_first", at=0.65),
    events.Attach("holding3", at=2.0, capture=True),
    events.Release("holding1", at=2.1),
    events.Attach("on_second", when=touches, capture=True),
    events.Release("holding2", at=3.2),
    events.Release("holding3", at=3.2),
]
law = control.together(arms, control.gravity(arms), drives)
start = np.concatenate([home[:7], rest[FIRST]])
closed = sl.Closures(active_loops=["on_first"])
run = sl.simulate(model, start, duration=4.0, controller=law, closures=closed, events=EVENTS)
print(run.events)

audit = run.audit()
energy = audit["energy"]
share = energy.value / energy.bound * 1e-6  # the bound is a millionth of what is at stake
print(f"loops closed to {run.residual:.0e} m, energy to {energy.value:.0e} J, {share:.0e} of what is at stake")
assert run.outcome.finished
assert run.residual < 1e-12
assert share < 1e-6
print("the disc lies at", np.round(run["object"].position[-1], 4), "m")

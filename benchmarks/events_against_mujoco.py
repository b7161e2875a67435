"""Events beside MuJoCo's equality constraints switched on (eq_active): gaps, energy made or lost, time of a step.

python benchmarks/events_against_mujoco.py

Six stories with known answers, in one run on one thread, with steps of 1 ms. A constraint begins to act at t = 0 (the
four-bar falls on its limit later), and what a plastic impact leaves is known: from a closed form, or from a dense
solution with MuJoCo's own mass matrix and Jacobian. Columns: the largest gap of what is attached, from 5 ms after the
event on; the most energy above and below the known one, and what differs at the end; the processor time of a step.

MuJoCo runs with four settings: its defaults; constraints as stiff as its manual allows at this step (solref 2 h, solimp
near 1, solver tolerance 1e-14); the same with RK4; and with the recipe against slip as well (implicitfast, elliptic
cones, impratio 100, noslip), which concerns contacts. Where spanloop captures the pose that it finds, MuJoCo gets it
too, by hand in eq_data; the first story also shows it without.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

import spanloop as sl

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import event_stories

H = 1e-3  # s
SETTLED = 5  # steps after the event that gaps do not count
STIFF = {"solref": (2.0 * H, 1.0), "solimp": (0.9999, 0.9999, 0.001, 0.5, 2.0)}
SETTINGS = {
    "MuJoCo, default": {},
    "MuJoCo, stiff": {"tolerance": 1e-14, **STIFF},
    "MuJoCo, stiff, RK4": {"tolerance": 1e-14, "integrator": "RK4", **STIFF},
    "MuJoCo, stiff, recipe": {"tolerance": 1e-14, "integrator": "implicitfast", "impratio": 100, "noslip": 20, **STIFF},
}


@dataclass(frozen=True)
class Seen:
    """One run: gap of what is attached [m or rad] and energy [J] at each step after the event; time of a step [s]."""

    gap: np.ndarray
    energy: np.ndarray
    step_time: float


@dataclass(frozen=True)
class Story:
    """A story: the energy that must remain [J], and what spanloop and MuJoCo make of it."""

    name: str
    units: tuple[str, ...]
    energy: float
    ours: Callable[[], Seen]
    theirs: Callable[..., Seen]
    variants: tuple[dict, ...] = ({},)


def watched(xml: str, prepare, gap, duration: float, settings: dict, release: float = np.inf) -> Seen:
    """A MuJoCo run; its first equality is switched off at the time `release`."""
    m = mujoco.MjModel.from_xml_string(xml)
    o = m.opt
    o.timestep, o.tolerance = H, settings.get("tolerance", o.tolerance)
    o.integrator = getattr(mujoco.mjtIntegrator, "mjINT_" + settings.get("integrator", "Euler").upper())
    o.impratio, o.noslip_iterations = settings.get("impratio", 1.0), settings.get("noslip", 0)
    o.cone = mujoco.mjtCone.mjCONE_ELLIPTIC if "impratio" in settings else o.cone
    o.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    for places in (m.eq_solref, m.jnt_solref):
        places[:] = settings.get("solref", places)
    for places in (m.eq_solimp, m.jnt_solimp):
        places[:] = settings.get("solimp", places)
    d = mujoco.MjData(m)
    prepare(m, d)
    steps, gaps, energies = round(duration / H), [], []
    seen = mujoco.MjData(m)
    for k in range(steps):
        if k * H > release - 0.5 * H:
            d.eq_active[0] = 0
        mujoco.mj_step(m, d)
        seen.qpos[:], seen.qvel[:], seen.time = d.qpos, d.qvel, d.time
        mujoco.mj_forward(m, seen)
        gaps.append(gap(m, seen))
        energies.append(seen.energy.sum())
    return Seen(np.array(gaps), np.array(energies), min(_step_time(m, prepare, steps, release) for _ in range(15)))


def _step_time(m, prepare, steps: int, release: float) -> float:
    """Processor time of a step, without the bookkeeping [s]."""
    d = mujoco.MjData(m)
    prepare(m, d)
    held = round(min(release / H, steps))
    began = time.thread_time()
    mujoco.mj_step(m, d, held)
    if held < steps:
        d.eq_active[0] = 0
        mujoco.mj_step(m, d, steps - held)
    return (time.thread_time() - began) / steps


def simulated(model: sl.Model, gap, duration: float, **options) -> Seen:
    """A run of spanloop; the time of a step: what a call of 25 times the duration takes longer, with results."""

    def called(duration):
        began = time.thread_time()
        run = sl.simulate(model, duration=duration, **options)
        return run, time.thread_time() - began

    run, _ = called(duration)
    called(25.0 * duration)
    short, long = (min(called(x * duration)[1] for _ in range(7)) for x in (1.0, 25.0))
    return Seen(gap(run), run.energy.sum(axis=-1), (long - short) / round(24.0 * duration / H))


# ---- two boxes, welded


BOXES = """
<mujoco><option gravity="0 0 0"/><worldbody>
  <body name="one"><freejoint/><inertial mass="1" pos="0 0 0" diaginertia=".01 .01 .01"/></body>
  <body name="two" pos=".2 0 0"><freejoint/><inertial mass="1" pos="0 0 0" diaginertia=".01 .01 .01"/></body>
</worldbody><equality><weld name="weld" body1="one" body2="two" active="false"/></equality></mujoco>
"""


def boxes(apart: float, speed: float, name: str, variants) -> Story:
    """Two boxes of 1 kg, as far from the pose of compile time and with the relative speed that are given."""

    def prepare(m, d, capture):
        d.qpos[7] += apart
        d.qvel[6] = speed
        mujoco.mj_forward(m, d)
        if capture:
            m.eq_data[0, 3:10] = relative_pose(d, 1, 2)
        d.eq_active[0] = 1

    def gap(m, d, capture):
        return abs(d.qpos[7] - d.qpos[0] - 0.2 - (apart if capture else 0.0))

    def theirs(settings, capture=True):
        return watched(BOXES, lambda m, d: prepare(m, d, capture), lambda m, d: gap(m, d, capture), 0.2, settings)

    def ours():
        b = sl.Builder("boxes", gravity=(0, 0, 0))
        for body in ("one", "two"):
            b.body(body, 1.0, inertia=(0.01, 0.01, 0.01)).free(f"{body}_free", "world", body)
        model = b.loop("one", "two", "fixed", name="weld", switchable=True).build()
        q = np.concatenate([model.neutral()[:7], model.neutral()[7:] + [0, 0, 0, 0, 0.2 + apart, 0, 0]])
        v = np.array([0.0] * 9 + [speed, 0, 0])
        return simulated(model, lambda run: np.abs(run.q[:, 11] - run.q[:, 4] - 0.2 - apart), q=q, v=v, duration=0.2,
                         events=[sl.events.Attach("weld", at=0.0, capture=True)])  # fmt: skip

    return Story(name, ("mm",), 0.25 * speed**2, ours, theirs, variants)


def relative_pose(d, one: int, two: int) -> np.ndarray:
    """Position and quaternion of a body in another's axes, as eq_data of a weld holds them."""
    back, turn, out = np.zeros(3), np.zeros(4), np.zeros(7)
    mujoco.mju_negPose(back, turn, d.xpos[one], d.xquat[one])
    mujoco.mju_mulPose(out[:3], out[3:], back, turn, d.xpos[two], d.xquat[two])
    return out


# ---- a rod caught at one end

ROD = """
<mujoco><option gravity="0 0 0"/><worldbody>
  <body name="rod"><freejoint/>
    <inertial mass="1" pos="0 0 0" diaginertia=".001 .0833333333333333333 .0833333333333333333"/></body>
</worldbody><equality><connect name="catch" body1="rod" anchor="-.5 0 0" active="false"/></equality></mujoco>
"""


def rod() -> Story:
    """A rod of 1 m and 1 kg flies broadside at 1 m/s and is caught at one end: 3/8 J remain of 1/2."""
    speed, mass = 1.0, 1.0

    def prepare(m, d):
        d.qvel[1] = speed
        d.eq_active[0] = 1

    def gap(m, d):
        return np.linalg.norm(d.xpos[1] + d.xmat[1].reshape(3, 3) @ [-0.5, 0, 0] - [-0.5, 0, 0])

    def ours():
        b = sl.Builder("rod", gravity=(0, 0, 0)).body("rod", mass, inertia=(1e-3, 1 / 12, 1 / 12))
        b.free("flight", "world", "rod").frame("end", "rod", (-0.5, 0, 0)).frame("pin", "world", (-0.5, 0, 0))
        model = b.loop("end", "pin", "spherical", name="catch", switchable=True).build()
        robot = sl.Dynamics(model)
        return simulated(
            model, lambda run: np.linalg.norm(robot.pose(run.q, "end")[:, :3, 3] - [-0.5, 0, 0], axis=-1),
            v=[0, 0, 0, 0, speed, 0], duration=0.5, events=[sl.events.Attach("catch", at=0.0)])  # fmt: skip

    return Story("rod caught at one end, 1 m/s", ("mm",), 0.375 * mass * speed**2, ours,
                 lambda settings: watched(ROD, prepare, gap, 0.5, settings))  # fmt: skip


# ---- a clutch

CLUTCH = """
<mujoco><worldbody>
  <body name="one"><joint name="first" axis="0 0 1"/><inertial mass="1" pos="0 0 0" diaginertia=".2 .2 .3"/></body>
  <body name="two" pos="0 0 .1"><joint name="second" axis="0 0 1"/>
    <inertial mass="1" pos="0 0 0" diaginertia=".5 .5 .7"/></body>
</worldbody><equality><joint name="clutch" joint1="second" joint2="first" active="false"/></equality></mujoco>
"""


def clutch() -> Story:
    """Discs of 0.3 and 0.7 kg m² at 30 and −10 rad/s: 2 J remain (and the potential energy of their places)."""
    spins, moments = np.array([30.0, -10.0]), np.array([0.3, 0.7])
    remains = 0.5 * (spins @ moments) ** 2 / moments.sum() + 9.81 * 0.1

    def prepare(m, d):
        d.qvel[:] = spins
        d.eq_active[0] = 1

    def ours():
        b = sl.Builder("discs").body("one", 1.0, inertia=(0.2, 0.2, 0.3)).body("two", 1.0, inertia=(0.5, 0.5, 0.7))
        b.revolute("first", "world", "one", "z").revolute("second", "world", "two", "z", (0, 0, 0.1))
        model = b.coupling("clutch", "second", "first", switchable=True).build()
        return simulated(model, lambda run: np.abs(run.q[:, 1] - run.q[:, 0]), v=spins, duration=0.5,
                         events=[sl.events.Attach("clutch", at=0.0)])  # fmt: skip

    def gap(m, d):
        return abs(d.qpos[1] - d.qpos[0])

    return Story("clutch of two discs, 40 rad/s", ("mrad",), remains, ours,
                 lambda settings: watched(CLUTCH, prepare, gap, 0.5, settings))  # fmt: skip


# ---- an arm grasps a flying body, holds it and lets go

ARM = """
<mujoco><worldbody>
  <body name="upper"><joint name="shoulder" axis="0 -1 0"/><inertial mass="2" pos=".25 0 0" diaginertia=".002 .04 .04"/>
    <body name="fore" pos=".5 0 0"><joint name="elbow" axis="0 -1 0"/>
      <inertial mass="1" pos=".2 0 0" diaginertia=".001 .013 .013"/></body></body>
  <body name="part"><freejoint/><inertial mass=".5" pos="0 0 0" diaginertia=".001 .002 .003"/></body>
</worldbody><equality><weld name="grip" body1="fore" body2="part" active="false"/></equality></mujoco>
"""
PLACE, FLIGHT, ANGLES, RATES, HELD = (0.9, 0.0, 0.3), (-0.5, 0.0, 2.0), (0.3, 0.2), (1.0, -2.0), 0.3


def grasp() -> Story:
    """A flying part is grasped where it is at t = 0, carried through gravity, and let go after 0.3 s."""

    def prepare(m, d):
        d.qpos[:2], d.qvel[:2] = ANGLES, RATES
        d.qpos[2:5], d.qvel[2:5] = PLACE, FLIGHT
        mujoco.mj_forward(m, d)
        m.eq_data[0, 3:10] = relative_pose(d, 2, 3)
        d.eq_active[0] = 1

    m = mujoco.MjModel.from_xml_string(ARM)
    m.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    d = mujoco.MjData(m)
    prepare(m, d)
    mujoco.mj_forward(m, d)
    M, rows = np.zeros((m.nv, m.nv)), d.efc_J.reshape(-1, m.nv)
    mujoco.mj_fullM(m, d, M)
    jump = rows @ d.qvel
    lost = 0.5 * jump @ np.linalg.lstsq(rows @ np.linalg.solve(M, rows.T), jump, rcond=1e-12)[0]
    remains = d.energy.sum() - lost

    def gap(m, d):
        off = relative_pose(d, 2, 3)[:3] - m.eq_data[0, 3:6]
        return np.linalg.norm(off) if d.time < HELD + 0.5 * H else 0.0

    def theirs(settings):
        return watched(ARM, prepare, gap, 2.0 * HELD, settings, HELD)

    def ours():
        b = sl.Builder("arm").body("upper", 2.0, (0.25, 0, 0), (0.002, 0.04, 0.04))
        b.body("fore", 1.0, (0.2, 0, 0), (0.001, 0.013, 0.013)).body("part", 0.5, inertia=(0.001, 0.002, 0.003))
        b.revolute("shoulder", "world", "upper", "-y").revolute("elbow", "upper", "fore", "-y", (0.5, 0, 0))
        b.free("flight", "world", "part")
        model = b.loop("fore", "part", "fixed", name="grip", switchable=True).build()
        q, v = np.array([*ANGLES, 1, 0, 0, 0, *PLACE]), np.array([*RATES, 0, 0, 0, *FLIGHT])
        robot = sl.Dynamics(model)

        def gap(run):
            fore, part = robot.pose(run.q, "fore"), robot.pose(run.q, "part")
            seen = np.einsum("nji,nj->ni", fore[:, :3, :3], part[:, :3, 3] - fore[:, :3, 3])
            return np.where(run.times < HELD + 0.5 * H, np.linalg.norm(seen - seen[0], axis=-1), 0.0)

        events = [sl.events.Attach("grip", at=0.0, capture=True), sl.events.Release("grip", at=HELD)]
        return simulated(model, gap, q=q, v=v, duration=2.0 * HELD, events=events)

    return Story("arm grasps a flying part", ("mm",), remains, ours, theirs)


# ---- a four-bar falls on the limit of its crank

STOP = 0.3  # rad
REST = 0.2  # s after the impact that is watched
FOUR_BAR = """
<mujoco><compiler angle="radian"/><worldbody>
  <body name="crank"><joint axis="0 -1 0" limited="true" range="{stop} 6"/>
    <inertial mass="1" pos=".5 0 0" diaginertia="{0} {1} {1}"/>
    <body name="coupler" pos="1 0 0"><joint axis="0 -1 0"/><inertial mass="1" pos="1.1 0 0" diaginertia="{0} {2} {2}"/>
      <site name="a" pos="2.2 0 0"/></body></body>
  <body name="rocker" pos="2 0 0"><joint axis="0 -1 0"/><inertial mass="1" pos=".9 0 0" diaginertia="{0} {3} {3}"/>
    <site name="b" pos="1.8 0 0"/></body>
</worldbody><equality><connect site1="a" site2="b"/></equality></mujoco>
"""


def four_bar() -> Story:
    """The zoo's four-bar falls from rest on the lower limit of its crank and stays there."""
    (impact, _), *_ = event_stories.FourBar().impacts(np.pi / 3, STOP, 0.6, 1)
    start, duration = sl.zoo.four_bar_start(), round(impact + REST, 3)
    xml = FOUR_BAR.format(0.00125, *((3 * 0.05**2 + x**2) / 12 for x in (1.0, 2.2, 1.8)), stop=STOP)
    model = sl.zoo.four_bar().with_joint("crank_hinge", lower=STOP, upper=6.0)
    first = int(impact / H) + 1
    rest = 9.81 * float(event_stories.FourBar().height(STOP))

    def prepare(m, d):
        d.qpos[:] = start

    def theirs(settings):
        def gap(m, d):
            return max(0.0, STOP - d.qpos[0]), np.linalg.norm(d.site_xpos[1] - d.site_xpos[0])

        seen = watched(xml, prepare, gap, duration, settings)
        return Seen(seen.gap[first:], seen.energy[first:], seen.step_time)

    def ours():
        def gap(run):
            return np.stack([np.maximum(0.0, STOP - run.q[:, 0]), np.full(len(run.q), run.residual)], axis=-1)

        seen = simulated(model, gap, q=start, duration=duration, limits="stop")
        last = round(REST / H)
        return Seen(seen.gap[-last:], seen.energy[-last:], seen.step_time)

    return Story("four-bar falls on the limit of its crank", ("mrad", "mm of the loop"), rest, ours, theirs)


HEAD = "| | largest gap | most energy made [J] | most lost [J] | at the end [J] | time of a step [µs] |"


def row(name: str, story: Story, seen: Seen) -> str:
    gaps = 1e3 * seen.gap[SETTLED:].reshape(len(seen.gap) - SETTLED, -1).max(axis=0)
    off = seen.energy[SETTLED:] - story.energy
    gap = ", ".join(f"{x:.2g} {unit}" for x, unit in zip(gaps, story.units, strict=True))
    made, lost = np.maximum(off.max(), 0.0), np.maximum(-off.min(), 0.0) + 0.0
    return f"| {name} | {gap} | {made:.2g} | {lost:.2g} | {off[-1]:+.2g} | {1e6 * seen.step_time:.2f} |"


def main() -> None:
    stories = [
        boxes(0.005, 0.0, "boxes welded 5 mm off, at rest", ({"capture": False}, {"capture": True})),
        boxes(0.005, 0.5, "boxes welded at 0.5 m/s", ({},)),
        rod(),
        clutch(),
        grasp(),
        four_bar(),
    ]
    for story in stories:
        print(f"\n**{story.name}** ({story.energy:.4g} J must remain)\n\n{HEAD}\n|---|---|---|---|---|---|")
        print(row("spanloop", story, story.ours()))
        for name, settings in SETTINGS.items():
            for variant in story.variants:
                note = "" if variant.get("capture", True) else ", pose of compile time"
                print(row(name + note, story, story.theirs(settings, **variant)))


if __name__ == "__main__":
    main()

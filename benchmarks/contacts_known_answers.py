"""Contacts with known answers, beside MuJoCo in one run, and the order of the step: two tables for docs/contacts.md.

python benchmarks/contacts_known_answers.py

The stories are those of tests/contacts (tests/support/contact_stories.py); each has one number whose closed form is
known. The first table shows how far it is off with steps of 1 ms; the second what becomes of that with the step.

MuJoCo runs with three settings: its defaults; contacts as stiff as its manual allows at this step (solref 2 h, solimp
near 1, solver tolerance 1e-14); and the recipe against slip as well (implicitfast, elliptic cones, impratio 100, noslip
20). Its coefficients of rolling and torsional friction are 0 (condim 3). It has no restitution.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

import spanloop as sl

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import contact_stories as known

H = 1e-3  # s
G = known.G
SETTINGS = {"default": {}, "stiff": {"stiff": True}, "recipe": {"stiff": True, "recipe": True}}
STEPS = (4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4)  # s


@dataclass(frozen=True)
class Story:
    """A number with a known answer: what ours and MuJoCo's runs are off by, in a unit.

    ours(step, contacts) and theirs(settings) return the error; theirs is None where MuJoCo has no such model.
    """

    name: str
    unit: str
    ours: Callable[[float, str], float]
    theirs: Callable[[dict], float] | None = None


def simulated(model: sl.Model, q, v, duration: float, step: float, contacts: str, **options):
    """A run of spanloop with its first and last sample of every step."""
    return sl.simulate(model, q, v, duration=duration, step=step, contacts=contacts, **options)


def watched(xml: str, duration: float, settings: dict, prepare=lambda m, d: None):
    """Model and data of MuJoCo after a run, and q and v of every step."""
    m = mujoco.MjModel.from_xml_string(xml)
    m.opt.timestep = H
    if settings.get("stiff"):
        m.opt.tolerance = 1e-14
        for solref, solimp in ((m.geom_solref, m.geom_solimp), (m.pair_solref, m.pair_solimp)):
            solref[:], solimp[:] = (2.0 * H, 1.0), (0.9999, 0.9999, 0.001, 0.5, 2.0)
    if settings.get("recipe"):
        m.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        m.opt.cone, m.opt.impratio, m.opt.noslip_iterations = mujoco.mjtCone.mjCONE_ELLIPTIC, 100, 20
    d = mujoco.MjData(m)
    prepare(m, d)
    q, v = [d.qpos.copy()], [d.qvel.copy()]
    for _ in range(round(duration / H)):
        mujoco.mj_step(m, d)
        q.append(d.qpos.copy())
        v.append(d.qvel.copy())
    return np.array(q), np.array(v)


def scene(body: str, friction: float, gravity=(0.0, 0.0, -G), floor: bool = True) -> str:
    """A world with a floor and what stands on it."""
    ground = '<geom type="plane" size="50 50 1" condim="3"/>' if floor else ""
    pull = " ".join(map(repr, map(float, gravity)))
    return f"""<mujoco><option gravity="{pull}"/><default><geom friction="{friction} 0 0" condim="3"/></default>
    <worldbody>{ground}{body}</worldbody></mujoco>"""


def box_xml(size=(0.4, 0.3, 0.2), mass: float = 2.0, pos: str = "0 0 .1", quat: str = "1 0 0 0") -> str:
    half = " ".join(str(x / 2) for x in size)
    return f'<body pos="{pos}" quat="{quat}"><freejoint/><geom type="box" size="{half}" mass="{mass}"/></body>'


BALL = '<body pos="0 0 {}"><freejoint/><geom type="sphere" size=".1" mass="1"/></body>'


# ---- stories


def creep() -> Story:
    """Speed of a box on a slope of 20°, µ = 0.5, after 1 s."""
    angle, model = np.radians(20.0), known.box(0.5)
    row = known.on_slopes(model, [angle])[0]

    def ours(step, contacts):
        run = simulated(model, known.at(z=0.1), None, 1.0, step, contacts, parameters=row)
        return np.linalg.norm(run.v[-1, 3:])

    def theirs(settings):
        _, v = watched(scene(box_xml(), 0.5, known.slope(angle)), 1.0, settings)
        return np.linalg.norm(v[-1, :3])

    return Story("box on a slope of 20°, µ = 0.5: creep", "m/s", ours, theirs)


def slide() -> Story:
    """Acceleration of a box on a slope of 30°, from its speed between 0.2 and 1 s."""
    angle, model = np.radians(30.0), known.box(0.5)
    row, a = known.on_slopes(model, [angle])[0], G * (np.sin(angle) - 0.5 * np.cos(angle))

    def ours(step, contacts):
        run = simulated(model, known.at(z=0.1), None, 1.0, step, contacts, parameters=row)
        return abs((run.v[-1, 3] - run.v[len(run.v) // 5, 3]) / (run.times[-1] - run.times[len(run.v) // 5]) - a)

    def theirs(settings):
        _, v = watched(scene(box_xml(), 0.5, known.slope(angle)), 1.0, settings)
        return abs((v[-1, 0] - v[len(v) // 5, 0]) / (H * (len(v) - 1 - len(v) // 5)) - a)

    return Story("the same at 30°: acceleration", "m/s²", ours, theirs)


def stop() -> Story:
    way = 2.0**2 / (2 * 0.3 * G)

    def ours(step, contacts):
        return abs(simulated(known.box(0.3), known.at(z=0.1), [0, 0, 0, 2.0, 0, 0], 1.0, step, contacts).q[-1, 4] - way)

    def theirs(settings):
        q, _ = watched(scene(box_xml(), 0.3), 1.0, settings, lambda m, d: d.qvel.__setitem__(0, 2.0))
        return abs(q[-1, 0] - way)

    return Story("box at 2 m/s, µ = 0.3: way to rest", "m", ours, theirs)


def bounce() -> Story:
    """Largest error of the height over 16 heights of fall, up to the fourth impact."""
    heights = np.linspace(0.8, 1.2, 16)

    def ours(step, contacts):
        run = simulated(known.falling_ball(0.5), heights[:, None], None, 1.0, step, contacts)
        exact = np.stack([known.bouncing_height(run.times, x, 0.5) for x in heights])
        return np.abs(run.q[..., 0] - exact).max(axis=-1).mean()

    return Story("ball from 1 m, e = 0.5: height in the first second", "m", ours)


def spin(rate: float, end: float) -> Story:
    def ours(step, contacts):
        run = simulated(known.sphere(0.2), known.at(z=1.0), [0, rate, 0, 0, 0, 0], 1.0, step, contacts)
        return abs(0.1 * run.v[-1, 1] - end)

    def theirs(settings):
        _, v = watched(scene(BALL.format(1.0), 0.2), 1.0, settings, lambda m, d: d.qvel.__setitem__(4, rate))
        return abs(v[-1, 0] - end)

    return Story(f"ball falls 0.9 m with {rate:g} rad/s: speed after it", "m/s", ours, theirs)


def billiard() -> Story:
    speed, friction, time = 2.0, 0.2, 0.5
    rolls, slid = 2 * speed / (7 * friction * G), 12 * speed**2 / (49 * friction * G)
    way = slid + 5 / 7 * speed * (time - rolls)

    def ours(step, contacts):
        run = simulated(known.sphere(friction), known.at(z=0.1), [0, 0, 0, speed, 0, 0], time, step, contacts)
        return abs(run.q[-1, 4] - way)

    def theirs(settings):
        q, _ = watched(scene(BALL.format(0.1), friction), time, settings, lambda m, d: d.qvel.__setitem__(0, speed))
        return abs(q[-1, 0] - way)

    return Story("billiard ball at 2 m/s: way in 0.5 s", "m", ours, theirs)


def turntable() -> Story:
    place, velocity, rate, time = (0.3, 0.1), (0.2, 0.4), 5.0, 2.0
    q0, v0 = known.rolling_start(place, velocity, rate)
    end = known.on_the_turntable([time], place, velocity, rate)[0]
    xml = scene(
        '<body pos="0 0 -.5"><joint axis="0 0 1"/><geom type="cylinder" size="3 .5" mass="1e7"/></body>'
        '<body pos=".3 .1 .05"><freejoint/><geom type="sphere" size=".05" mass=".1"/></body>',
        0.5,
        floor=False,
    )

    def ours(step, contacts):
        return np.linalg.norm(simulated(known.turntable(), q0, v0, time, step, contacts).q[-1, 5:7] - end)

    def theirs(settings):
        def prepare(m, d):
            d.qvel[:] = [v0[0], *v0[4:7], *v0[1:4]]

        return np.linalg.norm(watched(xml, time, settings, prepare)[0][-1, 1:3] - end)

    return Story("ball on a turntable: place after 2 s", "m", ours, theirs)


def rocking() -> Story:
    """Tilt of a block to the other side after its first impact."""
    block, tilt, time = known.RockingBlock(0.1, 0.4), 0.1, 0.6
    size = (2 * block.b, 0.3, 2 * block.h)
    start = block.tilted(tilt)
    rebound = block.rebound(tilt)

    def highest(w, y):
        return abs(-(2 * np.arctan2(y, w)).min() - rebound)

    def ours(step, contacts):
        run = simulated(known.box(0.6, size=size), start, None, time, step, contacts)
        return highest(run.q[:, 0], run.q[:, 2])

    def theirs(settings):
        place, turn = (" ".join(map(str, x)) for x in (start[4:], start[:4]))
        q, _ = watched(scene(box_xml(size, 2.0, place, turn), 0.6), time, settings)
        return highest(q[:, 3], q[:, 5])

    return Story("rocking block, b/h = 1/4: tilt after the first impact", "rad", ours, theirs)


def oscillator() -> Story:
    story = known.CoulombOscillator(0.2, 6.0)
    start, time = 10.4 * story.step, 4.0
    end = float(story.place([time], start)[0])
    xml = scene(
        f'<body><joint type="slide" axis="1 0 0" stiffness="{story.frequency**2}"/><joint type="slide" axis="0 0 1"/>'
        '<geom type="sphere" size=".05" pos="0 0 .05" mass="1"/></body>',
        story.friction,
    )

    def ours(step, contacts):
        return abs(simulated(story.model(), [start, 0.0], None, time, step, contacts).q[-1, 0] - end)

    def theirs(settings):
        q, _ = watched(xml, time, settings, lambda m, d: d.qpos.__setitem__(0, start))
        return abs(q[-1, 0] - end)

    return Story("mass on a spring, Coulomb friction: place after 4 s", "m", ours, theirs)


def balls_on_a_box() -> Story:
    """SimBenchmark's rolling test: the balls' mean acceleration over 0.5 s from rest."""
    time, half = 0.5, np.sqrt(0.5)
    pull = 150.0 * np.array([half, half, 0.0])

    def ours(step, contacts):
        run = simulated(
            known.box_under_balls(), known.box_under_balls_start(), None, time, step, contacts,
            forces={"box": [0, 0, 0, *pull]}, sample=time)  # fmt: skip
        moved = run.q[-1].reshape(-1, 7)[1:, 4:6] - run.q[0].reshape(-1, 7)[1:, 4:6]
        return np.abs(moved @ [half, half] * 2 / time**2 - known.BALL_ACCELERATION).max()

    def theirs(settings):
        body = '<body pos="0 0 .1"><freejoint/><geom name="box" type="box" size="2 2 .1" mass="10"/></body>'
        pairs = ""
        for k, q in enumerate(known.box_under_balls_start().reshape(-1, 7)[1:]):
            shape = f'<geom name="ball{k}" type="sphere" size=".1" mass="1" contype="0"/>'
            body += f'<body pos="{q[4]} {q[5]} {q[6]}"><freejoint/>{shape}</body>'
            pairs += f'<pair geom1="box" geom2="ball{k}" friction=".8 .8 0 0 0"/>'
        xml = scene(body, 0.4).replace("</mujoco>", f"<contact>{pairs}</contact></mujoco>")

        def prepare(m, d):
            d.xfrc_applied[1, :3] = pull

        q, _ = watched(xml, time, settings, prepare)
        moved = q[-1].reshape(-1, 7)[1:, :2] - q[0].reshape(-1, 7)[1:, :2]
        return np.abs(moved @ [half, half] * 2 / time**2 - known.BALL_ACCELERATION).max()

    return Story("25 balls on a box that is pulled: their acceleration", "m/s²", ours, theirs)


def pinched() -> Story:
    weight, friction = 0.05 * G, 0.5
    press = 20 * weight / (2 * friction)
    model = known.pinched_capsule(friction)
    body = "".join(
        f'<body pos="{side * 0.02} 0 0"><joint name="{name}" type="slide" axis="{-side} 0 0"/>'
        '<geom type="box" size=".01 .05 .05" mass=".2"/></body>'
        for name, side in (("left", -1.0), ("right", 1.0))
    )
    body += (
        '<body><freejoint/><geom type="capsule" size=".01 .03" euler="90 0 0" mass=".05"/></body></worldbody><actuator>'
        '<motor joint="left" ctrlrange="-1e3 1e3"/><motor joint="right" ctrlrange="-1e3 1e3"/></actuator><worldbody>'
    )

    def ours(step, contacts):
        tau = {"left_slide": press, "right_slide": press}
        return np.abs(simulated(model, model.neutral(), None, 1.0, step, contacts, tau=tau).v[-1]).max()

    def theirs(settings):
        q, _ = watched(
            scene(body, friction, floor=False), 1.0, settings, lambda m, d: d.ctrl.__setitem__(slice(0, 2), press)
        )
        return abs(q[-1, 4] - q[len(q) // 2, 4]) / 0.5

    return Story("pinched capsule, 20 times the force it needs: creep", "m/s", ours, theirs)


STORIES = [
    creep(), slide(), stop(), bounce(), spin(50.0, 10 / 7), spin(10.0, 2 / 7), billiard(), turntable(), rocking(),
    oscillator(), balls_on_a_box(), pinched()]  # fmt: skip
ORDERS = (2, 3, 4, 5, 6, 7, 8, 9)  # numbers of the stories whose error depends on the step


def main() -> None:
    print(
        "| off by | unit | spanloop, steps | spanloop, events | " + " | ".join(f"MuJoCo, {x}" for x in SETTINGS) + " |"
    )
    print("|---|---|" + "---|" * (2 + len(SETTINGS)))
    for story in STORIES:
        ours = [story.ours(H, contacts) for contacts in ("steps", "events")]
        theirs = ["–" if story.theirs is None else f"{story.theirs(s):.1e}" for s in SETTINGS.values()]
        print(f"| {story.name} | {story.unit} | " + " | ".join([*(f"{x:.1e}" for x in ours), *theirs]) + " |")
    print(
        "\n| steps | " + " | ".join(f"{1e3 * h:g} ms" for h in STEPS) + " | order | events, order |\n|---|" + "---|" * 7
    )
    for k in ORDERS:
        story = STORIES[k]
        errors, located = ([story.ours(h, contacts) for h in STEPS] for contacts in ("steps", "events"))
        cells = [f"{x:.1e}" for x in errors] + [order(errors), order(located)]
        print(f"| {story.name} | " + " | ".join(cells) + " |")


def order(errors) -> str:
    """Slope of the errors over the steps."""
    return "exact" if max(errors) < 1e-11 else f"{np.polyfit(np.log(STEPS), np.log(errors), 1)[0]:.1f}"


if __name__ == "__main__":
    main()

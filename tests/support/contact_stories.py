"""Mechanisms on the ground whose motion is known: models, and their answers in closed form or by quadrature.

A function named after a thing returns its model; the answers share nothing with spanloop. A slope is gravity that is
tilted by an angle: it falls along +x. Free bodies have q = (quaternion w x y z, position) and v = (rates, speed) in the
body's axes.
"""

from __future__ import annotations

from dataclasses import dataclass

import mpmath
import numpy as np

import spanloop as sl

G = 9.81
UPRIGHT = (1.0, 0.0, 0.0, 0.0)


def slope(angle: float) -> tuple[float, float, float]:
    """Gravity on a slope that falls along +x by an angle [rad]."""
    return (G * np.sin(angle), 0.0, -G * np.cos(angle))


def on_slopes(model: sl.Model, angles) -> np.ndarray:
    """Live parameters (n, k) of runs side by side, each with a slope of its own."""
    values = np.array(model.parameters().values)
    rows = np.tile(values, (len(angles), 1))
    rows[:, :3] = [slope(x) for x in angles]
    return rows


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    """Coordinates of an upright free body with its origin at a place [m]."""
    return np.array([*UPRIGHT, x, y, z])


# ---- bodies on the ground


def box_inertia(mass: float, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Of a uniform box with edges x, y, z [m] about its centre [kg m²]."""
    return (mass * (y * y + z * z) / 12, mass * (x * x + z * z) / 12, mass * (x * x + y * y) / 12)


def box(friction: float, size=(0.4, 0.3, 0.2), mass: float = 2.0, **contact) -> sl.Model:
    """A box on the ground: 8 candidates, of which 4 touch."""
    b = sl.Builder("box").body("box", mass, inertia=box_inertia(mass, *size)).free("free", "world", "box")
    return b.build().with_contact("base", ("box", sl.contacts.Box(*size)), "ground", friction=friction, **contact)


def prism(friction: float, radius: float = 0.2, height: float = 0.2, mass: float = 2.0) -> sl.Model:
    """An octagonal prism on the ground: 16 candidates, of which 8 touch."""
    turns = [(radius * np.cos(k * np.pi / 4), radius * np.sin(k * np.pi / 4)) for k in range(8)]
    corners = [(x, y, side * height / 2) for side in (-1, 1) for x, y in turns]
    b = sl.Builder("prism").body("prism", mass, inertia=(0.03, 0.03, 0.04)).free("free", "world", "prism")
    return b.build().with_contact("base", ("prism", sl.contacts.Hull(corners)), "ground", friction=friction)


def sphere(friction: float, radius: float = 0.1, mass: float = 1.0, **contact) -> sl.Model:
    """A uniform sphere on the ground."""
    b = sl.Builder("sphere").body("ball", mass, inertia=(0.4 * mass * radius**2,) * 3).free("free", "world", "ball")
    return b.build().with_contact("base", ("ball", sl.contacts.Sphere(radius)), "ground", friction=friction, **contact)


def disc(friction: float, radius: float = 0.1, length: float = 0.06, mass: float = 1.0) -> sl.Model:
    """A uniform cylinder that rolls along x: the axis of its shape is the body's y."""
    across = mass * (3 * radius**2 + length**2) / 12
    shape = sl.contacts.Cylinder(radius, length, rotation=(np.pi / 2, 0, 0))
    b = sl.Builder("disc").body("disc", mass, inertia=(across, mass * radius**2 / 2, across)).free("f", "world", "disc")
    return b.build().with_contact("base", ("disc", shape), "ground", friction=friction)


def falling_ball(restitution: float, resting: float = 1e-3, radius: float = 0.05) -> sl.Model:
    """A sphere that moves along z alone; its coordinate is the height of its lowest point."""
    b = (
        sl.Builder("ball")
        .body("ball", 1.0, inertia=(1e-3,) * 3)
        .prismatic("height", "world", "ball", "z", (0, 0, radius))
    )
    shape = ("ball", sl.contacts.Sphere(radius))
    return b.build().with_contact("floor", shape, "ground", restitution=restitution, resting=resting)


# ---- bouncing


def bouncing_height(t, height: float, restitution: float):
    """Height [m] of a ball at times t that was dropped at rest, before it has come to rest."""
    t = np.asarray(t, dtype=float)
    fall, speed = np.sqrt(2 * height / G), np.sqrt(2 * G * height)
    out, begin = height - G * t * t / 2, fall
    while begin < t.max():
        speed *= restitution
        if speed < 1e-12:
            break
        since, length = t - begin, 2 * speed / G
        out = np.where(since >= 0, np.where(since <= length, speed * since - G * since**2 / 2, 0.0), out)
        begin += length
    return out


def impact_times(height: float, restitution: float, n: int) -> np.ndarray:
    """Times [s] of the first n impacts of a ball that is dropped at rest."""
    fall = np.sqrt(2 * height / G)
    return fall * (1 + 2 * np.cumsum([0.0, *(restitution**k for k in range(1, n))]))


# ---- a block that rocks on its edges


@dataclass(frozen=True)
class RockingBlock:
    """A block of width 2b and height 2h that rocks about its lower edges, without bouncing or sliding."""

    b: float
    h: float

    @property
    def slant(self) -> float:
        """Angle between the side and the diagonal [rad]."""
        return float(np.arctan2(self.b, self.h))

    @property
    def rate(self) -> float:
        """p of p² = 3g/4R [1/s]."""
        return float(np.sqrt(0.75 * G / np.hypot(self.b, self.h)))

    @property
    def kept(self) -> float:
        """Share of the angular velocity that an impact keeps: 1 − 3/2 sin² α."""
        return 1.0 - 1.5 * float(np.sin(self.slant)) ** 2

    def fall(self, tilt: float) -> float:
        """Time [s] from rest at a tilt [rad] to the impact, by quadrature in forty digits."""
        with mpmath.workdps(40):
            a, p, top = mpmath.mpf(self.slant), mpmath.mpf(self.rate), mpmath.mpf(tilt)

            def inverse_rate(x):
                return 1 / (p * mpmath.sqrt(2 * (mpmath.cos(a - top) - mpmath.cos(a - x))))

            return float(mpmath.quad(inverse_rate, [0, top]))

    def rate_at_impact(self, tilt: float) -> float:
        """Angular velocity [rad/s] just before the impact, from rest at a tilt."""
        return self.rate * float(np.sqrt(2 * (np.cos(self.slant - tilt) - np.cos(self.slant))))

    def rebound(self, tilt: float) -> float:
        """The tilt to the other side that follows [rad]: energy of the rest of the motion."""
        rate = self.kept * self.rate_at_impact(tilt)
        return self.slant - float(np.arccos(np.cos(self.slant) + 0.5 * (rate / self.rate) ** 2))

    def tilted(self, tilt: float) -> np.ndarray:
        """Coordinates of the block that stands on its lower edge at x = +b, tilted about it by an angle [rad]."""
        turn = np.array([[np.cos(tilt), np.sin(tilt)], [-np.sin(tilt), np.cos(tilt)]])  # about +y
        x, z = turn @ (-self.b, self.h)
        return np.array([np.cos(tilt / 2), 0.0, np.sin(tilt / 2), 0.0, self.b + x, 0.0, z])


# ---- friction


@dataclass(frozen=True)
class CoulombOscillator:
    """A mass on a spring and a rough floor: amplitudes fall by 2µg/ω² each half period."""

    friction: float
    frequency: float  # ω [rad/s]

    @property
    def step(self) -> float:
        """µg/ω² [m]: where the spring is as strong as friction."""
        return self.friction * G / self.frequency**2

    def model(self) -> sl.Model:
        b = sl.Builder("oscillator").body("carriage").body("mass", 1.0, inertia=(1e-3,) * 3)
        b.prismatic("x", "world", "carriage", "x", stiffness=self.frequency**2).prismatic("z", "carriage", "mass", "z")
        return b.build().with_contact("floor", ("mass", sl.contacts.Point()), "ground", friction=self.friction)

    def place(self, t, start: float):
        """x(t) [m] from rest at `start` > 0, with its last turning point kept for ever."""
        half = np.pi / self.frequency
        t = np.asarray(t, dtype=float)
        amplitude, k, out = start, 0, np.full(t.shape, start)
        while abs(amplitude) > self.step:
            side = np.sign(amplitude)
            center = side * self.step
            inside = t >= k * half
            turned = np.minimum(self.frequency * (t - k * half), np.pi)
            out = np.where(inside, center + (amplitude - center) * np.cos(turned), out)
            amplitude, k = 2 * center - amplitude, k + 1
        return out


# ---- rolling


def turntable() -> sl.Model:
    """A ball on a turntable that is too heavy to feel it; coordinates: the table's angle, then the ball's."""
    b = sl.Builder("turntable").body("table", 1e7, inertia=(6e6, 6e6, 1e7)).revolute("axle", "world", "table")
    b.body("ball", 0.1, inertia=(0.4 * 0.1 * 0.05**2,) * 3).free("free", "world", "ball")
    model = b.build()
    return model.with_contact("grip", ("ball", sl.contacts.Sphere(0.05)), ("table", sl.contacts.Plane()), friction=0.5)


def rolling_start(place, velocity, table: float, radius: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """q and v of the turntable model: a ball that rolls with a velocity (2,) [m/s] on a table of a rate [rad/s]."""
    (x, y), (vx, vy) = place, velocity
    spin = ((table * x - vy) / radius, (vx + table * y) / radius)
    return np.array([0.0, *at(x, y, radius)]), np.array([table, *spin, 0.0, vx, vy, 0.0])


def on_the_turntable(t, place, velocity, table: float) -> np.ndarray:
    """Places (n, 2) [m] of the ball at times t: a circle at 2/7 of the table's rate."""
    k = 2.0 / 7.0 * table
    r, v = np.array(place, dtype=float), np.array(velocity, dtype=float)
    center = r + np.array([-v[1], v[0]]) / k
    c, s = np.cos(k * np.asarray(t)), np.sin(k * np.asarray(t))
    x, y = r - center
    return center + np.stack([c * x - s * y, s * x + c * y], axis=-1)


BALLS = 5  # a side
DRAG = {"box": 150.0 - 0.4 * 35 * G}  # N: the push less what the ground takes
BOX_ACCELERATION = DRAG["box"] / (10 + 25 * 2 / 7)
BALL_ACCELERATION = 2 / 7 * BOX_ACCELERATION


def box_under_balls() -> sl.Model:
    """SimBenchmark's rolling test: 25 balls of 1 kg on a box of 10 kg that is pulled over the ground."""
    size = (4.0, 4.0, 0.2)
    b = (
        sl.Builder("balls on a box")
        .body("box", 10.0, inertia=box_inertia(10.0, *size))
        .free("box_free", "world", "box")
    )
    for k in range(BALLS**2):
        b.body(f"ball{k}", 1.0, inertia=(0.4 * 0.1**2,) * 3).free(f"free{k}", "world", f"ball{k}")
    model = b.build().with_contact("box", ("box", sl.contacts.Box(*size)), "ground", friction=0.4)
    for k in range(BALLS**2):
        ball = (f"ball{k}", sl.contacts.Sphere(0.1))
        model = model.with_contact(f"ball{k}", ball, ("box", sl.contacts.Box(*size)), friction=0.8)
    return model


def box_under_balls_start() -> np.ndarray:
    """Coordinates: the box on the ground, the balls in a grid of 0.6 m on it."""
    places = [at(0.6 * (k % BALLS - 2), 0.6 * (k // BALLS - 2), 0.3) for k in range(BALLS**2)]
    return np.concatenate([at(0, 0, 0.1), *places])


# ---- a grip and a rod


def pinched_capsule(friction: float = 0.5) -> sl.Model:
    """A capsule along y between two plates that press along x; it would fall along z."""
    b = sl.Builder("pinch")
    for name, side in (("left", -1.0), ("right", 1.0)):
        b.body(name, 0.2, inertia=(1e-4,) * 3).prismatic(
            f"{name}_slide", "world", name, (-side, 0, 0), (0.01 * side, 0, 0)
        )
    b.body("capsule", 0.05, inertia=(2e-5, 3e-6, 2e-5)).free("free", "world", "capsule")
    model = b.build()
    capsule = ("capsule", sl.contacts.Capsule(0.01, 0.06, rotation=(np.pi / 2, 0, 0)))
    for name, side in (("left", -1.0), ("right", 1.0)):
        face = sl.contacts.Plane(rotation=(0, -side * np.pi / 2, 0))  # z towards the capsule
        model = model.with_contact(name, capsule, (name, face), friction=friction)
    return model


def painleve_rod(friction: float, half_length: float = 0.5, mass: float = 1.0) -> sl.Model:
    """A rod in the plane of x and z with a tip that slides on the ground."""
    b = sl.Builder("rod").body("across").body("up").body("rod", mass, inertia=(1e-3, *[mass * half_length**2 / 3] * 2))
    b.prismatic("x", "world", "across", "x").prismatic("z", "across", "up", "z").revolute("turn", "up", "rod", "y")
    model = b.frame("tip", "rod", (half_length, 0, 0)).build()
    return model.with_contact("tip", "tip", "ground", friction=friction)


def three_balls() -> sl.Model:
    """Three equal spheres in a row that move along x alone, of radius 1/2 m; coordinates are their centres."""
    b = sl.Builder("chain", gravity=(0, 0, 0))
    for k in range(3):
        b.body(f"ball{k}", 1.0, inertia=(0.1,) * 3).prismatic(f"x{k}", "world", f"ball{k}", "x")
    model = b.build()
    for k in range(2):
        one, two = ((f"ball{k + j}", sl.contacts.Sphere(0.5)) for j in range(2))
        model = model.with_contact(f"pair{k}", one, two, restitution=1.0)
    return model


# ---- Glocker's woodpecker toy


@dataclass(frozen=True)
class Woodpecker:
    """A sleeve on a pole with a bird on a spring (Glocker 1995; numbers as in Siconos' WoodPeckerConsts.h).

    Glocker's equations are linear in the angles. `angles` scales all angles of the motion: clearances, gravity and the
    start shrink with it. 1 is the toy as it is, with its large angles; 1e-3 is the linear one, but for its thousandth.
    """

    angles: float = 1.0
    pole: float = 0.0025  # radius [m]
    sleeve: float = 0.0031  # inner radius [m]
    sleeve_height: float = 0.0058  # half of it [m]
    to_spring: float = 0.010  # from the sleeve's centre to the spring [m]
    to_bird: float = 0.015  # from the spring to the bird's centre [m]
    beak_height: float = 0.020  # over the bird's centre [m]
    beak_reach: float = 0.0201  # from the bird's centre to the pole [m]
    masses: tuple[float, float] = (0.0003, 0.0045)  # sleeve, bird [kg]
    moments: tuple[float, float] = (5e-9, 7e-7)  # kg m²
    stiffness: float = 0.0056  # N m/rad
    friction: float = 0.3
    restitution: float = 0.5  # of the beak

    def model(self) -> sl.Model:
        """Coordinates: height of the sleeve [m], its angle, the bird's angle relative to it [rad]."""
        (m, bird), (moment, bird_moment) = self.masses, self.moments
        b = sl.Builder("woodpecker", gravity=(0, 0, -G * self.angles)).body("slider")
        b.body("sleeve", m, inertia=(moment,) * 3).body("bird", bird, (self.to_bird, 0, 0), (bird_moment,) * 3)
        b.prismatic("height", "world", "slider", "z").revolute("tilt", "slider", "sleeve", "-y")
        b.revolute("spring", "sleeve", "bird", "-y", (self.to_spring, 0, 0), stiffness=self.stiffness)
        b.frame("beak", "bird", (self.to_bird - self.beak_reach, 0, self.beak_height))
        b.frame("lower", "sleeve", (self.sleeve, 0, -self.sleeve_height))
        b.frame("upper", "sleeve", (self.sleeve, 0, self.sleeve_height))
        beak = self.to_spring + self.to_bird - self.beak_reach
        sides = {"beak": (beak, beak - self.pole), "lower": (self.sleeve, self.sleeve - self.pole)}
        sides["upper"] = sides["lower"]
        for name, (reach, clearance) in sides.items():  # the pole's side, with z away from it
            b.frame(f"pole_{name}", "world", (reach - self.angles * clearance, 0, 0), (0, np.pi / 2, 0))
        model = b.build()
        for name in sides:
            e = self.restitution if name == "beak" else 0.0
            side = (f"pole_{name}", sl.contacts.Plane())
            model = model.with_contact(
                name, name, side, friction=self.friction, restitution=e, resting=1e-3 * self.angles
            )
        return model

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """q and v of Siconos' run, with the sleeve on its lower edge; the bird's angle is relative to the sleeve's."""
        turn, fall, turning = (self.angles * x for x in (-0.2788, -0.3411, -7.4583))
        pole = self.sleeve - self.angles * (self.sleeve - self.pole)
        edge = np.hypot(self.sleeve_height, self.sleeve)
        tilt = np.arctan2(self.sleeve_height, self.sleeve) - np.arccos(pole / edge)
        return np.array([0.0, tilt, turn - tilt]), np.array([fall, 0.0, turning])


def cycles(times, q, v) -> tuple[np.ndarray, np.ndarray]:
    """Periods [s] and descents [m] between impacts of the beak, which throw the bird back."""
    turning = v[:, 1] + v[:, 2]
    hits = np.flatnonzero((turning[:-1] > 0.5 * turning.max()) & (turning[1:] < 0.0))
    return np.diff(times[hits]), -np.diff(q[hits, 0])

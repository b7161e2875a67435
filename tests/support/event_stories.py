"""Small mechanisms that change while they move, whose moments of change are known in closed form.

Each function returns the model of a story; the functions `when_...` return its known answer, by quadrature in forty
digits (mpmath) of hand-written equations that share nothing with spanloop. Motions are in the plane of x and z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import mpmath

import spanloop as sl

G = 9.81
POINT = (1e-3, 1e-3, 1e-3)  # kg m², of bodies that do not turn


def _time(speed, start, end) -> float:
    """∫ dx / speed(x): how long a motion takes that may begin or end at rest [s]."""
    with mpmath.workdps(40):
        return float(mpmath.quad(lambda x: 1 / mpmath.sqrt(speed(x)), [start, end]))


# ---- a point mass in the plane, held by a rod of fixed length from the origin: bead on a ball, bob on a string


def point(name: str, length: float, mass: float = 1.0) -> sl.Model:
    """A mass at (x, z), and a switchable loop `name` that keeps it at a distance from the origin [m]."""
    b = sl.Builder(name).body("carriage").body("mass", mass, inertia=POINT)
    b.prismatic("x", "world", "carriage", "x").prismatic("z", "carriage", "mass", "z")
    return b.loop("world", "mass", sl.joints.Distance(length), name=name, switchable=True).build()


@dataclass(frozen=True)
class Leaving:
    """When, where (angle [rad]) and how fast (rate of the angle [rad/s]) a contact is left."""

    time: float
    angle: float
    rate: float


def when_the_bead_leaves(start: float, radius: float) -> Leaving:
    """A bead slides from rest at an angle from the top: it leaves at cos θ = ⅔ cos θ₀."""
    with mpmath.workdps(40):
        first, last = mpmath.mpf(start), mpmath.acos(mpmath.cos(start) * 2 / 3)

        def squared(x):
            return 2 * mpmath.mpf(G) / radius * (mpmath.cos(first) - mpmath.cos(x))

        return Leaving(_time(squared, first, last), float(last), float(mpmath.sqrt(squared(last))))


@dataclass(frozen=True)
class Catch:
    """The end of a free flight: when, where (x, z), the velocities before and after [m, m/s], the energy lost."""

    time: float
    place: tuple[float, float]
    before: tuple[float, float]
    after: tuple[float, float]
    lost: float


def when_the_string_is_slack(speed: float, length: float) -> Leaving:
    """A bob starts at the lowest point: slack at cos θ = −(v₀² − 2gl) / 3gl, θ from below."""
    with mpmath.workdps(40):
        v, l, g = mpmath.mpf(speed), mpmath.mpf(length), mpmath.mpf(G)
        last = mpmath.acos(-(v * v - 2 * g * l) / (3 * g * l))

        def squared(x):
            return (v * v - 2 * g * l * (1 - mpmath.cos(x))) / (l * l)

        return Leaving(_time(squared, mpmath.mpf(0), last), float(last), float(mpmath.sqrt(squared(last))))


def when_the_string_catches(speed: float, length: float, mass: float = 1.0) -> Catch:
    """The parabola leaves the circle with three equal derivatives, so that it meets it after 4 v sin θ / g."""
    slack = when_the_string_is_slack(speed, length)
    with mpmath.workdps(40):
        l, g = mpmath.mpf(length), mpmath.mpf(G)
        v, angle = mpmath.mpf(speed), mpmath.acos(-(mpmath.mpf(speed) ** 2 - 2 * g * l) / (3 * g * l))
        v = mpmath.sqrt(v * v - 2 * g * l * (1 - mpmath.cos(angle)))
        flight = 4 * v * mpmath.sin(angle) / g
        vx, vz = v * mpmath.cos(angle), v * mpmath.sin(angle)
        x = l * mpmath.sin(angle) + vx * flight
        z = -l * mpmath.cos(angle) + vz * flight - g * flight**2 / 2
        vz = vz - g * flight
        out = (vx * x + vz * z) / l  # along the string
        after = vx - out * x / l, vz - out * z / l
        lost = mass * out**2 / 2
        return Catch(slack.time + float(flight), (float(x), float(z)), (float(vx), float(vz)),
                     (float(after[0]), float(after[1])), float(lost))  # fmt: skip


# ---- bodies on planes: ladder and ball


def ladder(length: float, mass: float = 1.0) -> sl.Model:
    """A uniform rod at (x, z) and at an angle; its foot is on the floor z = 0, its top on the wall x = 0."""
    b = sl.Builder("ladder").body("across").body("up").body("rod", mass, inertia=(1e-3, *[mass * length**2 / 12] * 2))
    b.prismatic("x", "world", "across", "x").prismatic("z", "across", "up", "z").revolute("turn", "up", "rod", "y")
    b.frame("top", "rod", (-length / 2, 0, 0)).frame("foot", "rod", (length / 2, 0, 0))
    b.loop("world", "foot", sl.joints.PointOnPlane("z"), name="floor", switchable=True)
    return b.loop("world", "top", sl.joints.PointOnPlane("x"), name="wall", switchable=True).build()


def ball(mass: float = 1.0) -> sl.Model:
    """A ball that falls along z on the floor z = 0."""
    b = sl.Builder("ball").body("ball", mass, inertia=POINT).prismatic("height", "world", "ball", "z")
    return b.loop("world", "ball", sl.joints.PointOnPlane("z"), name="ground", switchable=True).build()


def when_the_ladder_leaves(start: float, length: float) -> Leaving:
    """A uniform ladder slides from rest, at an angle to the floor: it leaves the wall at sin φ = ⅔ sin φ₀."""
    with mpmath.workdps(40):
        first, last = mpmath.mpf(start), mpmath.asin(mpmath.sin(start) * 2 / 3)

        def squared(x):
            return 3 * mpmath.mpf(G) / length * (mpmath.sin(first) - mpmath.sin(x))

        return Leaving(_time(squared, last, first), float(last), -float(mpmath.sqrt(squared(last))))


# ---- a block between two fingers


def pinch(mass: float) -> sl.Model:
    """A hand that lifts; two fingers on it that press a block from both sides, by points; coordinates begin at 0."""
    b = sl.Builder("pinch").body("hand", 1.0, inertia=POINT).prismatic("lift", "world", "hand", "z")
    b.body("block", mass, inertia=(1e-3, 2e-3, 3e-3)).free("block_free", "world", "block")
    for name, side in (("left", -1.0), ("right", 1.0)):
        b.body(f"{name}_finger", 0.1, inertia=POINT)
        b.prismatic(name, "hand", f"{name}_finger", (-side, 0, 0), (0.05 * side, 0, 0))
        b.frame(f"{name}_face", "block", (0.05 * side, 0, 0), (0, -side * math.pi / 2, 0))  # z into the block
        b.loop(f"{name}_finger", f"{name}_face", "spherical", name=f"{name}_grip", switchable=True)
    return b.build()


# ---- hinged bars: a rod and a four-bar that fall on a stop


def when_the_rod_falls_to(start: float, end: float, length: float) -> Leaving:
    """A uniform rod on a hinge falls from rest, angles above the horizontal."""
    with mpmath.workdps(40):
        first, last = mpmath.mpf(start), mpmath.mpf(end)

        def squared(x):
            return 3 * mpmath.mpf(G) / length * (mpmath.sin(first) - mpmath.sin(x))

        return Leaving(_time(squared, last, first), end, -float(mpmath.sqrt(squared(last))))


def stopped_four_bar(angle: float) -> sl.Model:
    """The zoo's four-bar, and a coupling `stop` that holds its crank at an angle."""
    return sl.zoo.four_bar().with_coupling("crank_hinge", None, offset=angle, name="stop", switchable=True)


@dataclass(frozen=True)
class FourBar:
    """The zoo's four-bar as one equation for its crank: bars of 1 kg, cylinders of radius 0.05 m."""

    ground: float = 2.0
    crank: float = 1.0
    coupler: float = 2.2
    rocker: float = 1.8
    radius: float = 0.05

    def angles(self, crank):
        """Angles of coupler and rocker from the x axis, assembled open."""
        x, z = self.crank * mpmath.cos(crank), self.crank * mpmath.sin(crank)
        across = mpmath.hypot(self.ground - x, z)
        inner = mpmath.acos((self.coupler**2 + across**2 - self.rocker**2) / (2 * self.coupler * across))
        coupler = mpmath.atan2(-z, self.ground - x) + inner
        x, z = x + self.coupler * mpmath.cos(coupler), z + self.coupler * mpmath.sin(coupler)
        return coupler, mpmath.atan2(z, x - self.ground)

    def height(self, crank):
        """Of the three centres of mass together [m]."""
        coupler, rocker = self.angles(crank)
        first = 1.5 * self.crank * mpmath.sin(crank) + self.coupler / 2 * mpmath.sin(coupler)
        return first + self.rocker / 2 * mpmath.sin(rocker)

    def inertia(self, crank):
        """Of all bars, reduced to the crank [kg m²]."""
        b, c = self.angles(crank)
        wb = -self.crank * mpmath.sin(c - crank) / (self.coupler * mpmath.sin(c - b))
        wc = self.crank * mpmath.sin(b - crank) / (self.rocker * mpmath.sin(b - c))
        vx = -self.crank * mpmath.sin(crank) - self.coupler / 2 * mpmath.sin(b) * wb
        vz = self.crank * mpmath.cos(crank) + self.coupler / 2 * mpmath.cos(b) * wb
        out = self._moment(self.crank) + self.crank**2 / 4 + vx**2 + vz**2 + self._moment(self.coupler) * wb**2
        return out + (self._moment(self.rocker) + self.rocker**2 / 4) * wc**2

    def _moment(self, length):
        return (3 * self.radius**2 + length**2) / 12

    def impacts(self, start: float, stop: float, restitution: float, n: int) -> list[tuple[float, float]]:
        """Times [s] and rates of the crank just before [rad/s] of n impacts at the angle `stop`, from rest above it."""
        with mpmath.workdps(20):
            first, last, e = mpmath.mpf(start), mpmath.mpf(stop), mpmath.mpf(restitution)
            fall, out, now = self.height(first) - self.height(last), [], mpmath.mpf(0)
            for k in range(n):
                top = self.height(last) + e ** (2 * k) * fall
                turn = mpmath.findroot(lambda x, top=top: self.height(x) - top, last + e**k * (first - last))

                def squared(x, turn=turn):
                    return 2 * mpmath.mpf(G) * (self.height(turn) - self.height(x)) / self.inertia(x)

                once = mpmath.quad(lambda x: 1 / mpmath.sqrt(squared(x)), [last, turn])
                now += once if k == 0 else 2 * once
                out.append((float(now), -float(mpmath.sqrt(squared(last)))))
            return out

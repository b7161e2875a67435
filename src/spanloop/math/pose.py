"""Poses as (unit quaternion, position) and the exponential of a constant twist.

A twist (ω, u), in body axes, kept for one unit of time moves the body by the rotation exp(ω) and the translation
V(ω) u with V = 1 + b [ω]× + c [ω]ײ, b = (1 − cos θ)/θ², c = (θ − sin θ)/θ³, θ = |ω|. [Park, Bobrow & Ploen 1995]
"""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.math import quaternion
from spanloop.math.rotation import Rotation
from spanloop.math.scalar import sincos, sqrt, where
from spanloop.math.spatial import Motion, Transform
from spanloop.math.vector3 import add, cross, dot, scale, subtract
from spanloop.types import Scalar, Vector3

# below this θ² [rad²] four terms of the series are exact to 1e-17
_SMALL = 1e-2


def series(square: Scalar) -> tuple[Scalar, Scalar]:
    """b and c of the square θ²."""
    small = square < _SMALL
    angle = sqrt(where(small, 1.0, square))
    s, c = sincos(angle)
    near_b = 0.5 - square * (1 / 24 - square * (1 / 720 - square * (1 / 40320 - square * (1 / 3628800))))
    near_c = 1 / 6 - square * (1 / 120 - square * (1 / 5040 - square * (1 / 362880 - square * (1 / 39916800))))
    inverse = 1.0 / where(small, 1.0, square)
    return where(small, near_b, (1.0 - c) * inverse), where(small, near_c, (1.0 - s / angle) * inverse)


def transform(q: Sequence[Scalar]) -> Transform:
    """Transform of seven coordinates (w, x, y, z, px, py, pz)."""
    return Transform(Rotation.full(quaternion.matrix(tuple(q[:4]))), tuple(q[4:7]))


def rates(q: Sequence[Scalar], twist: Motion) -> tuple[Scalar, ...]:
    """dq/dt for a twist in body axes."""
    e = tuple(q[:4])
    return (
        *quaternion.rate(e, twist.angular),
        *(Rotation.full(quaternion.matrix(e)) @ twist.linear),
    )


def moved(q: Sequence[Scalar], twist: Motion) -> tuple[Scalar, ...]:
    """Seven coordinates after a constant twist in body axes for one unit of time."""
    e = tuple(q[:4])
    w, u = twist.angular, twist.linear
    b, c = series(dot(w, w))
    wu = cross(w, u)
    step = add(u, add(scale(b, wu), scale(c, cross(w, wu))))
    turned = quaternion.normalized(quaternion.multiply(e, quaternion.exponential(w)))
    return (*turned, *add(tuple(q[4:7]), Rotation.full(quaternion.matrix(e)) @ step))


def twist_between(start: Sequence[Scalar], q: Sequence[Scalar]) -> Motion:
    """The constant twist that leads from start to q in one unit of time; rotation at most pi."""
    e = tuple(start[:4])
    w = quaternion.logarithm(quaternion.multiply(quaternion.conjugate(e), tuple(q[:4])))
    step: Vector3 = Rotation.full(quaternion.matrix(e)).T @ subtract(tuple(q[4:7]), tuple(start[4:7]))
    d = logarithm_coefficient(dot(w, w))
    ws = cross(w, step)  # V⁻¹ = 1 − [ω]×/2 + d [ω]ײ
    return Motion(w, add(step, add(scale(-0.5, ws), scale(d, cross(w, ws)))))


def logarithm_coefficient(square: Scalar) -> Scalar:
    """d = (1 − (θ/2) cot(θ/2))/θ² of the square θ²: in V⁻¹, and in the derivative of a logarithm."""
    b, c = series(square)
    small = square < _SMALL
    near = 1 / 12 + square * (1 / 720 + square * (1 / 30240 + square * (1 / 1209600)))
    # (θ/2) cot(θ/2) = a/(2b) with a = sin θ/θ = 1 − c θ²
    return where(small, near, (1.0 - (1.0 - c * square) / (b + b)) / where(small, 1.0, square))


def rotation_spring(
    e: quaternion.Quaternion, rest: quaternion.Quaternion, stiffness: Vector3
) -> tuple[Vector3, Scalar]:
    """Torque in body axes, and energy, of a spring with the energy Σ k x²/2 in the rotation vector x from rest to e.

    The torque is the energy's gradient: −(∂x/∂ω)ᵀ k x with ∂x/∂ω = 1 + [x]×/2 + d [x]ײ.
    """
    x = quaternion.logarithm(quaternion.multiply(quaternion.conjugate(rest), e))
    pull = tuple(k * t for k, t in zip(stiffness, x, strict=True))
    turned = cross(x, pull)
    d = logarithm_coefficient(dot(x, x))
    torque = add(scale(-1.0, pull), add(scale(0.5, turned), scale(-d, cross(x, turned))))
    return torque, 0.5 * dot(pull, x)

"""Sine and cosine without branches: reduction by multiples of pi/2 with fused multiply-add, then polynomials.

The reduction subtracts n·pi/2 with pi/2 in three parts; each step is exact or rounds once, so that the result is
good to 1.5 units in the last place for |x| up to LIMIT, near its zeros too. Beyond, kernels report the state and
the host takes over. The polynomials' coefficients are Moshier's (Cephes library): data, quoted from there.
"""

from __future__ import annotations

import numpy as np

from spanloop.compiler.render.llvm_types import Real

LIMIT = {"double": 1e9, "float": 1e6}

_TWO_OVER_PI = 0.6366197723675814
_MAGIC = {"double": 6755399441055744.0, "float": 12582912.0}  # adding it rounds to an integer in the low bits


def _float_parts() -> tuple[float, float, float]:
    half_pi = 1.5707963267948966
    a = float(np.float32(half_pi))
    b = float(np.float32(half_pi - a))
    c = float(np.float32(half_pi - a - b + 6.123233995736766e-17))
    return a, b, c


_HALF_PI = {"double": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33), "float": _float_parts()}
_SINE = {
    "double": (
        1.58962301576546568060e-10,
        -2.50507477628578072866e-8,
        2.75573136213857245213e-6,
        -1.98412698295895385996e-4,
        8.33333333332211858878e-3,
        -1.66666666666666307295e-1,
    ),
    "float": (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1),
}
_COSINE = {
    "double": (
        -1.13585365213876817300e-11,
        2.08757008419747316778e-9,
        -2.75573141792967388112e-7,
        2.48015872888517045348e-5,
        -1.38888888888730564116e-3,
        4.16666666666665929218e-2,
    ),
    "float": (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2),
}


def sincos(lines: list[str], t: Real, x: str, tag: str) -> tuple[str, str]:
    """Append the sine and cosine of value x; the names of the two results."""
    v, c = t.value, t.constant
    magic = c(_MAGIC[t.real])

    def fma(name: str, a: str, b: str, d: str) -> str:
        lines.append(f"%{name}{tag} = call {v} @llvm.fma.{t.suffix}({v} {a}, {v} {b}, {v} {d})")
        return f"%{name}{tag}"

    def line(name: str, text: str) -> str:
        lines.append(f"%{name}{tag} = {text}")
        return f"%{name}{tag}"

    rounded = fma("k", x, c(_TWO_OVER_PI), magic)
    quarters = line("n", f"fsub {v} {rounded}, {magic}")
    turns = line("i", f"bitcast {v} {rounded} to {t.bits}")
    minus = line("m", f"fneg {v} {quarters}")
    r = x
    for j, part in enumerate(_HALF_PI[t.real]):
        r = fma(f"r{j}_", minus, c(part), r)
    z = line("z", f"fmul {v} {r}, {r}")
    ps, pc = (_horner(fma, c, z, name, table[t.real]) for name, table in (("s", _SINE), ("c", _COSINE)))
    rz = line("rz", f"fmul {v} {r}, {z}")
    s = fma("sp", rz, ps, r)
    one = fma("hz", z, c(-0.5), c(1.0))
    zz = line("zz", f"fmul {v} {z}, {z}")
    k = fma("cp", zz, pc, one)
    odd = line("od", f"and {t.bits} {turns}, {t.whole(1)}")
    swap = line("sw", f"icmp ne {t.bits} {odd}, {t.whole(0)}")
    s, k = (
        line("ss", f"select {t.truth} {swap}, {v} {k}, {v} {s}"),
        line("cc", f"select {t.truth} {swap}, {v} {s}, {v} {k}"),
    )
    later = line("ib", f"add {t.bits} {turns}, {t.whole(1)}")
    return _signed(line, t, turns, s, "S"), _signed(line, t, later, k, "C")


def _horner(fma, c, z: str, name: str, coefficients) -> str:
    p = c(coefficients[0])
    for j, a in enumerate(coefficients[1:]):
        p = fma(f"p{name}{j}_", p, z, c(a))
    return p


def _signed(line, t: Real, turns: str, x: str, name: str) -> str:
    """x with its sign turned where bit 1 of the number of quarter turns is set."""
    shift = 62 if t.real == "double" else 30
    two = line(f"a{name}", f"and {t.bits} {turns}, {t.whole(2)}")
    sign = line(f"b{name}", f"shl {t.bits} {two}, {t.whole(shift)}")
    raw = line(f"d{name}", f"bitcast {t.value} {x} to {t.bits}")
    flipped = line(f"e{name}", f"xor {t.bits} {raw}, {sign}")
    return line(f"f{name}", f"bitcast {t.bits} {flipped} to {t.value}")

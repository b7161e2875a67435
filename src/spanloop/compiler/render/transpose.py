"""States in C order to vector lanes and back: blocks of a batch are transposed in registers.

One row holds one state; a vector holds one number of `width` states. A block of width rows and width columns is
loaded as rows and transposed by log₂(width) stages of two-vector shuffles, which costs a tenth of gathering each
number.
"""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.compiler.render.instructions import Body


def load_block(body: Body, rows: Sequence[str], first: int, count: int, tag: str) -> list[str]:
    """Columns first .. first + count − 1 (count ≤ width) of the rows at these pointers, one vector each."""
    t, w = body.t, body.t.width
    loaded = []
    for lane, row in enumerate(rows):
        p = body.line(f"lp{tag}_{lane}", f"getelementptr {t.real}, ptr {row}, i64 {first}")
        if count == w:
            loaded.append(body.line(f"ld{tag}_{lane}", f"load {t.value}, ptr {p}, align {t.size}"))
        else:
            masked = (
                f"@llvm.masked.load.{t.suffix}.p0(ptr {p}, i32 {t.size}, {_mask(w, count)}, {t.value} zeroinitializer)"
            )
            loaded.append(body.line(f"ld{tag}_{lane}", f"call {t.value} {masked}"))
    return _transposed(body, loaded, f"t{tag}")[:count]


def store_block(body: Body, rows: Sequence[str], first: int, columns: Sequence[str], tag: str) -> None:
    """Write columns (at most width of them) into the rows at these pointers, from column `first` on."""
    t, w = body.t, body.t.width
    count = len(columns)
    padded = list(columns) + [columns[-1]] * (w - count)
    for lane, value in enumerate(_transposed(body, padded, f"u{tag}")):
        p = body.line(f"wp{tag}_{lane}", f"getelementptr {t.real}, ptr {rows[lane]}, i64 {first}")
        if count == w:
            body.lines.append(f"store {t.value} {value}, ptr {p}, align {t.size}")
        else:
            masked = f"@llvm.masked.store.{t.suffix}.p0({t.value} {value}, ptr {p}, i32 {t.size}, {_mask(w, count)})"
            body.lines.append(f"call void {masked}")


def declarations(body: Body) -> str:
    t, mask = body.t, f"<{body.t.width} x i1>"
    return (
        f"declare {t.value} @llvm.masked.load.{t.suffix}.p0(ptr, i32, {mask}, {t.value})\n"
        f"declare void @llvm.masked.store.{t.suffix}.p0({t.value}, ptr, i32, {mask})\n"
    )


def _mask(width: int, count: int) -> str:
    return f"<{width} x i1> <" + ", ".join(f"i1 {'true' if j < count else 'false'}" for j in range(width)) + ">"


def _transposed(body: Body, vectors: list[str], tag: str) -> list[str]:
    """Entry j of vector i becomes entry i of vector j."""
    t, w = body.t, body.t.width
    stride = 1
    while stride < w:
        after = list(vectors)
        low = [k if not k & stride else w + k - stride for k in range(w)]
        high = [k + stride if not k & stride else w + k for k in range(w)]
        for i in range(w):
            if i & stride:
                continue
            a, b = vectors[i], vectors[i + stride]
            for j, lanes in ((i, low), (i + stride, high)):
                indices = ", ".join(f"i32 {k}" for k in lanes)
                after[j] = body.line(
                    f"{tag}_{stride}_{j}", f"shufflevector {t.value} {a}, {t.value} {b}, <{w} x i32> <{indices}>"
                )
        vectors = after
        stride *= 2
    return vectors

# ruff: noqa
"""Temporary: block Gauss-Seidel."""

from spanloop.compiler.lower import Block, For, Repeat
from spanloop.math.scalar import sqrt, where, absolute


def solver_calls(stage, n, B, names):
    W = Block(names["W"], B * B, (("i", n * B * B), ("j", B * B)))
    Wii = Block(names["W"], B * B, (("i", n * B * B), ("i", B * B)))
    pt = lambda a, c="i", s=None: Block(names[a], s or B, ((c, s or B),))
    stage.array("gs.u", B)
    stage.array("gs.left", 1)
    stage.array("gs.worst", 1)
    c = stage.call
    begin = c("gs_begin", (pt("b"),), ("gs.u",), lambda b: (list(b),))
    add = c(
        "gs_add",
        (W, pt("f", "j"), "gs.u"),
        ("gs.u",),
        lambda W, f, u: ([u[a] + sum(W[a * B + k] * f[k] for k in range(B)) for a in range(B)],),
    )

    def update(W, u, f, on, k, soft, left, worst):
        wn = W[0] + soft[0]
        un = u[0] + soft[0] * f[0]
        new = f[0] - un / wn
        new = where((new > 0.0) & (on[0] > 0.5), new, 0.0)
        d = new - f[0]
        ut = [u[1] + W[B] * d, u[2] + W[2 * B] * d]
        rho = 1.0 / (where(W[B + 1] > W[2 * B + 2], W[B + 1], W[2 * B + 2]))
        t = [f[1] - rho * ut[0], f[2] - rho * ut[1]]
        size = sqrt(t[0] * t[0] + t[1] * t[1] + 1e-300)
        lim = k[0] * new
        s = where(size > lim, lim / size, 1.0)
        t = [s * t[0], s * t[1]]
        go = left[0] > 0.0
        ch = absolute(d) * wn + (absolute(t[0] - f[1]) + absolute(t[1] - f[2])) / rho
        ch = where(on[0] > 0.5, ch, 0.0)
        t = [where(on[0] > 0.5, x, 0.0) for x in t]
        out = [new, *t] + [0.0] * (B - 3)
        return [where(go, a, b) for a, b in zip(out, f)], [where(worst[0] < ch, ch, worst[0])]

    up = c(
        "gs_up",
        (Wii, "gs.u", pt("f"), pt("on", "i", 1), pt("coefficients", "i", 3), pt("soft", "i", 1), "gs.left", "gs.worst"),
        (pt("f"), "gs.worst"),
        update,
    )
    fresh = c("gs_fresh", (), ("gs.worst",), lambda: ([0.0],))
    end = c(
        "gs_end",
        ("gs.worst", "gs.left"),
        ("gs.left", names["residual"]),
        lambda w, l: ([where((l[0] > 0) & (w[0] > 1e-14), 1.0, -1.0)], [w[0]]),
    )
    go = c("gs_go", (), ("gs.left",), lambda: ([1.0],))
    return [go, Repeat((fresh, For("i", 0, n, (begin, For("j", 0, n, (add,)), up)), end), "gs.left", 2000)]

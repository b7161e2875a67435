"""Yamane & Nakamura's figures 4 to 7: chains of 30 degrees of freedom (DoF) in motion, and the cost over the DoF.

Our reading: figures 4 and 5 are snapshots; the text gives neither shapes nor masses nor the starts. Here the
serial chain is ten links on ball joints, and thirty on hinges for comparison; the branched one is a trunk of four links
that carries two arms of three, all on ball joints. Figures 6 and 7 show times on a Pentium III; here operations are
counted, so that the page is the same on every machine. Figure 6: serial chains of 2 to 16 ball joints. Figure 7: one
link on a ball joint at the ground with 2 to 12 end links on ball joints, 9 to 39 DoF.

According to the text the new algorithm is linear in the DoF of a serial chain and cheaper than the unit-vector method
beyond 15 of them; on stars it is linear if links with many joints are split, cheaper beyond 30 DoF, and as expensive as
unit vectors if they are not split. Our counts agree on growth and on chains (cheaper from 12 DoF on). On stars they are
less favourable: with split links it is linear, but always more expensive than the unit-vector method, which here is
specialised to the tree and factors the mass matrix from the tips inward, so that independent branches cost nothing; the
text does not say whether theirs was.

The page, with figures: docs/examples/12_virtual_work_figures.md
"""

import numpy as np

import spanloop as sl
from spanloop.kernels import operations

METHODS = {"split": "virtual_work", "unsplit": "virtual_work_unsplit", "unit vector": "unit_vector"}


def bar(b, name, parent, position=(0.0, 0.0, -0.2), rotation=None):
    """A bar of 0.2 m and 0.5 kg on a ball joint; it hangs along −z."""
    b.body(name, 0.5, (0.0, 0.0, -0.1), (0.002, 0.002, 0.0002))
    b.spherical(f"at_{name}", parent, name, position, rotation)


def branched():
    """A trunk of four bars, and two arms of three bars that spread at its end: ten links, 30 DoF."""
    b = sl.Builder("branched30")
    for k in range(4):
        bar(b, f"trunk{k}", f"trunk{k - 1}" if k else "world", (0.0, 0.0, -0.2 if k else 0.0))
    for side, angle in (("left", -0.8), ("right", 0.8)):
        for k in range(3):
            place = {} if k else {"rotation": (0.0, angle, 0.0)}
            bar(b, f"{side}{k}", f"{side}{k - 1}" if k else "trunk3", **place)
    return b.build()


def star(n):
    """A link on a ball joint at the ground, with n end links on ball joints around its rim."""
    b = sl.Builder(f"star{n}").body("hub", 2.0, (0.0, 0.0, -0.1), (0.02, 0.02, 0.02))
    b.spherical("ground", "world", "hub")
    for k in range(n):
        angle = 2.0 * np.pi * k / n
        bar(b, f"end{k}", "hub", (0.2 * np.cos(angle), 0.2 * np.sin(angle), -0.1))
    return b.build()


def cost(model):
    """Multiplications, additions and divisions of forward dynamics, by method; nothing is compiled."""
    counted = [operations(model, "forward_dynamics", method) for method in METHODS.values()]
    return [n.multiplications + n.additions + n.divisions for n in counted]


# ---- figures 4 and 5: motion from a random position at rest, by virtual work

runs = {}
for title, model in (
    ("serial, 10 balls", sl.zoo.chain(10, "spherical")),
    ("serial, 30 hinges", sl.zoo.chain(30)),
    ("branched, 10 balls", branched()),
):
    q, _ = model.random_state(4)
    run = runs[title] = sl.simulate(model, q, duration=0.2, step=0.0005, method="virtual_work")
    total = run.energy.sum(axis=1)
    drift = np.abs(total - total[0]).max() / np.ptp(run.energy[:, 0])
    print(f"{title}: {model.nv} DoF, energy drifts by {drift:.0e} of the kinetic energy")
    assert model.nv == 30
    assert drift < 1e-5

# ---- figures 6 and 7: operations over degrees of freedom


def table(title, sizes, family):
    """Print DoF and operations; return them as columns."""
    print(f"\n{title}\n     DoF " + "".join(f"{name:>13}" for name in METHODS))
    rows = []
    for n in sizes:
        model = family(n)
        rows.append((model.nv, *cost(model)))
        print(f"{rows[-1][0]:8d} " + "".join(f"{x:13d}" for x in rows[-1][1:]))
    return np.array(rows).T


serial = table("figure 6: serial chains", (2, 4, 6, 8, 12, 16), lambda n: sl.zoo.chain(n, "spherical"))
stars = table("figure 7: stars", (2, 4, 8, 12), star)
for name, (dofs, split, _, _) in (("serial chains", serial), ("stars", stars)):
    growth = np.diff(split) / np.diff(dofs)
    print(f"{name}, split: {growth.min():.0f} to {growth.max():.0f} operations for each further DoF")
    assert growth.max() < 1.1 * growth.min()  # a line

dofs, split, _, unit = serial
print(f"serial chains: cheaper than the unit-vector method from {dofs[split < unit].min()} DoF on")
split, unit = (
    operations(star(16), "forward_dynamics", METHODS[name]).multiplications for name in ("split", "unit vector")
)
print(f"a star of 51 DoF: {split} multiplications split, {unit} by unit vectors, which use the tree")

hinges, balls = cost(sl.zoo.chain(30))[0], cost(sl.zoo.chain(10, "spherical"))[0]
print(f"30 DoF: {hinges} operations on hinges, {balls} on balls, which need fewer links")

# a picture of both, if matplotlib is installed
try:
    from matplotlib.figure import Figure
except ImportError:
    print("no picture: matplotlib is not installed")
else:
    figure = Figure(figsize=(9.0, 4.0), layout="constrained")
    for ax, title, found in zip(figure.subplots(1, 2), ("serial chains", "stars"), (serial, stars), strict=True):
        for name, values, line in zip(METHODS, found[1:], ("-", ":", "--"), strict=True):
            ax.plot(found[0], values, line, marker="o", markersize=3, label=name)
        ax.set(title=title, xlabel="degrees of freedom", ylabel="operations", ylim=(0.0, None))
        ax.legend(frameon=False)
    figure.savefig("virtual_work_figures.png")
    print("written: virtual_work_figures.png")

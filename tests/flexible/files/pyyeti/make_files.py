"""Write the files of this folder with pyyeti 1.4.7: python make_files.py, in an environment of its own.

pyyeti needs numba, which pins llvmlite: it is no dependency of the tests, its files are kept instead.
`expected.npz` has the matrices as NumPy has them, in double precision, before pyyeti prints them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from pyyeti.nastran import bulk, op4

FOLDER = Path(__file__).parent
LABELS = np.array([3, 11, 25, 1000])


def random_symmetric(rng: np.random.Generator, size: int) -> np.ndarray:
    """A sparse symmetric matrix with a positive diagonal, of numbers of many magnitudes."""
    upper = np.triu(rng.normal(size=(size, size)) * 10.0 ** rng.uniform(-6, 6, (size, size)), 1)
    upper[rng.random((size, size)) > 0.25] = 0.0
    return upper + upper.T + np.diag(rng.uniform(1.0, 9.0, size) * 1e6)


def main() -> None:
    """All files."""
    rng = np.random.default_rng(20)
    stiffness, mass = random_symmetric(rng, 24), random_symmetric(rng, 24)
    positions = rng.uniform(-1.0, 1.0, (4, 3)).round(6)
    matrices = {"KAA": stiffness, "MAA": mass, "PHG": rng.normal(size=(24, 2)), "CPLX": np.eye(2) * (1 + 2j)}
    forms = [6, 6, 2, 1]
    for sparse in ("dense", "bigmat", "nonbigmat"):
        op4.write(FOLDER / f"text_{sparse}.op4", matrices, binary=False, sparse=sparse, forms=forms)
        for endian, name in (("<", "little"), (">", "big")):
            file = FOLDER / f"{name}_{sparse}.op4"
            op4.write(file, matrices, binary=True, sparse=sparse, endian=endian, forms=forms)
    op4.write(FOLDER / "short_text.op4", matrices, binary=False, sparse="bigmat", forms=forms, digits=9)

    rows = pd.MultiIndex.from_product([LABELS, range(1, 7)], names=["id", "dof"])
    bulk.wtdmig(FOLDER / "plain.pch", {n: pd.DataFrame(matrices[n], rows, rows) for n in ("KAA", "MAA")})
    bulk.wtgrids(FOLDER / "wide.bdf", LABELS, xyz=positions)
    bulk.wtgrids(FOLDER / "narrow.bdf", LABELS, xyz=positions, form="{:8.5f}")

    systems = {7: (0, rng.normal(size=(3, 3)).round(4)), 8: (7, rng.normal(size=(3, 3)).round(4))}
    with open(FOLDER / "turned.bdf", "w") as file:
        bulk.wtcoordcards(file, {k: ["CORD2R", np.vstack([[k, 1, base], p])] for k, (base, p) in systems.items()})
        bulk.wtgrids(file, LABELS, cp=np.array([0, 7, 8, 8]), cd=np.array([0, 8, 0, 7]), xyz=positions)
    basic, axes = coordinates()
    nodes = {"positions": positions, "labels": LABELS, "basic": basic, "axes": axes}
    np.savez(FOLDER / "expected.npz", stiffness=stiffness, mass=mass, **nodes)


def coordinates() -> tuple[np.ndarray, np.ndarray]:
    """Positions in basic axes and the axes of each node's degrees of freedom, as pyyeti computes them."""
    table, _ = bulk.bulk2uset(str(FOLDER / "turned.bdf"))
    rows = [table.loc[label].iloc[:, 1:].to_numpy(dtype=float) for label in LABELS]
    return np.array([r[0] for r in rows]), np.array([r[3:6] for r in rows])


if __name__ == "__main__":
    main()

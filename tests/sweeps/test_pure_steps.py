"""Steps return what is to be kept; none writes into `here`, `parent` or `world`."""

from __future__ import annotations

import pytest

from spanloop import zoo
from spanloop.algorithms.catalog import FUNCTIONS, algorithm
from spanloop.algorithms.closed.redundancy import find_redundancy
from spanloop.sweeps import Values, walk
from spanloop.topology import mechanism

TREE = [("forward_dynamics", name) for name in FUNCTIONS["forward_dynamics"].methods]
TREE += [(name, None) for name in ("inverse_dynamics", "mass_matrix", "mass_matrix_inverse", "energy", "momentum")]
LOOPS = [("forward_dynamics", name) for name in FUNCTIONS["forward_dynamics"].closed or {}]
LOOPS += [(name, None) for name in ("position_correction", "velocity_correction", "closure_jacobian", "closure_bias")]


@pytest.fixture
def sealed(monkeypatch):
    """Values that refuse assignments; the walk stores what steps return without one."""

    def refuse(self, name, value):
        raise AssertionError(f"a step writes {name!r}")

    monkeypatch.setattr(Values, "__setattr__", refuse)


def walked(function: str, method: str | None, model) -> list:
    m, chosen = mechanism(model), algorithm(function, method, closed=bool(model.loops))[1]
    program = chosen.make(m, **({"redundancy": find_redundancy(m)} if "redundancy" in chosen.takes else {}))
    sizes = {"q": m.nq, "v": m.nv, "tau": m.nv, "a": m.nv, **program.sizes}
    given = {name: [0.1] * sizes[name] for name in program.inputs}
    return walk(program, m, given | {"q": model.neutral().tolist()})


@pytest.mark.parametrize(("function", "method"), TREE)
def test_steps_of_trees_are_pure(sealed, function, method):
    assert walked(function, method, zoo.puma())


@pytest.mark.parametrize(("function", "method"), LOOPS)
def test_steps_of_loops_are_pure(sealed, function, method):
    legs = method == "parallel_legs"
    assert walked(function, method, zoo.five_bar() if legs else zoo.arms_with_object(2, grasp="spherical"))

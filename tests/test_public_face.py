"""What users see: the names of `sl`, their documentation and signatures, before and after kernels take calls over."""

from __future__ import annotations

import ast
import inspect
import pydoc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import spanloop as sl

HOME = Path(sl.__file__).parent


def test_dir_shows_what_is_public_once():
    assert dir(sl) == sorted({*sl.__all__, "__version__"})
    assert len(sl.__all__) == len(set(sl.__all__))


@pytest.mark.parametrize("name", sl.__all__)
def test_every_public_name_is_there_and_has_documentation(name):
    assert inspect.getdoc(getattr(sl, name))


@pytest.mark.slow
def test_export_is_the_function_even_where_its_room_was_imported_first():
    code = "import spanloop.exports.portable_motion, spanloop as sl; assert sl.export.__name__ == 'export', sl.export"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_type_checkers_see_every_public_name():
    """The lazy imports of __getattr__ are imports for a type checker."""
    tree = ast.parse((HOME / "__init__.py").read_text(encoding="utf-8"))
    (block,) = [x for x in tree.body if isinstance(x, ast.If)]
    names = [alias for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    imported = {alias.asname or alias.name for alias in names}
    assert imported == set(sl.__all__)


def test_the_package_is_marked_as_typed():
    assert (HOME / "py.typed").exists()


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'spanloop' has no attribute 'dynamic'"):
        _ = sl.dynamic


# ---- documentation of calls that machine code has taken over

CALLS = {
    "forward_dynamics": 3,
    "inverse_dynamics": 3,
    "bias": 2,
    "gravity_torques": 1,
    "mass_matrix": 1,
    "mass_matrix_inverse": 1,
    "energy": 2,
    "momentum": 2,
    "center_of_mass": 1,
    "center_of_mass_jacobian": 1,
    "centroidal_momentum_matrix": 1,
    "centroidal_momentum_bias": 2,
    "integrate": 2,
    "difference": 2,
}


def plain(signature: inspect.Signature) -> inspect.Signature:
    """Without annotations, which a builtin function does not carry."""
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=signature.empty)


@pytest.mark.parametrize("name", CALLS)
def test_help_and_signature_stay_after_the_first_call(name):
    robot = sl.Dynamics(sl.zoo.pendulum(2))
    method = getattr(robot, name)
    before, doc = plain(inspect.signature(method)), inspect.getdoc(method)
    method(*[np.full(2, 0.3)] * CALLS[name])
    after = getattr(robot, name)
    assert inspect.isbuiltin(after)
    assert inspect.signature(after) == before
    assert inspect.getdoc(after) == doc
    assert after.__name__ == name
    shown = pydoc.plain(pydoc.render_doc(after))
    assert f"{name}{before}" in shown
    assert doc.splitlines()[0] in shown


def test_a_kernel_documents_its_inputs():
    kernel = sl.compile(sl.zoo.pendulum(2), "forward_dynamics")
    assert str(inspect.signature(kernel.call)) == "(q, v, tau, *, out=None)"
    assert inspect.getdoc(kernel.call).splitlines() == [
        "Return the array (..., 2) of float64; out takes an array to write into.",
        "",
        "q: array (..., 2)",
        "v: array (..., 2)",
        "tau: array (..., 2)",
    ]


def test_another_robot_has_its_own_documentation():
    """Definitions of builtins stay for good; those of a robot that is gone are not another's."""
    for _ in range(3):
        robot = sl.Dynamics(sl.zoo.pendulum(1))
        robot.energy(np.zeros(1), np.zeros(1))
        robot.bias(np.zeros(1), np.zeros(1))
        assert robot.energy.__doc__ != robot.bias.__doc__
        del robot

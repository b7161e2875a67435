"""The reference of the attacks agrees with Pinocchio, with equations in fifty digits, and with its own energies."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from assembling import assembled, closing_velocity
from attacked_loops import GUIDES, THEMES, plate
from dense_closures import ClosedReference
from dense_reference import Extended, Reference
from loop_reference import Closed
from pinocchio_peer import Peer, with_known_kinds
from plain_data import data
from reference import Tree, spring

import spanloop as sl

pytestmark = pytest.mark.slow
KNOWN = ["revolute", "prismatic", "helical", "cylindrical", "universal", "spherical", "planar", "free", "fixed"]


def tree_at(model, seed=0):
    q, v = model.random_state(seed)
    tau = np.random.default_rng(seed).normal(size=model.nv)
    return Tree(data(model), q[:, None], v[:, None]), q, v, tau


@pytest.mark.parametrize("seed", range(6))
def test_trees_agree_with_pinocchio(seed):
    model = with_known_kinds(sl.zoo.random_model(seed, kinds=KNOWN)).without_losses()
    tree, q, v, tau = tree_at(model)
    peer = Peer(model)
    for ours, theirs in (
        (tree.M[..., 0], peer.mass_matrix(q)),
        (tree.h[..., 0], peer.bias(q, v)),
        (tree.gravity_torque[..., 0], peer.gravity(q)),
        (tree.forward_dynamics(tau[:, None])[0][:, 0], peer.forward_dynamics(q, v, tau)),
    ):
        np.testing.assert_allclose(ours.astype(float), theirs, rtol=1e-9, atol=1e-12 * np.abs(theirs).max())
    assert np.allclose(peer.energy(q, v), [float(tree.kinetic[0]), float(tree.potential[0])], rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_trees_of_every_kind_agree_with_fifty_digits(seed):
    """Mass matrix and bias, springs included, as far as the numbers of the model go."""
    model = sl.zoo.random_model(seed, n_bodies=4)
    tree, q, v, _ = tree_at(model)
    exact = Reference(model, q, v, scalar=Extended)
    for ours, theirs in ((tree.M[..., 0], exact.mass_matrix()), (tree.h[..., 0], exact.bias())):
        theirs = np.array([[np.longdouble(str(Extended(x).x)) for x in row] for row in np.atleast_2d(theirs)])
        assert np.abs(ours - theirs.reshape(ours.shape)).max() < 1e-14 * np.abs(ours).max()


@pytest.mark.parametrize("name", ["revolute", "spherical", "planar", "free", "universal"])
def test_springs_are_the_gradient_of_their_energy(name):
    """The power of the torque is the loss of energy along the motion."""
    kind = sl.zoo.random_model(1, n_bodies=1, kinds=[name]).joints[0].kind
    b = sl.Builder("sprung").body("b", 1.0, inertia=(1, 1, 1))
    b.joint("j", kind, "world", "b", stiffness=list(range(1, kind.nv + 1)))
    model = b.build()
    q, v = model.random_state(3)
    link, h = data(model).links[0], 1e-5
    robot = sl.Dynamics(model)
    torque, _ = spring(link, np.longdouble(q[:, None]))
    ahead, back = (spring(link, np.longdouble(robot.integrate(q, s * v)[:, None]))[1][0] for s in (h, -h))
    assert float((torque[:, 0] * v).sum()) == pytest.approx(float(-(ahead - back) / (2 * h)), rel=1e-8)


@pytest.mark.parametrize("make", dict.fromkeys(THEMES), ids=lambda x: x.__name__)
def test_closed_mechanisms_agree_with_dense_equations(make):
    """Accelerations of every theme at one state, from rows that the library's joints define."""
    rng = np.random.default_rng(3)
    while True:
        made = make(rng, 1.0, 1.0)
        model = made.model
        if not model.switches and not any(x.driven for x in model.loops):
            break
    spread = 0.1 if make is plate else 2.0  # a plate that has turned by more is on another assembly
    starts = made.starts if made.starts is not None else rng.uniform(-spread, spread, (model.nq, 30))
    q, closed = assembled(data(model), starts, made.size)
    q = np.array(q[:, closed][:, :1], dtype=float)
    v = np.array(closing_velocity(data(model), q, rng.normal(size=(model.nv, 1)), made.size), dtype=float)
    tau = rng.normal(size=(model.nv, 1))
    a, _, left = Closed(data(model), q, v).accelerations(tau)
    assert left[0] < 1e-12
    if model.couplings or any(x.kind.name in ("distance", "soft_finger", *GUIDES) for x in model.loops):
        theirs = sl.Dynamics(model, method="dense").forward_dynamics(q[:, 0], v[:, 0], tau[:, 0])
    else:
        theirs = ClosedReference(model, q[:, 0], v[:, 0], scalar=float).forward_dynamics(tau[:, 0])[0]
    assert np.abs(a[:, 0] - theirs).max() < 1e-8 * max(1.0, np.abs(theirs).max())  # some cannot move

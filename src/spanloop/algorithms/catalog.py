"""Which algorithm answers which question: function, method, program. A new algorithm registers itself here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from spanloop.algorithms.closed import closure_kinematics, correction, dense, elimination
from spanloop.algorithms.papers.kreutz_rodriguez import arms_on_object, grasps, recursive_arms
from spanloop.algorithms.papers.lilly_orin import simple_closed_chain
from spanloop.algorithms.papers.rodriguez_jain_kreutz import closed_topology, system_response
from spanloop.algorithms.papers.saha import (
    complement_matrices,
    convective_inertia,
    decoupled_complement,
    leg_completion,
    parallel_legs,
)
from spanloop.algorithms.papers.yamane_nakamura import virtual_work
from spanloop.algorithms.tree import (
    articulated_body,
    articulated_body_textbook,
    composite_body,
    coordinates,
    energy,
    inverse_mass_matrix,
    kinematics,
    newton_euler,
    operational_space,
    unit_vector,
)
from spanloop.errors import InputError, nearest


@dataclass(frozen=True)
class Function:
    """A question a kernel can answer."""

    methods: dict[str, Callable]  # for trees; the first is the default
    options: tuple[str, ...] = ()  # keywords of the program's maker
    closed: dict[str, Callable] | None = None  # where there are closures; None: the same
    needs_tree: bool = False  # has the question no answer yet where there are closures?
    instead: str = "forward_dynamics"  # what to use then
    needs_closures: bool = False  # has it a meaning only where there are closures?


TREE_METHODS: dict[str, Callable] = {
    "articulated_body": articulated_body.forward_dynamics,
    "articulated_body_textbook": articulated_body_textbook.forward_dynamics,
    "composite_body": composite_body.forward_dynamics,
    "decoupled_complement": decoupled_complement.forward_dynamics,
    "unit_vector": unit_vector.forward_dynamics,
    "virtual_work": virtual_work.forward_dynamics,
    "virtual_work_unsplit": virtual_work.forward_dynamics_unsplit,
}

FUNCTIONS: dict[str, Function] = {
    "forward_dynamics": Function(
        TREE_METHODS,
        ("loaded",),
        closed={
            "elimination": elimination.forward_dynamics,
            "dense": dense.forward_dynamics,
            "parallel_legs": parallel_legs.forward_dynamics,
            "simple_closed_chain": simple_closed_chain.forward_dynamics,
            "closed_topology": closed_topology.forward_dynamics,
            "arms_on_object": partial(arms_on_object.forward_dynamics, solvers=TREE_METHODS),
            "arms_on_object_1": recursive_arms.forward_dynamics_1,
            "arms_on_object_2": recursive_arms.forward_dynamics_2,
            "arms_on_object_3": recursive_arms.forward_dynamics_3,
        },
    ),
    # torques of the actuated freedoms alone, for their accelerations alone
    "actuated_inverse_dynamics": Function(
        {}, ("loaded",), closed={"parallel_legs": parallel_legs.inverse_dynamics}, needs_closures=True
    ),
    # of unactuated joints, from the actuated ones
    "position_completion": Function(
        {}, closed={"parallel_legs": leg_completion.position_completion}, needs_closures=True
    ),
    "actuated_rates": Function({}, closed={"parallel_legs": leg_completion.actuated_rates}, needs_closures=True),
    "free_response": Function(
        {"closed_topology": system_response.free_response}, ("loaded", "points"), needs_tree=True
    ),
    "forced_response": Function({"closed_topology": system_response.forced_response}, ("points",), needs_tree=True),
    "closure_error": Function({"paths": closure_kinematics.closure_error}),
    "closure_facing": Function({"paths": closure_kinematics.closure_facing}),
    "closure_jacobian": Function({"paths": closure_kinematics.closure_jacobian}),
    "closure_bias": Function({"paths": closure_kinematics.closure_bias}),
    "grasp_accelerations": Function({"paths": grasps.grasp_accelerations}),
    "position_correction": Function({"elimination": correction.position_correction}),
    "velocity_correction": Function({"elimination": correction.velocity_correction}),
    "inverse_dynamics": Function(
        {
            "newton_euler": newton_euler.inverse_dynamics,
            "decoupled_complement": decoupled_complement.inverse_dynamics,
        },
        ("loaded",),
        needs_tree=True,
    ),
    # of the spanning tree, whatever closes it: M a + h, which joints and closures supply together
    "tree_inverse_dynamics": Function({"newton_euler": newton_euler.inverse_dynamics}, ("loaded",)),
    "mass_matrix": Function(
        {
            "composite_body": composite_body.mass_matrix,
            "decoupled_complement": complement_matrices.mass_matrix,
            "unit_vector": unit_vector.mass_matrix,
        }
    ),
    "inertia_factors": Function({"decoupled_complement": complement_matrices.inertia_factors}),
    "convective_inertia": Function({"decoupled_complement": convective_inertia.convective_inertia}),
    "convective_torque": Function({"decoupled_complement": convective_inertia.convective_torque}),
    "mass_matrix_inverse": Function({"articulated_body": inverse_mass_matrix.mass_matrix_inverse}, needs_tree=True),
    "bias": Function(
        {"newton_euler": newton_euler.bias, "decoupled_complement": decoupled_complement.bias}, ("loaded",)
    ),
    "operational_inverse_inertia": Function(
        {"admittance": operational_space.operational_inverse_inertia},
        ("frames",),
        needs_tree=True,
        instead="robot.operational_inertia(q, frames).inverse",
    ),
    "force_response": Function({"articulated_body": operational_space.force_response}, ("frames",), needs_tree=True),
    "gravity_torques": Function({"newton_euler": newton_euler.gravity_torques}),
    "reactions": Function({"newton_euler": newton_euler.reactions}, ("loaded",)),
    "constraint_forces": Function(
        {
            "virtual_work": virtual_work.constraint_forces,
            "virtual_work_unsplit": virtual_work.constraint_forces_unsplit,
        },
        ("loaded",),
        needs_tree=True,
    ),
    "pose": Function({"sweep": kinematics.pose}, ("frame",)),
    "poses": Function({"sweep": kinematics.all_poses}),
    "jacobian": Function({"sweep": kinematics.jacobian}, ("frame", "expressed_in")),
    "jacobian_bias": Function({"sweep": kinematics.jacobian_bias}, ("frame", "expressed_in")),
    "energy": Function({"sweep": energy.energy}),
    "momentum": Function({"sweep": energy.momentum}),
    "center_of_mass": Function({"sweep": energy.center_of_mass}),
    "integrate": Function({"joints": coordinates.integrate}),
    "difference": Function({"joints": coordinates.difference}),
}


def function(name: str) -> Function:
    if name not in FUNCTIONS:
        raise InputError(f"there is no function {name!r}; {nearest(name, FUNCTIONS)}")
    return FUNCTIONS[name]


def maker(name: str, method: str | None, closed: bool = False) -> tuple[str, Callable]:
    """The chosen method's name and the function that makes its program for a mechanism, with closures or without."""
    entry = function(name)
    if entry.needs_closures and not closed:
        raise InputError(f"{name} is for mechanisms with closures; this model has none")
    methods = entry.closed if closed and entry.closed is not None else entry.methods
    chosen = method or next(iter(methods))
    other = entry.methods if closed else entry.closed or {}
    if chosen not in methods and chosen in other:
        kind = "trees" if closed else "mechanisms with closures"
        raise InputError(f"{name}: method {chosen!r} is for {kind}; {nearest('', methods)} for this model")
    if chosen not in methods:
        raise InputError(f"{name} has no method {chosen!r}; {nearest(chosen, methods)}")
    return chosen, methods[chosen]

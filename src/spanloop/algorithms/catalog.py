"""The catalog: every function that a kernel can compute, its methods, and the options that each algorithm takes.

A new algorithm registers itself here. Options, by the keyword of the algorithm's maker:

| option | meaning |
|---|---|
| loaded | names of the bodies with external forces |
| frame, expressed_in | one frame, and the axes of the result |
| frames, points | several frames or bodies |
| redundancy | which closure rows are redundant |
| feedback | closure errors are fed back with the input `gains` |
| with_forces | the answer has the forces of the closure rows, after the accelerations |
| contacts | the contacts of the model |
| open_chain | the method for the trees that loops leave when cut |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from spanloop.algorithms.closed import closure_correction, closure_kinematics, dense, elimination
from spanloop.algorithms.contact import contact_motion, impulse_response
from spanloop.algorithms.papers.kreutz_rodriguez import arms_on_object, grasps, recursive_arms
from spanloop.algorithms.papers.lilly_orin import simple_closed_chain
from spanloop.algorithms.papers.rodriguez_jain_kreutz import closed_topology, system_response
from spanloop.algorithms.papers.saha import (
    complement_matrices,
    decoupled_complement,
    leg_completion,
    parallel_legs,
)
from spanloop.algorithms.papers.yamane_nakamura import virtual_work
from spanloop.algorithms.tree import (
    articulated_body,
    articulated_body_textbook,
    centroidal,
    composite_body,
    coordinates,
    energy,
    inverse_mass_matrix,
    kinematics,
    newton_euler,
    operational_space,
    regressor,
    unit_vector,
)
from spanloop.errors import InputError, nearest
from spanloop.sweeps import Program


@dataclass(frozen=True)
class Algorithm:
    """make(mechanism, **options) returns the Program for a mechanism; `takes` names the options.

    refines: where closure rows have lost digits, elimination with refinement answers instead (closed/refinement.py).
    rigid_only: its paper knows rigid bodies only; models with flexible ones are refused.
    """

    make: Callable[..., Program]
    takes: tuple[str, ...] = ()
    refines: bool = False
    rigid_only: bool = False


@dataclass(frozen=True)
class Function:
    """A function of the catalog: its algorithms by method."""

    methods: dict[str, Algorithm]  # for trees; the first is the default
    closed: dict[str, Algorithm] | None = None  # for mechanisms with closures; None: the same
    needs_tree: bool = False  # mechanisms with closures are refused
    instead: str = "forward_dynamics"  # what to use for them
    needs_closures: bool = False  # trees are refused
    needs_contacts: bool = False  # models without contacts are refused
    if_flexible: str = ""  # what to use for models with flexible bodies, where every method is for rigid ones

    @property
    def options(self) -> tuple[str, ...]:
        """What its default algorithm takes."""
        return next(iter((self.methods or self.closed or {}).values())).takes

    def for_flexible(self, closed: bool) -> str:
        """What to use for a model with flexible bodies: a method that knows them, or another function."""
        methods = self.closed if closed and self.closed is not None else self.methods
        known = [method for method, algorithm in methods.items() if not algorithm.rigid_only]
        return f"method {known[0]!r}" if known else self.if_flexible


_FORCES = ("loaded",)
_LOOPS = ("loaded", "redundancy")
_FEEDBACK = ("loaded", "redundancy", "feedback")

_rigid_only = partial(Algorithm, rigid_only=True)

TREE_METHODS: dict[str, Callable[..., Program]] = {
    "articulated_body": articulated_body.forward_dynamics,
    "articulated_body_textbook": articulated_body_textbook.forward_dynamics,
    "composite_body": composite_body.forward_dynamics,
    "decoupled_complement": decoupled_complement.forward_dynamics,
    "unit_vector": unit_vector.forward_dynamics,
    "virtual_work": virtual_work.forward_dynamics,
    "virtual_work_unsplit": virtual_work.forward_dynamics_unsplit,
}

_RIGID_TREE_METHODS = ("decoupled_complement", "virtual_work", "virtual_work_unsplit")

FUNCTIONS: dict[str, Function] = {
    "forward_dynamics": Function(
        {
            method: Algorithm(make, _FORCES, rigid_only=method in _RIGID_TREE_METHODS)
            for method, make in TREE_METHODS.items()
        },
        closed={
            "elimination": Algorithm(elimination.forward_dynamics, (*_FEEDBACK, "with_forces"), True),
            "dense": Algorithm(dense.forward_dynamics, _LOOPS, True),
            "parallel_legs": _rigid_only(parallel_legs.forward_dynamics, _LOOPS),
            "simple_closed_chain": _rigid_only(simple_closed_chain.forward_dynamics, _FEEDBACK, True),
            "closed_topology": Algorithm(closed_topology.forward_dynamics, _FEEDBACK, True),
            "arms_on_object": _rigid_only(
                partial(arms_on_object.forward_dynamics, solvers=TREE_METHODS), (*_FEEDBACK, "open_chain"), True
            ),
            "arms_on_object_1": _rigid_only(recursive_arms.forward_dynamics_1, _FEEDBACK, True),
            "arms_on_object_2": _rigid_only(recursive_arms.forward_dynamics_2, _FEEDBACK, True),
            "arms_on_object_3": _rigid_only(recursive_arms.forward_dynamics_3, _FEEDBACK, True),
        },
    ),
    # torques of the actuated degrees of freedom from their accelerations
    "actuated_inverse_dynamics": Function(
        {},
        {"parallel_legs": _rigid_only(parallel_legs.inverse_dynamics, _LOOPS)},
        needs_closures=True,
        if_flexible="robot.inverse_dynamics(q, v, a)",
    ),
    # positions and rates of the unactuated joints from the actuated ones
    "position_completion": Function(
        {},
        {"parallel_legs": _rigid_only(leg_completion.position_completion, ("redundancy",))},
        needs_closures=True,
        if_flexible="robot.assemble(q), and closures='project' in runs",
    ),
    "actuated_rates": Function(
        {},
        {"parallel_legs": _rigid_only(leg_completion.actuated_rates, ("redundancy",))},
        needs_closures=True,
        if_flexible="robot.complete_velocity(q, rates)",
    ),
    "free_response": Function(
        {"closed_topology": Algorithm(system_response.free_response, ("loaded", "points"))}, needs_tree=True
    ),
    "forced_response": Function(
        {"closed_topology": Algorithm(system_response.forced_response, ("points",))}, needs_tree=True
    ),
    "closure_error": Function({"paths": Algorithm(closure_kinematics.closure_error)}),
    "closure_facing": Function({"paths": Algorithm(closure_kinematics.closure_facing)}),
    "closure_jacobian": Function({"paths": Algorithm(closure_kinematics.closure_jacobian)}),
    "closure_bias": Function({"paths": Algorithm(closure_kinematics.closure_bias)}),
    "grasp_accelerations": Function({"paths": Algorithm(grasps.grasp_accelerations)}),
    "position_correction": Function(
        {"elimination": Algorithm(closure_correction.position_correction, ("redundancy",))}
    ),
    "velocity_correction": Function(
        {"elimination": Algorithm(closure_correction.velocity_correction, ("redundancy",))}
    ),
    "impact": Function({"elimination": Algorithm(closure_correction.impact, ("redundancy",))}),
    "impulse_response": Function(
        {"elimination": Algorithm(impulse_response.impulse_response, ("frames", "redundancy"))}
    ),
    "link_velocities": Function({"sweep": Algorithm(impulse_response.link_velocities, ("frames",))}),
    "inverse_dynamics": Function(
        {
            "newton_euler": Algorithm(newton_euler.inverse_dynamics, _FORCES),
            "decoupled_complement": _rigid_only(decoupled_complement.inverse_dynamics, _FORCES),
        },
        needs_tree=True,
    ),
    # of the spanning tree, whatever closes it: M a + h, which joints and closures supply together
    "tree_inverse_dynamics": Function({"newton_euler": Algorithm(newton_euler.inverse_dynamics, _FORCES)}),
    # of the spanning tree, as tree_inverse_dynamics: torques that are linear in the inertial parameters of bodies
    "regressor": Function(
        {"newton_euler": _rigid_only(regressor.regressor)},
        if_flexible="tree_inverse_dynamics: torques are not linear in ten parameters of a body that bends",
    ),
    "mass_matrix": Function(
        {
            "composite_body": Algorithm(composite_body.mass_matrix),
            "decoupled_complement": _rigid_only(complement_matrices.mass_matrix),
            "unit_vector": Algorithm(unit_vector.mass_matrix),
        }
    ),
    "inertia_factors": Function(
        {"decoupled_complement": _rigid_only(complement_matrices.inertia_factors)}, if_flexible="mass_matrix"
    ),
    "convective_inertia": Function(
        {"decoupled_complement": _rigid_only(complement_matrices.convective_inertia)}, if_flexible="bias"
    ),
    "convective_torque": Function(
        {"decoupled_complement": _rigid_only(complement_matrices.convective_torque)}, if_flexible="bias"
    ),
    "mass_matrix_inverse": Function(
        {"articulated_body": Algorithm(inverse_mass_matrix.mass_matrix_inverse)}, needs_tree=True
    ),
    "bias": Function(
        {
            "newton_euler": Algorithm(newton_euler.bias, _FORCES),
            "decoupled_complement": _rigid_only(decoupled_complement.bias, _FORCES),
        }
    ),
    "operational_inverse_inertia": Function(
        {"admittance": Algorithm(operational_space.operational_inverse_inertia, ("frames",))},
        needs_tree=True,
        instead="robot.operational_inertia(q, frames).inverse",
    ),
    "force_response": Function(
        {"articulated_body": Algorithm(operational_space.force_response, ("frames",))}, needs_tree=True
    ),
    "gravity_torques": Function({"newton_euler": Algorithm(newton_euler.gravity_torques)}),
    "reactions": Function({"newton_euler": Algorithm(newton_euler.reactions, _FORCES)}),
    "constraint_forces": Function(
        {
            "virtual_work": _rigid_only(virtual_work.constraint_forces, _FORCES),
            "virtual_work_unsplit": _rigid_only(virtual_work.constraint_forces_unsplit, _FORCES),
        },
        needs_tree=True,
        instead="robot.reactions(q, v, tau) or robot.solve(q, v, tau)",
        if_flexible="robot.reactions(q, v, tau)",
    ),
    "pose": Function({"sweep": Algorithm(kinematics.pose, ("frame",))}),
    "poses": Function({"sweep": Algorithm(kinematics.all_poses)}),
    "jacobian": Function({"sweep": Algorithm(kinematics.jacobian, ("frame", "expressed_in"))}),
    "jacobian_bias": Function({"sweep": Algorithm(kinematics.jacobian_bias, ("frame", "expressed_in"))}),
    "frame_velocity": Function({"sweep": Algorithm(kinematics.frame_velocity, ("frame", "expressed_in"))}),
    "frame_acceleration": Function({"sweep": Algorithm(kinematics.frame_acceleration, ("frame", "expressed_in"))}),
    "frame_spatial_acceleration": Function(
        {"sweep": Algorithm(kinematics.frame_spatial_acceleration, ("frame", "expressed_in"))}
    ),
    "energy": Function({"sweep": Algorithm(energy.energy)}),
    "momentum": Function({"sweep": Algorithm(energy.momentum)}),
    "center_of_mass": Function({"sweep": Algorithm(energy.center_of_mass)}),
    "center_of_mass_jacobian": Function({"sweep": Algorithm(energy.center_of_mass_jacobian)}),
    "centroidal_momentum_matrix": Function({"sweep": Algorithm(centroidal.centroidal_momentum_matrix)}),
    "centroidal_momentum_bias": Function({"sweep": Algorithm(centroidal.centroidal_momentum_bias)}),
    "contact_geometry": Function(
        {"sweep": Algorithm(contact_motion.contact_geometry, ("contacts",))}, needs_contacts=True
    ),
    "contact_velocities": Function(
        {"sweep": Algorithm(contact_motion.contact_velocities, ("contacts",))}, needs_contacts=True
    ),
    "integrate": Function({"joints": Algorithm(coordinates.integrate)}),
    "difference": Function({"joints": Algorithm(coordinates.difference)}),
}


def function(name: str) -> Function:
    """The function of this name; InputError offers the nearest if there is none."""
    if name not in FUNCTIONS:
        raise InputError(f"there is no function {name!r}; {nearest(name, FUNCTIONS)}")
    return FUNCTIONS[name]


def algorithm(name: str, method: str | None, closed: bool = False) -> tuple[str, Algorithm]:
    """The method (None: the default) and its algorithm, for mechanisms with closures or for trees."""
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

"""Closed loops: assembly, projection, independent coordinates, diagnosis, inverse dynamics, subsystems."""

from spanloop.loops.assembly.assembly import assemble, project
from spanloop.loops.assembly.path_following import follow
from spanloop.loops.closed_inverse import inverse_dynamics, solve_inverse
from spanloop.loops.diagnosis import Diagnosis, diagnose
from spanloop.loops.independent_dofs import (
    IndependentCoordinates,
    complete_acceleration,
    complete_velocity,
    independent_coordinates,
    mobility,
    velocity_map,
)
from spanloop.loops.minimal_coordinates import MinimalCoordinates
from spanloop.loops.reduced_inertia import OperationalInertia, independent_mass_matrix, operational_inertia
from spanloop.loops.subsystems import Subsystems, subsystems

__all__ = [
    "Diagnosis",
    "IndependentCoordinates",
    "MinimalCoordinates",
    "OperationalInertia",
    "Subsystems",
    "assemble",
    "complete_acceleration",
    "complete_velocity",
    "diagnose",
    "follow",
    "independent_coordinates",
    "independent_mass_matrix",
    "inverse_dynamics",
    "mobility",
    "operational_inertia",
    "project",
    "solve_inverse",
    "subsystems",
    "velocity_map",
]

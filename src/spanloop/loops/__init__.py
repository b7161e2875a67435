"""Kinematics of closed loops: assembling, projecting, independent freedoms, diagnosis, effective inertia."""

from spanloop.loops.assembling import assemble
from spanloop.loops.diagnosing import Diagnosis, diagnose
from spanloop.loops.effective import OperationalInertia, independent_mass_matrix, operational_inertia
from spanloop.loops.independent import (
    Independent,
    complete_acceleration,
    complete_velocity,
    independent_freedoms,
    mobility,
    velocity_map,
)
from spanloop.loops.projecting import project

__all__ = [
    "Diagnosis",
    "Independent",
    "OperationalInertia",
    "assemble",
    "complete_acceleration",
    "complete_velocity",
    "diagnose",
    "independent_freedoms",
    "independent_mass_matrix",
    "mobility",
    "operational_inertia",
    "project",
    "velocity_map",
]

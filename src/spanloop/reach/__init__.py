"""Inverse kinematics: states whose frames, axes and centre of mass are where targets say."""

from spanloop.reach.along_path import inverse_kinematics_path
from spanloop.reach.inverse_kinematics import inverse_kinematics
from spanloop.reach.result import Reach

__all__ = ["Reach", "inverse_kinematics", "inverse_kinematics_path"]

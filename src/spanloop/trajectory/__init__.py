"""Trajectories: samples of motions, parts by name, resampling, audit, sensors, files."""

from spanloop.trajectory.events import EventTable
from spanloop.trajectory.segment import EndReason, Outcome, Segment
from spanloop.trajectory.trajectory import Trajectory

__all__ = ["EndReason", "EventTable", "Outcome", "Segment", "Trajectory"]

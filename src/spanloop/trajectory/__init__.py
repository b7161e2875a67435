"""What a simulation gives: trajectories with named access, resampling, an audit in words, files."""

from spanloop.trajectory.segment import EndReason, Outcome, Segment
from spanloop.trajectory.trajectory import Trajectory

__all__ = ["EndReason", "Outcome", "Segment", "Trajectory"]

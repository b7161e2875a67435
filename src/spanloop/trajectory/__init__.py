"""What a simulation gives: trajectories with named access, resampling, an audit in words, files."""

from spanloop.trajectory.segment import Outcome, Segment
from spanloop.trajectory.trajectory import Trajectory

__all__ = ["Outcome", "Segment", "Trajectory"]

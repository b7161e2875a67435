"""What a simulation gives: trajectories with named access, resampling, an audit in words, files."""

from spanloop.results.outcome import Outcome
from spanloop.results.segment import Segment
from spanloop.results.trajectory import Trajectory

__all__ = ["Outcome", "Segment", "Trajectory"]

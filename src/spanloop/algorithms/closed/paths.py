"""Ways through the tree between two links, as closures need them; they live in topology/paths.py."""

from spanloop.topology.paths import between, point, relative_pose, rotation

__all__ = ["between", "point", "relative_pose", "rotation"]

"""A run as a video: frames drawn in NumPy, without a browser or a graphics card."""

from spanloop.view.video.video import write

__all__ = ["write"]

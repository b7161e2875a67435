"""A run as one HTML file: the moving mechanism, plots tied to it, the audit. It needs no network."""

from spanloop.view.page.html import text, write

__all__ = ["text", "write"]

"""The zoo as live pages: an index with pictures, and one page a mechanism."""

from spanloop.view.gallery.gallery import Made, write

__all__ = ["Made", "write"]

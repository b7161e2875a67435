"""The zoo as live pages: an index with pictures, and one page a mechanism."""

from spanloop.view.gallery.gallery import Made, write, write_page

__all__ = ["Made", "write", "write_page"]

"""Kernels and motions that leave Python: C99, FMU, WebAssembly.

The package has the name of its public function. An import of one of its modules binds `spanloop.export` to the package;
called, it is sl.export.
"""

from __future__ import annotations

import sys
import types
from typing import Any


class _Package(types.ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        from spanloop.export.export import export

        return export(*arguments, **options)


sys.modules[__name__].__class__ = _Package

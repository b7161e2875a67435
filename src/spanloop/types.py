"""Names of the shapes that travel between rooms."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Scalar: TypeAlias = Any  # a float, or a traced scalar that behaves like one
Vector3: TypeAlias = tuple[Scalar, Scalar, Scalar]
Matrix3: TypeAlias = tuple[Vector3, Vector3, Vector3]
Floats3: TypeAlias = tuple[float, float, float]
Floats33: TypeAlias = tuple[Floats3, Floats3, Floats3]
Array: TypeAlias = NDArray[np.floating[Any]]  # of float64 or float32

"""From a model and a function of the catalog to a kernel: spec, cache key, plan, machine code, refusals."""

from spanloop.kernels.cache_key import content, source_hash
from spanloop.kernels.compile import compile, machine_kernel, operations
from spanloop.kernels.lowering import KNEE, UNIT_TOLERANCE
from spanloop.kernels.on_scalars import on_scalars
from spanloop.kernels.spec import KernelSpec, refuse_closures

__all__ = [
    "KNEE",
    "UNIT_TOLERANCE",
    "KernelSpec",
    "compile",
    "content",
    "machine_kernel",
    "on_scalars",
    "operations",
    "refuse_closures",
    "source_hash",
]

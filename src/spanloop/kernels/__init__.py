"""From a model and a function of the catalog to a kernel: spec, plan, machine code, refusals."""

from spanloop.kernels.compile import compile, machine_kernel, operations
from spanloop.kernels.lowering import LOOP_THRESHOLD, UNIT_TOLERANCE
from spanloop.kernels.on_scalars import on_scalars
from spanloop.kernels.spec import (
    KernelSpec,
    check_call_options,
    checked_model,
    content,
    of_model,
    redundancy_of,
    source_hash,
)
from spanloop.kernels.state_refusals import refuse_closures

__all__ = [
    "LOOP_THRESHOLD",
    "UNIT_TOLERANCE",
    "KernelSpec",
    "check_call_options",
    "checked_model",
    "compile",
    "content",
    "machine_kernel",
    "of_model",
    "on_scalars",
    "operations",
    "redundancy_of",
    "refuse_closures",
    "source_hash",
]

"""The one door between mathematics and machines: a model and a question become a kernel."""

from spanloop.kernels.cache_key import content, source_hash
from spanloop.kernels.compile import compile, operations
from spanloop.kernels.explain import UNIT_TOLERANCE
from spanloop.kernels.lowering import KNEE
from spanloop.kernels.on_scalars import on_scalars
from spanloop.kernels.spec import Question, refuse_closures

__all__ = [
    "KNEE",
    "UNIT_TOLERANCE",
    "Question",
    "compile",
    "content",
    "on_scalars",
    "operations",
    "refuse_closures",
    "source_hash",
]

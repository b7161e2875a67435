"""The one door between mathematics and machines: a model and a question become a kernel."""

from spanloop.compiling.counting import operations
from spanloop.compiling.door import compile
from spanloop.compiling.identity import content, source_hash
from spanloop.compiling.lowering import KNEE
from spanloop.compiling.question import Question
from spanloop.compiling.refusing import refuse_closures
from spanloop.compiling.scalars import on_scalars
from spanloop.compiling.units import UNIT_TOLERANCE

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

"""The scalar graph that plain Python arithmetic leaves behind."""

from spanloop.compiler.trace.graph import Condition, Expression, Graph, TraceError

__all__ = ["Condition", "Expression", "Graph", "TraceError"]

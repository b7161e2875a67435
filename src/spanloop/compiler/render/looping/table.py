"""The table of addresses through which looped code finds its data, and what ends every source."""

from __future__ import annotations

from spanloop.compiler.render.body import declarations
from spanloop.compiler.render.real import Real

TABLE = ("numbers", "meta", "world", "answer", "memory")


def ending(t: Real, bits: int) -> str:
    """The table, what is declared, and vectors of so many bits."""
    tables = f"@data = global [{len(TABLE)} x ptr] zeroinitializer\n@busy = global i32 0\n"
    attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}\n'
    return tables + declarations(t) + attributes


def entry(name: str, at: str) -> list[str]:
    """Read one address of the table."""
    k = TABLE.index(name)
    return [
        f"%{at}.p = getelementptr [{len(TABLE)} x ptr], ptr @data, i64 0, i64 {k}",
        f"%{at} = load ptr, ptr %{at}.p",
    ]

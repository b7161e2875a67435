"""A looped walk as LLVM functions: steps as internal functions, loops over links, data behind one global table.

    i32 kernel(ptr in0, ..., ptr out)
    i64 batch(ptr in0, i64 stride0, ..., ptr out, ptr status, ptr scratch, i64 begin, i64 end)

as for unrolled plans. The host fills the table `data` when the code is loaded: addresses of numbers, meta, the world's
record, the answer's entries, and of memory for the records of one state.
"""

from spanloop.compiler.render.rolled.batch import looped_batch, looped_scratch
from spanloop.compiler.render.rolled.passes import TABLE
from spanloop.compiler.render.rolled.single import looped_single

__all__ = ["TABLE", "looped_batch", "looped_scratch", "looped_single"]

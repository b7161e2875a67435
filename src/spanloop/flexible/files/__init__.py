"""Files of finite-element programs: one reader a format, `load` for all of them."""

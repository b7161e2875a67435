"""Plans and Schedules as C99 and as WebAssembly: the same operations in the same order, equal to the bit."""

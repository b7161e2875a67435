"""Files of Nastran: matrices (OP4, DMIG) and nodes (bulk data)."""

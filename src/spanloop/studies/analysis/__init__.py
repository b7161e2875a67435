"""Analysis of studies: summary, sensitivities, audit, the best numbers."""

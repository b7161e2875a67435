"""What results of studies say: summary, sensitivities, the best numbers."""

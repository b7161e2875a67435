"""Files of runs: netCDF-4, .npz, .csv."""

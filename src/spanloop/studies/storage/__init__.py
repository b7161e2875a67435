"""The results of a study on disk, and as an xarray.Dataset."""

"""Functions of models for other libraries: each file is imported only with the library that it serves."""

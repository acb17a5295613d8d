"""MPI: the only package that names mpi4py."""

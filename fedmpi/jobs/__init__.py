"""Slurm jobs from a suite: plan, scripts, submission, state. Needs neither torch nor MPI."""

"""Trained models outside of their runs: read from a checkpoint, written to a file, used on other graphs."""

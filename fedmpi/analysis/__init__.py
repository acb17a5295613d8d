"""Reports, comparisons and pictures from records: never torch, never MPI."""

from fedmpi.analysis.frames import Frames, load

__all__ = ["Frames", "load"]

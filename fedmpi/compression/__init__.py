"""Compressors of updates: a file per method."""

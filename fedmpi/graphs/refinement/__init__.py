"""Colour refinement: nodes that no layer can tell apart are computed once (docs/performance.md)."""

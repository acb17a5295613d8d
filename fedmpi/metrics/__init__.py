"""Figures of merit as pure functions of arrays; defined in docs/metrics.md."""

"""Secure aggregation: the sum of a group's updates, and nothing of a single client's (docs/security.md)."""

"""Federated algorithms: what is shared and how it is combined. One file each, found by name."""

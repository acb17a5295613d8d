"""Micro-benchmarks: what the parts of a round cost on this machine, and the same round in a peer."""

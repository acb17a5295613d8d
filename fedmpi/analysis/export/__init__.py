"""Runs in the formats of other tools; written without those tools."""

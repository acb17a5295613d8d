"""Reads records and turns them into figures, tables and verdicts."""

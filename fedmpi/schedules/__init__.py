"""Whose updates each server step uses, and of which models: a pure function of the configuration."""

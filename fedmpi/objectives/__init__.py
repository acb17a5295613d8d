"""Local losses: what a client minimises."""

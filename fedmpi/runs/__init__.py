"""The loop and the life of a run: rounds, run folder, checkpoints, signals, watchdog."""

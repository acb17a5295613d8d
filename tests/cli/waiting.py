"""Waiting for what other processes do."""

import time


def wait_for(condition, seconds=120.0):
    """Return when a condition holds; fail where it does not within so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)

"""The checked cases of bundled suites."""

from functools import cache

from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.registry.check import check_suite


@cache
def cases(name):
    """Return a bundled suite's cases by name."""
    return {item.case.name: item.case for item in check_suite(read(locations.find(name)))}

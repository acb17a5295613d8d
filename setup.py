"""The packages of a wheel: bench/ and jobs/ beside those found. All else is in pyproject.toml."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["fedmpi", "fedmpi.*"]), "fedmpi.suites", "fedmpi.job_scripts"],
    package_dir={"fedmpi.suites": "bench", "fedmpi.job_scripts": "jobs"},
)

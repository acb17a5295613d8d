"""The packages of a wheel; all else is in pyproject.toml, which cannot add bench/ and jobs/ to those found."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["fedmpi", "fedmpi.*"]), "fedmpi.suites", "fedmpi.job_scripts"],
    package_dir={"fedmpi.suites": "bench", "fedmpi.job_scripts": "jobs"},
)

"""``python -m fedmpi``: the same as the console script."""

from fedmpi.cli.main import main

main()

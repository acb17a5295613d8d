"""What a command that refuses its input must print."""


def refused(done, *words):
    """Assert that a command ended with code 2 and one line on the standard error that has these words."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.startswith("fedmpi: ")
    assert done.stderr.count("\n") == 1, done.stderr
    for word in words:
        assert word in done.stderr

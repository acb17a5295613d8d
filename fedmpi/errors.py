"""What can go wrong, sorted by whose mistake it is and by the exit code it ends in."""


class FedmpiError(ValueError):
    """Base of every error that is reported to the user as one line, without a traceback."""

    exit_code = 1
    agreed = False
    """Whether every rank of a run raises this error, so that each may end by itself."""


class BadInput(FedmpiError):
    """The user's input cannot be honoured; the message says what to do (exit code 2)."""

    exit_code = 2


class Diverged(FedmpiError):
    """A loss or an update became NaN or infinite; the message names round and client (exit code 3)."""

    exit_code = 3
    agreed = True


class Interrupted(FedmpiError):
    """The run stopped on request and can be continued (exit code 75)."""

    exit_code = 75
    agreed = True


class RunFailed(FedmpiError):
    """The run cannot go on through no mistake in its input: disk full, replay mismatch (exit code 1)."""


class TooFewLeft(RunFailed):
    """Too few clients were left in a secure sum, after which the case asks to end (exit code 1)."""

    agreed = True


class RankFailed(RunFailed):
    """One rank cannot go on, through its algorithm or an error of its own; the run's status is `failed`."""

    printed = False
    """Whether another rank has printed it already."""

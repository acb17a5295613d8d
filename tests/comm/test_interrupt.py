"""Ctrl-C where there is no round to finish."""

import signal
import subprocess
import sys

import pytest

from fedmpi.comm import interrupt


def test_ctrl_c_raises_within_and_not_beyond():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(interrupt.Stopped), interrupt.raised():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_background_job_goes_on_ignoring_it():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupt.raised():
            signal.raise_signal(signal.SIGINT)
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


IMPORTING = """
import signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
sys.argv = ["fedmpi", *{arguments!r}]
from fedmpi.__main__ import main
main()
"""


LEAVING = """
from fedmpi.comm.interrupt import leave
from fedmpi.exits import exits_raised
with exits_raised():
    try:
        leave()
    except SystemExit:
        print("it was taken for an exit of a hook")
"""


@pytest.mark.parametrize(
    "code",
    [
        IMPORTING.format(module="fedmpi.comm.interrupt", arguments=["suites"]),
        IMPORTING.format(module="fedmpi.cli.settings", arguments=["suites"]),
        IMPORTING.format(module="fedmpi.datasets.loading", arguments=["run", "synthetic/quick"]),
        LEAVING,
    ],
    ids=["at first", "of a command", "of a run", "no exit of a hook"],
)
def test_ctrl_c_during_an_import_and_in_a_hook_is_one_line(code, tmp_path):
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (75, "", "fedmpi: interrupted\n")

"""Strikes a command that runs cases, gives it again on other numbers of ranks, and compares the ends.

After a blow all processes must end by themselves, and no finished round may be lost. At the end the records, and
those that `repair` makes of the event logs alone, must be those of undisturbed runs; of runs by the real clock, whose
order comes about, those of their replays.
"""

import json
import os
import random
import re
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fedmpi.errors import FedmpiError
from fedmpi.store import arrivals
from fedmpi.store.identical import compare
from fedmpi.store.reader import load_run
from fedmpi.store.rebuild import rebuild
from tests.mpi.examples import EXAMPLES
from tests.mpi.launcher import Mpi
from tests.mpi.molecules import prepare

SUITE = Path(__file__).with_name("suite.toml")
STRUCK = Path(__file__).with_name("struck.py")

_SAMPLED = ", participation = 0.6"
_IID = ', dataset = { synthetic = { domains = 1, graphs = 90 } }, partition = { name = "iid", clients = 3 }'
PLUGINS = {
    **dict.fromkeys(("sam", "careful", "partial", "roots"), _SAMPLED),
    "fomo": _SAMPLED + _IID,
    "distil": f"{_SAMPLED}, public = 0.3{_IID}",
}
"""Examples of docs/extend.md, and further settings of their cases."""


REAL_CLOCK = {
    "real-buffered": 'algorithm = "fedprox", schedule = { name = "buffered", size = 2, clock = "real" }',
    "real-asynchronous": 'algorithm = "ditto", schedule = { name = "asynchronous", clock = "real" }, '
    'model = { norm = "batch" }',
}
"""Cases whose order comes about; 2 ranks are needed until it is known."""


def rows_of_plugins():
    """Return the rows of a suite's matrix with a case of each plug-in."""
    row = '    {{ label = "{0}", algorithm = "{0}"{1} }},\n'
    return "".join(row.format(*each) for each in PLUGINS.items())


def write_plugins(folder):
    """Write the files of the plug-ins, and return their paths."""
    files = [folder / f"{name}.py" for name in PLUGINS]
    for file in files:
        file.write_text(EXAMPLES[file.name][0])
    return files


ENDS_WITHIN_S = 90.0
"""After a blow all processes must be gone by then."""

NEVER_LONGER_S = 300.0
"""An attempt that has not come to its moment by then hangs."""

_PYTHON_STARTS = "to import the site module"
_RACES = "the clients train by the real clock"
_MARK = "FEDMPI_STORM"
_RANK = (b"PMI_RANK=", b"OMPI_COMM_WORLD_RANK=", b"SLURM_PROCID=")


@dataclass(frozen=True)
class Blow:
    """A signal to some processes of an attempt, at a moment of a case.

    In the moments in which struck.py has a rank kill itself, `victim` is that rank.
    """

    case: str
    ranks: int
    victim: str
    signal: str = "KILL"
    moment: str = "held"


class Launch:
    """A launcher and all that came from it, known by a mark in their environment."""

    def __init__(self, mpi, ranks, command, cwd):
        mark, self._output = secrets.token_hex(8), tempfile.TemporaryFile()  # noqa: SIM115
        self._mark = f"{_MARK}={mark}".encode()
        variables = {_MARK: mark, "OMP_NUM_THREADS": "1"}
        self._launcher = mpi.start(ranks, *command, cwd=cwd, output=self._output, **variables)

    def output(self):
        """Return what all ranks printed."""
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    def _marked(self):
        """Return the processes that live, and the rank of each that has one."""
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                variables = (path / "environ").read_bytes().split(b"\0")
                state = (path / "stat").read_text().rpartition(")")[2].split()[0]
                if self._mark in variables and state not in "ZX":
                    ranks = [int(each.partition(b"=")[2]) for each in variables if each.startswith(_RANK)]
                    found[int(path.name)] = ranks[0] if ranks else None
        return found

    def until(self, reached, seconds):
        """Wait for something; return whether the launch goes on when it came, or time was up."""
        end = time.monotonic() + seconds
        while self._launcher.poll() is None and time.monotonic() < end and not reached():
            time.sleep(0.002)
        return self._launcher.poll() is None

    def send(self, number, victim, chance):
        """Send a signal to the launcher, one rank, the last one, all ranks, or everything at once."""
        marked = self._marked()
        ranks = sorted(pid for pid, rank in marked.items() if rank is not None)
        targets = {
            "launcher": [self._launcher.pid],
            "one rank": chance.sample(ranks, min(1, len(ranks))),
            "last rank": sorted(ranks, key=marked.__getitem__)[-1:],
            "all ranks": ranks,
            "everything": list(marked),
        }
        _send(number, targets[victim])

    def wait(self, seconds):
        """Wait until all are gone; kill what is not by then and return how many that were."""
        end = time.monotonic() + seconds
        while (left := self._marked()) and time.monotonic() < end:
            self._launcher.poll()
            time.sleep(0.02)
        _send(signal.SIGKILL, left)
        self._launcher.wait()
        return len(left)


def _send(number, processes):
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@dataclass
class Storm:
    """A command that runs some cases, struck and given again; `problems` is what went wrong."""

    mpi: Mpi
    root: Path
    cases: Sequence[str]
    rounds: int
    checkpoint_seconds: str = "0.0"
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    say: Callable[[str], None] = print
    problems: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.out = self.root / "struck"
        prepare(self.root / "data")
        rows = rows_of_plugins()
        rows += "".join(f'    {{ label = "{name}", {each} }},\n' for name, each in REAL_CLOCK.items())
        often = f"rounds = {self.rounds}\ncheckpoint_seconds = {self.checkpoint_seconds}\n"
        text = SUITE.read_text().replace("rounds = 4\n", often).removesuffix("]\n")
        text = re.sub(r", rounds = \d+", "", text)
        (self.root / "storm.toml").write_text(f"{text}{rows}]\n")
        (self.root / "cases").write_text("\n".join(self.cases))
        (self.root / "pure").write_text("\n".join(each for each in self.cases if each not in REAL_CLOCK))

    def command(self, out, cases="cases"):
        """Return the arguments of fedmpi that start or resume the cases of a file."""
        words = f"run storm.toml --cases {cases} --data data --resume --out {out}".split()
        for file in write_plugins(self.root):
            words += ["--plugin", file.name]
        return words

    def current(self):
        """Return the case that is to be run next; nothing where all are complete."""
        return next((case for case in self.cases if not self.complete(case)), None)

    def raced(self, case):
        """Return whether a case's order is known to its end: by the real clock it has come about."""
        if case not in REAL_CLOCK:
            return True
        with suppress(OSError), np.load(self.out / case / arrivals.NAME) as order:
            return len(order["staleness"]) == self.rounds
        return False

    def complete(self, case):
        """Return whether a case has come to its end."""
        with suppress(FedmpiError):  # there is no record yet
            return load_run(self.out / case).status == "complete"

    def strike(self, blow):
        """Start an attempt and strike it once."""
        words = [STRUCK, blow.case, blow.moment, blow.victim, *self.command(self.out)]
        attempt, before = Launch(self.mpi, blow.ranks, words, self.root), 0
        try:
            if self._reach(attempt, blow):
                before = num_rounds(self.out / blow.case)
                attempt.send(getattr(signal, f"SIG{blow.signal}"), blow.victim, self.chance)
        finally:
            hanging = attempt.wait(ENDS_WITHIN_S if sys.exc_info()[0] is None else 0.0)
        after = num_rounds(self.out / blow.case)
        if hanging:
            self.problems.append(f"{blow}: {hanging} processes live after {ENDS_WITHIN_S:g} s")
        output = attempt.output()
        if "Traceback" in output and _PYTHON_STARTS not in output:
            self.problems.append(f"{blow}: {output[-1500:]}")
        if after < before:
            self.problems.append(f"{blow}: {before} rounds before, {after} after")
        self.say(f"{blow}: {before} rounds before, {after} after; problems: {self.problems or 'none'}")

    def _reach(self, attempt, blow):
        """Wait for the moment of a blow; return whether a signal is to be sent then."""
        folder, chance = self.out / blow.case, self.chance
        match blow.moment:
            case "start-up":
                return attempt.until(lambda: False, chance.uniform(0.0, 2.5))
            case "loading":
                going = attempt.until((folder / "lock").exists, NEVER_LONGER_S)
                time.sleep(chance.uniform(0.0, 0.3))
                return going
            case "race":
                going = attempt.until(lambda: _RACES in attempt.output(), NEVER_LONGER_S)
                time.sleep(chance.uniform(0.0, 0.8))
                return going
            case "round":
                target = lines_of_rounds(folder) + chance.randint(1, 12)
                going = attempt.until(lambda: lines_of_rounds(folder) >= target, NEVER_LONGER_S)
                time.sleep(chance.uniform(0.0, 0.06))
                return going
            case "held":
                return attempt.until(lambda: lines_of_rounds(folder) >= 2, NEVER_LONGER_S)
        attempt.until(lambda: False, NEVER_LONGER_S)  # the rank kills itself
        return False

    def finish(self, ranks, alone):
        """Let all cases come to their end and compare them with undisturbed runs; `alone` runs fedmpi."""
        words = ("-m", "fedmpi", *self.command(self.out))
        code, output = self.mpi.run(ranks, *words, cwd=self.root, timeout=600)
        if code != 0:
            self.problems.append(f"cannot be finished: {output[-1500:]}")
            return
        if any(case not in REAL_CLOCK for case in self.cases):
            alone(*self.command(self.root / "whole", "pure"))
        for case in self.cases:
            if case in REAL_CLOCK:
                again = self.root / "whole" / case
                alone("replay", self.out / case, "--data", self.root / "data", "--out", again)
            found = differences(self.root / "whole" / case, self.out / case)
            self.problems += [f"{case}: {line}" for line in found]


def lines_of_rounds(folder):
    """Return how many lines of rounds a run's log has, those computed again counted each time."""
    with suppress(OSError):
        return (folder / "events.jsonl").read_bytes().count(b'"event": "round"')
    return 0


def num_rounds(folder):
    """Return how many rounds a run's log has, from the first."""
    with suppress(OSError):
        text = (folder / "events.jsonl").read_bytes()
        events = map(json.loads, text[: text.rfind(b"\n") + 1].splitlines())
        return max((event["round"] + 1 for event in events if event["event"] == "round"), default=0)
    return 0


def differences(whole, struck):
    """Return in what a finished case, and the record made of its log alone, differ from the undisturbed run."""
    found = [*compare(whole, struck).differences]
    if (status := load_run(struck).status) != "complete":
        found.append(f"its status is {status}")
    with tempfile.TemporaryDirectory() as place:
        shutil.copy2(struck / "events.jsonl", place)
        try:
            rebuild(Path(place))
            found += [f"from the log: {line}" for line in compare(whole, Path(place)).differences]
        except FedmpiError as error:
            found.append(f"from the log: {error}")
    return found

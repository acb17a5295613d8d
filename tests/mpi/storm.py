"""Kills runs at random moments, resumes them on other numbers of ranks, compares the ends: the kill harness.

``python -m tests.mpi.storm --kills N [--ranks 1,2,3,4] [--algorithms fedavg,fedcch] [--seed S]
[--chain 15] [--mpi mpich] [--out DIR]``

A chain is one case of one algorithm: started, struck, resumed on another number of ranks, struck again,
and after its last blow finished. Its record, and the record that `repair` makes of its event log alone, must
be those of the undisturbed run. Between blows all processes must end by themselves, no finished round may
be lost, and no shared memory may stay behind. Prints the counts; exits with 0 only if all that held.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fedmpi.errors import FedmpiError
from fedmpi.store.identical import compare
from fedmpi.store.reader import load_run
from fedmpi.store.rebuild import rebuild
from tests.mpi.examples import EXAMPLES
from tests.mpi.launcher import Mpi, find
from tests.mpi.processes import Processes

SUITE = """
name = "storm"
[case]
dataset = { name = "synthetic", synthetic = { domains = 3, graphs = 30 } }
partition = "per-dataset"
batch_size = 16
rounds = %d
seed = 7
checkpoint_seconds = %s
[matrix]
case = [
    { label = "fedavg", algorithm = "fedavg", participation = 0.6 },
    { label = "gcfl-plus", algorithm = { name = "gcfl-plus", eps1 = 10.0, eps2 = 0.0, warmup = 5 } },
    { label = "fedcch", algorithm = "fedcch", model = { norm = "graph" } },
    { label = "scaffold", algorithm = "scaffold", optimizer = "sgd", participation = 0.6 },
    { label = "fedadam", algorithm = "fedadam" },
    { label = "fedbn", algorithm = "fedbn", model = { norm = "batch" } },
    { label = "fedper", algorithm = "fedper", dataset = { synthetic = { domains = 1, graphs = 90 } }, partition = { name = "iid", clients = 3 } },
    { label = "ditto", algorithm = "ditto", participation = 0.6 },
    { label = "fednova", algorithm = "fednova", participation = 0.6 },
    { label = "fedrep", algorithm = { name = "fedrep", head_epochs = 2 }, dataset = { synthetic = { domains = 1, graphs = 90 } }, partition = { name = "iid", clients = 3 } },
    { label = "apfl", algorithm = { name = "apfl", adaptive = true }, participation = 0.6 },
    { label = "fedala", algorithm = "fedala", participation = 0.6 },
    { label = "moon", algorithm = "moon", participation = 0.6 },
    { label = "fedproto", algorithm = "fedproto", participation = 0.6 },
    { label = "fedgta", algorithm = "fedgta", dataset = "synthetic-nodes", model = "gcn", partition = { name = "louvain", clients = 3 }, share = "all", participation = 0.6 },
    { label = "fedpub", algorithm = "fedpub", dataset = "synthetic-nodes", model = "gcn", partition = { name = "louvain", clients = 3 }, share = "all", participation = 0.6 },
    { label = "fedsage-plus", algorithm = { name = "fedsage-plus", generator_hidden = [8, 16] }, dataset = "synthetic-nodes", model = "sage", partition = { name = "louvain", clients = 3 }, share = "all", participation = 0.6 },
    { label = "feddyn", algorithm = "feddyn", participation = 0.6 },
    { label = "q-fedavg", algorithm = "q-fedavg" },
    { label = "krum", algorithm = { name = "krum", f = 0, m = 2 } },
    { label = "secagg", algorithm = "fedavg", reduction = { name = "secagg", keys = "sum", dropouts = { probability = 0.2, step = "any" } } },
    { label = "protocol", algorithm = "fedavg", reduction = "lightsecagg", record = "protocol", participation = 0.6 },
    { label = "nodes", dataset = { name = "synthetic-nodes", egos = { number = 60, hops = 1 } }, model = { name = "gcn", layers = 1, head_layers = 1 }, partition = { name = "fedgraphnn", clients = 4, alpha = 2.0 }, share = "all", participation = 0.6 },
    { label = "links", task = "link-prediction", model = { name = "rgcn", hidden = 16 }, algorithm = "ditto", dataset = { name = "synthetic-triples", features = "identity" }, partition = { name = "metadata", by = "class", clients = 3 }, share = "all" },
    { label = "sam", algorithm = "sam", participation = 0.6 },
    { label = "careful", algorithm = "careful", participation = 0.6 },
    { label = "partial", algorithm = "partial", participation = 0.6 },
    { label = "roots", algorithm = "roots", participation = 0.6 },
    { label = "fomo", algorithm = "fomo", dataset = { synthetic = { domains = 1, graphs = 90 } }, partition = { name = "iid", clients = 3 }, participation = 0.6 },
    { label = "distil", algorithm = "distil", public = 0.3, dataset = { synthetic = { domains = 1, graphs = 90 } }, partition = { name = "iid", clients = 3 }, participation = 0.6 },
]
"""

PLUGINS = ("sam", "careful", "partial", "roots", "fomo", "distil")
"""Examples of docs/extend.md."""

ALGORITHMS = (
    "fedavg", "gcfl-plus", "fedcch", "scaffold", "fedadam", "fedbn", "fedper", "ditto", "fednova", "q-fedavg",
    "krum", "secagg", "protocol", "nodes", "links", "feddyn",
    "fedrep", "apfl", "fedala", "moon", "fedproto", "fedgta", "fedpub", "fedsage-plus", *PLUGINS,
)  # fmt: skip

BLOWS = (
    ("KILL", "launcher"), ("KILL", "one rank"), ("KILL", "all ranks"), ("KILL", "everything"),
    ("TERM", "launcher"), ("TERM", "one rank"), ("INT", "launcher"), ("INT", "all ranks"),
    ("USR1", "launcher"), ("USR1", "one rank"),
)  # fmt: skip
"""Signals and whom they hit; half of all blows are SIGKILL."""

MOMENTS = ("start-up", "loading", "round", "round", "round", "checkpoint")
"""While it imports and starts MPI; while it holds the lock and has computed no round; after a random round;
while a checkpoint is written."""

CHECKPOINTS = ("0.0", "0.3", "30.0")
"""Seconds between checkpoints of a chain: after each round, now and then, never by the clock."""

ENDS_WITHIN_S = 30.0
"""After a blow all processes must be gone by then."""

NEVER_LONGER_S = 120.0
"""An attempt that has not come to its moment by then hangs."""

CHECKPOINT_PATIENCE_S = 15.0
"""A checkpoint that is written in a millisecond may not be seen: after so long the blow falls anyway."""


@dataclass
class Counts:
    """What was done, and what went wrong."""

    blows: dict[str, Counter[str]] = field(default_factory=dict)
    ends: Counter[str] = field(default_factory=Counter)
    chains: int = 0
    identical: int = 0
    completed_early: int = 0
    recomputed: int = 0
    lost: int = 0
    processes: int = 0
    segments: int = 0
    problems: list[str] = field(default_factory=list)

    def blow(self, **facts: object) -> None:
        """Count a blow under each of its facts."""
        for name, value in facts.items():
            self.blows.setdefault(name, Counter())[str(value)] += 1

    def lines(self) -> list[str]:
        """Return the counts as text."""
        struck = sum(self.blows.get("signal", Counter()).values())
        lines = [f"{struck} kills in {self.chains} chains: {self.identical} chains identical"]
        for name, counter in self.blows.items():
            lines.append(
                f"  by {name}: " + ", ".join(f"{key} {count}" for key, count in sorted(counter.items()))
            )
        lines.append("  ends: " + ", ".join(f"{key}: {count}" for key, count in sorted(self.ends.items())))
        lines.append(
            f"  rounds lost {self.lost}, computed again {self.recomputed}; left over: {self.processes} processes, "
            f"{self.segments} segments of shared memory; {self.completed_early} attempts were complete before their blow"
        )
        return [*lines, *(f"PROBLEM: {problem}" for problem in self.problems)]


@dataclass(frozen=True)
class Storm:
    """What all chains share."""

    mpi: Mpi
    root: Path
    rounds: int
    ranks: tuple[int, ...]
    chance: random.Random
    counts: Counts

    def command(self, suite: Path, algorithm: str, out: Path) -> list[str]:
        """Return the program that starts or resumes a case."""
        command = ["-m", "fedmpi", "run", str(suite), "--case", algorithm, "--out", str(out), "--resume"]
        if algorithm not in PLUGINS:
            return command
        file = f"{algorithm}.py"
        (self.root / file).write_text(EXAMPLES[file][0])
        return [*command, "--plugin", str(self.root / file)]


@dataclass
class Chain:
    """One case from its first attempt to its last."""

    storm: Storm
    algorithm: str
    suite: Path
    folder: Path
    segments: set[Path] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.log = Log(self.folder / "events.jsonl")

    def strike(self, number: int) -> bool:
        """Start an attempt and strike it once; return False where it was complete before."""
        storm, chance = self.storm, self.storm.chance
        ranks = storm.ranks[number % len(storm.ranks)]
        name, victim = chance.choice(BLOWS)
        moment = chance.choice(MOMENTS)
        if victim == "one rank" or victim == "all ranks":
            moment = moment if moment != "start-up" else "loading"
        attempt = Processes.start(storm.mpi, ranks, storm.command(self.suite, self.algorithm, self.folder.parent),
                               storm.root)  # fmt: skip
        try:
            begun = self._reach(attempt, moment)
            self.segments |= attempt.segments()
            if begun:
                attempt.send(getattr(signal, f"SIG{name}"), victim, chance)
        finally:
            hanging = attempt.wait(ENDS_WITHIN_S if sys.exc_info()[0] is None else 0.0)
        self._judge(attempt, hanging, f"{moment}, {name} to {victim}, {ranks} ranks")
        if not begun:
            storm.counts.completed_early += 1
            return False
        facts = {
            "signal": name,
            "victim": victim,
            "moment": moment,
            "ranks": ranks,
            "algorithm": self.algorithm,
        }
        storm.counts.blow(**facts)
        storm.counts.ends[f"{name} -> {attempt.code}"] += 1
        print(
            f"  {name} to {victim} of {ranks} ranks, {moment}: {attempt.code}, {self.log.rounds} rounds",
            flush=True,
        )
        return True

    def _reach(self, attempt: Processes, moment: str) -> bool:
        """Wait for a moment of an attempt; return False where it ended before."""
        chance = self.storm.chance
        if moment == "start-up":
            return attempt.until(lambda: False, chance.uniform(0.0, 2.5)) is None
        reached: Callable[[], bool]
        if moment == "loading":
            reached, pause = self._locked, chance.uniform(0.0, 0.3)
        elif moment == "checkpoint":
            target, pause = self.log.look().written + chance.randint(0, 6), 0.0
            reached = lambda: self.log.look().written >= target and self._saving()  # noqa: E731
        else:
            target, pause = self.log.look().written + chance.randint(1, 12), chance.uniform(0.0, 0.06)
            reached = lambda: self.log.look().written >= target  # noqa: E731
        attempt.until(reached, CHECKPOINT_PATIENCE_S if moment == "checkpoint" else NEVER_LONGER_S)
        time.sleep(pause)
        return attempt.alive

    def _locked(self) -> bool:
        return (self.folder / "lock").exists()

    def _saving(self) -> bool:
        place = self.folder / "checkpoints"
        try:
            names = os.listdir(place)
            named = b"".join((place / name).read_bytes() for name in names if name.startswith("manifest"))
        except OSError:
            return False
        return any(".rank-" in name and name.encode() not in named for name in names)

    def _judge(self, attempt: Processes, hanging: int, what: str) -> None:
        """Count what a blow left behind."""
        counts = self.storm.counts
        counts.processes += hanging
        self.log.look()
        if hanging:
            counts.problems.append(
                f"{self.algorithm}: {what}: {hanging} processes live after {ENDS_WITHIN_S:g} s"
            )
        if "Traceback" in attempt.output:
            counts.problems.append(f"{self.algorithm}: {what}: {attempt.output[-1500:]}")
        before, now = self.log.rounds, Log(self.log.path).look().rounds
        if now < before:
            counts.lost += before - now
            counts.problems.append(f"{self.algorithm}: {what}: {before} rounds before, {now} after")

    def finish(self, whole: Path, number: int) -> None:
        """Let the case come to its end on the next number of ranks and compare it with the undisturbed run."""
        storm, counts = self.storm, self.storm.counts
        counts.chains += 1
        ranks = storm.ranks[number % len(storm.ranks)]
        code, output = storm.mpi.run(ranks, *storm.command(self.suite, self.algorithm, self.folder.parent),
                                     cwd=storm.root, timeout=600)  # fmt: skip
        counts.recomputed += max(0, self.log.look().written - storm.rounds)
        left = {path for path in self.segments if path.exists()}
        counts.segments += len(left)
        for path in left:
            path.unlink(missing_ok=True)
        if code != 0:
            counts.problems.append(f"{self.algorithm}: cannot be finished: {output[-1500:]}")
            return
        found = differences(whole, self.folder, storm.root)
        counts.problems += [f"{self.algorithm}: {line}" for line in found]
        counts.identical += not found
        if not found:
            shutil.rmtree(self.folder.parent)


class Log:
    """The rounds in an event log that is being written; each look reads only what is new."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0
        self.written = 0
        """Lines of rounds, those computed again counted each time."""
        self.rounds = 0
        """Rounds, from the first."""

    def look(self) -> Log:
        """Read what is new."""
        try:
            with self.path.open("rb") as stream:
                stream.seek(self._read)
                new = stream.read()
        except OSError:
            return self
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            if line.startswith(b'{"event": "round"') or b'"event": "round"' in line[:200]:
                self.written += 1
                self.rounds = max(self.rounds, json.loads(line)["round"] + 1)
        return self


def differences(whole: Path, torn: Path, root: Path) -> list[str]:
    """Return in what a finished chain, and the record made of its log alone, differ from the undisturbed run."""
    found = _differences(whole, torn)
    with tempfile.TemporaryDirectory(dir=root) as place:
        copy = Path(place)
        shutil.copy2(torn / "events.jsonl", copy / "events.jsonl")
        try:
            rebuild(copy)
            found += [f"from the log: {line}" for line in _differences(whole, copy)]
        except FedmpiError as error:
            found.append(f"from the log: {error}")
    if load_run(torn).status != "complete":
        found.append(f"its status is {load_run(torn).status}")
    return found


def _differences(first: Path, second: Path) -> list[str]:
    """Return the differences of two records, but for how often they were to be saved."""
    found = compare(first, second).differences
    return [line for line in found if not line.startswith("config checkpoint_seconds")]


def storm(
    mpi: Mpi, root: Path, kills: int, ranks: tuple[int, ...], algorithms: tuple[str, ...], seed: int,
    length: int = 15, rounds: int = 100, alone: Callable[..., object] | None = None,
) -> Counts:  # fmt: skip
    """Strike `kills` times in chains of `length` and return the counts.

    Parameters
    ----------
    mpi : Mpi
    root : Path
        Folder for suites and records; a chain that is not identical stays there.
    kills, length, rounds : int
    ranks : tuple of int
        Numbers of ranks, in turn.
    algorithms : tuple of str
        Of `ALGORITHMS`; one chain after another.
    seed : int
    alone : callable, optional
        Runs fedmpi with arguments in this process, for the undisturbed runs.
    """
    chance = random.Random(seed)
    shared = Storm(mpi, root, rounds, ranks, chance, Counts())
    whole: dict[str, Path] = {}
    done = number = 0
    while done < kills:
        algorithm = algorithms[number % len(algorithms)]
        seconds = CHECKPOINTS[number // len(algorithms) % len(CHECKPOINTS)] if number else "0.0"
        suite = root / f"storm-{seconds}.toml"
        suite.write_text(SUITE % (rounds, seconds))
        if algorithm not in whole:
            whole[algorithm] = undisturbed(shared, suite, algorithm, alone)
        chain = Chain(shared, algorithm, suite, root / f"chain{number}" / algorithm)
        blows = min(length, kills - done)
        for blow in range(blows):
            done += 1
            if not chain.strike(number + blow):
                break
        chain.finish(whole[algorithm], number + blows)
        number += 1
        print(f"{done} kills; chain {number}: {algorithm}, checkpoints every {seconds} s", flush=True)
    return shared.counts


def undisturbed(
    shared: Storm, suite: Path, algorithm: str, alone: Callable[..., object] | None = None
) -> Path:
    """Run a case on one rank without a blow and return its folder."""
    out = shared.root / f"whole-{suite.stem}"
    command = shared.command(suite, algorithm, out)
    if alone is not None:
        alone(*command[2:])
        return out / algorithm
    code, output = shared.mpi.run(1, *command, cwd=shared.root, timeout=600)
    if code != 0:
        raise SystemExit(output)
    return out / algorithm


def main() -> None:
    """Do what the module says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--ranks", default="1,2,3,4")
    parser.add_argument("--algorithms", default=",".join(ALGORITHMS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chain", type=int, default=15, help="kills of a chain")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--mpi", default="mpich", choices=["mpich", "openmpi"])
    parser.add_argument("--out", default=None, help="folder for the records; default a temporary one")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what was started
    ranks = tuple(int(number) for number in given.ranks.split(","))
    algorithms = tuple(given.algorithms.split(","))
    with tempfile.TemporaryDirectory() as place:
        root = Path(given.out or place).absolute()
        root.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        counts = storm(
            find(given.mpi), root, given.kills, ranks, algorithms, given.seed, given.chain, given.rounds
        )
        print("\n".join(counts.lines()))
        print(f"  {time.monotonic() - began:.0f} s")
    sys.exit(1 if counts.problems else 0)


if __name__ == "__main__":
    main()

"""The processes of one launch: which they are, what strikes them, and whether they are gone."""

from __future__ import annotations

import os
import random
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.mpi.launcher import Mpi

_MARK = "FEDMPI_STORM"
_RANK = (b"PMI_RANK=", b"OMPI_COMM_WORLD_RANK=", b"SLURM_PROCID=")


@dataclass
class Processes:
    """A launcher and all that came from it, known by a mark in their environment."""

    launcher: subprocess.Popen[bytes]
    mark: bytes
    _output: IO[bytes]

    @classmethod
    def start(cls, mpi: Mpi, ranks: int, command: list[str], cwd: Path) -> Processes:
        """Start a program on some ranks."""
        mark, output = secrets.token_hex(8), tempfile.TemporaryFile()  # noqa: SIM115
        launcher = subprocess.Popen(
            mpi.command(ranks, *command),
            cwd=cwd,
            env={**mpi.environment(), _MARK: mark, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        return cls(launcher, f"{_MARK}={mark}".encode(), output)

    @property
    def alive(self) -> bool:
        """Whether the launcher runs."""
        return self.launcher.poll() is None

    @property
    def code(self) -> int | None:
        """The launcher's exit code, negative for a signal."""
        return self.launcher.returncode

    @property
    def output(self) -> str:
        """What all ranks printed."""
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    def _marked(self) -> dict[int, bool]:
        """Return the processes that live, and whether each is a rank."""
        found = {}
        for path in Path("/proc").iterdir():
            if not path.name.isdigit():
                continue
            with suppress(OSError):
                variables = (path / "environ").read_bytes().split(b"\0")
                state = (path / "stat").read_text().rpartition(")")[2].split()[0]
                if self.mark in variables and state not in "ZX":
                    found[int(path.name)] = any(each.startswith(_RANK) for each in variables)
        return found

    def ranks(self) -> list[int]:
        """Return the process numbers of the ranks."""
        return sorted(pid for pid, is_rank in self._marked().items() if is_rank)

    def segments(self) -> set[Path]:
        """Return the shared memory that the ranks have mapped."""
        found = set()
        for pid in self.ranks():
            with suppress(OSError):
                for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
                    if "/dev/shm/" in line and not line.endswith("(deleted)"):
                        found.add(Path(line[line.index("/dev/shm/") :]))
        return found

    def until(self, reached: Callable[[], bool], seconds: float) -> bool | None:
        """Wait for something; return True when it came, False where the launch ended, None where time did."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if reached():
                return True
            if not self.alive:
                return False
            time.sleep(0.001)
        return None

    def send(self, number: int, victim: str, chance: random.Random) -> None:
        """Send a signal to the launcher, one rank, all ranks, or everything at once."""
        marked = self._marked()
        ranks = sorted(pid for pid, is_rank in marked.items() if is_rank)
        targets = {
            "launcher": [self.launcher.pid],
            "one rank": [chance.choice(ranks)] if ranks else [],
            "all ranks": ranks,
            "everything": list(marked),
        }[victim]
        for pid in targets:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def wait(self, seconds: float) -> int:
        """Wait until all are gone; kill what is not by then and return how many that were."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.launcher.poll()
            if not self._marked():
                break
            time.sleep(0.02)
        left = self._marked()
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.launcher.wait()
        return len(left)

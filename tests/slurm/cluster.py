"""A throw-away Slurm on this one machine: munge, slurmctld and several virtual nodes.

The tests start and stop it by their fixtures; people do by hand:

    python -m tests.slurm.cluster up DIR [--nodes 4] [--cpus 2] [--net 1gbit]
    . DIR/env.sh
    python -m tests.slurm.cluster down DIR

It needs root and Debian's packages slurm-wlm and munge. Everything it writes is below DIR. With --net
every node is in a network namespace of its own, with a host name and an address, and its link to the
others carries so much (iproute2's `tc tbf`; "open": no limit).
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.slurm.links import Links

PACKAGES = "apt-get install -y --no-install-recommends slurm-wlm munge"
PROGRAMS = (
    *("munged", "munge", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "sinfo", "srun"),
)
WAIT_S = 60.0
_PR_SET_PDEATHSIG = 1

CONF = (Path(__file__).parent / "slurm.conf.template").read_text()


def missing() -> str:
    """Return why no cluster can be started here; empty where one can."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"no slurm here ({', '.join(absent)}): {PACKAGES}"
    return "" if os.geteuid() == 0 else "no slurm here: the throw-away cluster needs root"


@dataclass
class Cluster:
    """The daemons of a folder, remembered in ``DIR/daemons.json`` by pid and start time.

    `outlives`: whether it goes on after the process that started it; else the daemons end with that.
    """

    folder: Path
    nodes: int = 4
    cpus: int = 2
    memory_mb: int = 8000
    net: str = ""
    outlives: bool = False

    def __post_init__(self) -> None:
        self.folder = self.folder.resolve()
        self.daemons: dict[str, tuple[int, str | None]] = {}
        self.links = Links(self.names(), self.net) if self.net else None

    @property
    def environment(self) -> dict[str, str]:
        """What Slurm's commands need."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def names(self) -> list[str]:
        """Return the names of the nodes."""
        return [f"n{number}" for number in range(1, self.nodes + 1)]

    # --- start

    def start(self) -> None:
        """Start everything and wait until every node is idle; RuntimeError with the logs' ends if it fails."""
        for name in ("log", "munge", "run", "state/controller"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        for name in self.names():
            (self.folder / f"state/spool.{name}").mkdir(exist_ok=True)
            (self.folder / f"state/tmp.{name}").mkdir(exist_ok=True)
        os.chmod(self.folder, 0o755)
        os.chmod(self.folder / "munge", 0o711)
        try:
            if self.links:
                self.links.make(self.folder)
            self._configure()
            self._start_daemons()
            self._wait_until_idle()
        except BaseException:
            logs = self.log_ends()
            self.stop()
            print(logs)
            raise

    def _configure(self) -> None:
        port = _free_ports(self.nodes + 1)
        host = socket.gethostname().partition(".")[0]
        address = self.links.host_address if self.links else "127.0.0.1"
        text = CONF.format(folder=self.folder, host=host, address=address, port=port)
        for number, name in enumerate(self.names(), 1):
            node = (name, self.links.address(name)) if self.links else (host, "127.0.0.1")
            text += (
                f"NodeName={name} NodeHostname={node[0]} NodeAddr={node[1]} Port={port + number} "
                f"CPUs={self.cpus} RealMemory={self.memory_mb} State=UNKNOWN\n"
            )
        text += f"PartitionName=debug Nodes=n[1-{self.nodes}] Default=YES MaxTime=INFINITE State=UP\n"
        (self.folder / "slurm.conf").write_text(text)
        # Keeps slurmd from looking for a mounted cgroup file system, which is fatal where there is none.
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (self.folder / "jobcomp.txt").touch()
        (self.folder / "env.sh").write_text(f"export SLURM_CONF={self.folder}/slurm.conf\n")

    def _start_daemons(self) -> None:
        key = self.folder / "munge/key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o600)
        at = self.folder / "munge"
        self._spawn(
            "munged", "munged", "--foreground", "--force", f"--socket={at}/socket", f"--key-file={key}",
            f"--pid-file={at}/munged.pid", f"--seed-file={at}/seed", f"--log-file={self.folder}/log/munged.log",
        )  # fmt: skip
        self._until(lambda: _answers("munge", "-n", "-S", f"{at}/socket"), "munged does not answer")
        conf = f"{self.folder}/slurm.conf"
        self._spawn("slurmctld", "slurmctld", "-D", "-f", conf)
        for name in self.names():
            command = ["slurmd", "-D", "-f", conf, "-N", name]
            self._spawn(
                f"slurmd.{name}", *(self.links.inside(name, self.folder, command) if self.links else command)
            )

    def _spawn(self, name: str, *command: str) -> None:
        def with_parent() -> None:
            os.setsid()
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

        with (self.folder / f"log/{name}.out").open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=os.setsid if self.outlives else with_parent,
            )
        self.daemons[name] = (process.pid, start_time(process.pid))
        self._remember()

    def _remember(self) -> None:
        facts = {"daemons": self.daemons, "nodes": self.nodes, "net": self.net}
        facts["tag"] = self.links.tag if self.links else ""
        (self.folder / "daemons.json").write_text(json.dumps(facts))

    def _wait_until_idle(self) -> None:
        def idle() -> bool:
            done = self.command("sinfo", "-h", "-N", "-o", "%T", check=False)
            return done.stdout.split() == ["idle"] * self.nodes

        self._until(idle, "not all nodes are idle")

    def _until(self, condition, message: str) -> None:
        until = time.monotonic() + WAIT_S
        while not condition():
            if time.monotonic() > until:
                raise RuntimeError(f"{message} after {WAIT_S:.0f} s")
            time.sleep(0.1)

    # --- use

    def command(self, *arguments: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run one of Slurm's commands."""
        return subprocess.run(
            [*map(str, arguments)],
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=check,
        )

    def log_ends(self) -> str:
        """Return the last lines of every log."""
        parts = []
        for path in sorted((self.folder / "log").iterdir()):
            lines = path.read_text(errors="replace").splitlines()[-8:]
            parts += [f"--- {path.name}", *lines]
        return "\n".join(parts)

    # --- stop

    def stop(self) -> None:
        """Cancel all jobs and end every process that was started, and theirs."""
        if "slurmctld" in self.daemons:
            with suppress(subprocess.SubprocessError, OSError):
                self.command("scancel", "-f", "-u", "root", check=False)
                until = time.monotonic() + 15
                while self.command("squeue", "-h", check=False).stdout and time.monotonic() < until:
                    time.sleep(0.2)
        order = sorted(
            self.daemons, key=lambda name: ("munged", "slurmd", "slurmctld").index(name.split(".")[0])
        )
        for name in reversed(order):
            pid, started = self.daemons[name]
            inner = [(child, start_time(child)) for child in children(pid) if not self._is_step(child)]
            for process in ((pid, started), *inner):
                end(*process)
        for step in self.steps():
            for number in (*children(step), step):
                end(number, start_time(number), 0.5)
        self.daemons = {}
        if self.links:
            self.links.remove()

    def _is_step(self, pid: int) -> bool:
        with suppress(OSError):
            return Path(f"/proc/{pid}/comm").read_text().startswith("slurmstepd")
        return False

    def steps(self, job: str = "") -> list[int]:
        """Return the slurmstepd's of this cluster (those that have one of its logs open), of one job or all."""

        def mine(path: Path) -> bool:
            files = [os.readlink(link) for link in (path / "fd").iterdir()]
            own = any(file.startswith(f"{self.folder}/log/slurmd.") for file in files)
            return own and f"[{job}" in (path / "cmdline").read_text()

        return _processes(lambda path: self._is_step(int(path.name)) and mine(path))

    def scripts(self) -> list[int]:
        """Return the processes of job scripts of this cluster."""
        return _processes(lambda path: f"{self.folder}/state/spool." in (path / "cmdline").read_text())

    @classmethod
    def at(cls, folder: Path) -> Cluster:
        """Return the cluster that was started in a folder."""
        facts = json.loads((folder / "daemons.json").read_text())
        cluster = cls(folder, nodes=facts["nodes"], net=facts["net"])
        if cluster.links:
            cluster.links = Links(cluster.names(), facts["net"], facts["tag"])
        cluster.daemons = {name: tuple(process) for name, process in facts["daemons"].items()}
        return cluster


def _processes(chosen: Callable[[Path], bool]) -> list[int]:
    """Return the processes whose folder in /proc fits, as far as they live long enough to say so."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            found += [int(path.name)] if chosen(path) else []
    return found


def _free_ports(count: int) -> int:
    """Return the first of `count` ports in a row that nobody listens on."""
    for first in range(18000 + 100 * secrets.randbelow(100), 29000, 100):
        with suppress(OSError):
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return first
    raise RuntimeError("no free ports")


def _answers(*command: str) -> bool:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def start_time(pid: int) -> str | None:
    """Return the start time of a live process; None if it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def end(pid: int, started: str | None, patience_s: float = 5.0) -> None:
    """End one process if it is still the one that was started then: TERM, and KILL when that is not heard."""
    for number, wait_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 2.0)):
        if started is None or start_time(pid) != started:
            return
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        until = time.monotonic() + wait_s
        while start_time(pid) == started and time.monotonic() < until:
            time.sleep(0.05)


def children(pid: int) -> list[int]:
    """Return the descendants of a process, the youngest generation first."""
    try:
        direct = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [one for child in direct for one in (*children(child), child)]


def main() -> None:
    """Start or stop a cluster by hand."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["up", "down"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--cpus", type=int, default=2)
    parser.add_argument("--net", default="", help="rate of each node's link, such as 1gbit; or open")
    options = parser.parse_args()
    if reason := missing():
        raise SystemExit(reason)
    if options.action == "down":
        Cluster.at(options.folder).stop()
        return
    Cluster(options.folder, options.nodes, options.cpus, net=options.net, outlives=True).start()
    print(f"{options.nodes} nodes of {options.cpus} CPUs: . {options.folder.resolve()}/env.sh")


if __name__ == "__main__":
    main()

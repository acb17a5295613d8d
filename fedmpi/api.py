"""fedmpi from Python: start suites under MPI, read records as frames, compare them, load trained models.

A run is a process of its own, since MPI starts once per process: what is bad input at the command line is
`BadInput` here, with the same line.
"""

from __future__ import annotations

import copy
import hashlib
import io
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fedmpi.analysis.comparison.compare import Limits
from fedmpi.analysis.comparison.compare import compare as compare_sides
from fedmpi.analysis.comparison.outcomes import read_side, split
from fedmpi.analysis.discovery import single_run
from fedmpi.analysis.frames import Frames, load
from fedmpi.comm.launch import launcher, python
from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.config.tables import toml_document, toml_text
from fedmpi.errors import BadInput, Diverged, FedmpiError, Interrupted, RunFailed

if TYPE_CHECKING:
    from pandas import DataFrame

    from fedmpi.trained.model import TrainedModel

__all__ = [
    "BadInput",
    "Diverged",
    "Frames",
    "Interrupted",
    "RunFailed",
    "compare",
    "load",
    "load_model",
    "run",
]

_ERRORS: Mapping[int, type[FedmpiError]] = {2: BadInput, 3: Diverged, 75: Interrupted}
"""By exit code of the command."""
_RUNS = Path("results/runs")
_PREFIX = "fedmpi: "
"""Of the line that says why a command ended."""


def run(
    suite: str | Path | Mapping[str, Any],
    *,
    data: Any = None,
    ranks: int = 1,
    out: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    plugins: Sequence[str | Path] = (),
    resume: bool = True,
    quiet: bool = False,
) -> Frames:
    """Run the cases of a suite and return their records; cases that are complete are not run again.

    Parameters
    ----------
    suite : str, Path or mapping
        Name of a bundled suite, path of a TOML file, or what such a file holds, as a dict; that is written
        to the file ``suite.toml`` in `out`.
    data : list or dict of graphs, or one torch_geometric.data.Data, optional
        Dataset of all cases, in place of the suite's: graphs, or one graph whose nodes have labels. A graph
        is a `Data`, or one of networkx with the label ``graph["y"]`` and, if any, features ``x`` of each
        node and ``edge_attr`` of each edge. A dict has a list for each client, or a dict of lists
        ``train``, ``val`` and ``test``; the partition ``given`` keeps these clients, with
        ``parts = "dataset"`` their parts. It is saved in `out`, under a name that its content decides.
    ranks : int
        MPI processes; with more than one `mpiexec` starts them. Results do not depend on it.
    out : str or Path
        Folder that the runs go into; by default ``results/runs/`` and the suite's name.
    settings : mapping, optional
        What ``--set`` changes at the command line: ``{"rounds": 50, "model.hidden": 32}``.
    plugins : sequence of str or Path
        Files that define algorithms, models and so on.
    resume : bool
        Go on with runs that were interrupted, in place of refusing them.
    quiet : bool
        Print no progress.

    Raises
    ------
    BadInput
        With the line that the command prints; before anything is trained.
    Diverged, Interrupted, RunFailed
        With the last line of the command; what was recorded stays.
    """
    if isinstance(suite, Mapping):
        folder = Path(out or _RUNS / str(suite.get("name", "suite")))
        path = _written(suite, folder)
    else:
        path = locations.find(str(suite))
        folder = Path(out or _RUNS / read(path).name)
    if data is not None:
        settings = {**(settings or {}), "dataset.name": _saved(data, folder)}
    command = [*python(), "run", str(path), "--out", str(folder)]
    command += [f"--set={key}={toml_text(value)}" for key, value in (settings or {}).items()]
    command += [f"--plugin={plugin}" for plugin in plugins]
    command += ["--resume"] * resume
    if ranks != 1:
        command = [*launcher(ranks, "ranks"), *command]
    _start(command, quiet)
    return load(folder)


def compare(
    *runs: str | Path,
    target: float | None = None,
    by: str | None = None,
    reference: str | None = None,
    any_ranks: bool = False,
) -> DataFrame:
    """Return the figures of merit of runs beside those of a reference, paired by case and seed.

    Parameters
    ----------
    runs : str or Path
        What ``fedmpi compare`` takes: the first is the reference. With `by` one may be enough.
    target : float, optional
        Value of the headline on validation data that makes a run valid.
    by : str, optional
        Compare the values of this setting in the runs, such as ``algorithm``.
    reference : str, optional
        With `by`: the value that others are set against.
    any_ranks : bool, optional
        Another number of ranks spoils no figure.

    Returns
    -------
    DataFrame
        A row per other, case and figure: means of both sides, their ratio or difference and its 95 %
        interval, number of pairs, and what it decides.

    Raises
    ------
    BadInput
        Something cannot be read, or has no counterpart.
    """
    import pandas

    if by is None and (len(runs) < 2 or reference is not None):
        raise BadInput("compare: name a reference and at least one other, or one and by = SETTING")
    left_out: list[str] = []
    given = [read_side(Path(path), target, left_out) for path in runs]
    first, *sides = given if by is None else split(given, by, reference)
    rows = []
    for side in sides:
        found = compare_sides(first, side, Limits(target), by, any_ranks)
        left_out += found.left_out
        for case in found.cases:
            names = {"other": side.label, "dataset": case.dataset, "algorithm": case.algorithm}
            rows += [{**names, **ratio.record()} for ratio in case.ratios]
    if not rows:
        raise BadInput("; ".join(left_out) or "compare: there is nothing to compare")
    return pandas.DataFrame(rows)


def load_model(
    run: str | Path,
    client: str | None = None,
    round: Literal["last", "best"] = "last",
    *,
    plugins: Sequence[str | Path] = (),
) -> TrainedModel:
    """Return a trained model as a module of torch, in evaluation mode.

    Parameters
    ----------
    run : str or Path
        Run folder, from whose last checkpoint the model is read; or a file of ``fedmpi export --model``.
    client : str, optional
        Whose model of a run, as the run evaluated it; by default the one that all clients share.
    round : str, optional
        Of a run with ``keep = "best"``: "best" is the client's round of the best validation accuracy.
    plugins : sequence of str or Path
        Files that define parts of the run, or the file's model.

    Raises
    ------
    BadInput
        The run has no checkpoint, no such client, or no model that all share; or the file is no model.
    """
    from fedmpi.case.initial import SUFFIXES
    from fedmpi.datasets.source import DataSource
    from fedmpi.registry.kinds import load_plugins
    from fedmpi.trained import files
    from fedmpi.trained.from_run import from_run

    load_plugins(map(Path, plugins))
    path = Path(run)
    if path.is_dir() or path.suffix not in SUFFIXES:
        return from_run(single_run(path), client, DataSource.from_environment(), round)
    if client is not None or round != "last":
        raise BadInput(f"{path} is one model: client and round are for run folders")
    return files.load(path)


def _written(suite: Mapping[str, Any], folder: Path) -> Path:
    """Write a suite into the folder of its runs, and return the file."""
    text, path = toml_document(suite), folder / "suite.toml"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _saved(data: Any, folder: Path) -> str:
    """Save graphs into the folder of the runs, and return the name of the dataset."""
    import torch
    from torch_geometric.data import Data

    from fedmpi.graphs.from_networkx import as_data

    content = io.BytesIO()
    if isinstance(data, Mapping):
        data = [graph for client, graphs in data.items() for graph in _of_client(client, graphs)]
    torch.save(data if isinstance(data, Data) else [as_data(each) for each in data], content)
    name = f"{folder}/data-{hashlib.sha256(content.getvalue()).hexdigest()[:12]}.pt"
    folder.mkdir(parents=True, exist_ok=True)
    if not Path(name).exists():  # else it would be prepared anew
        Path(name).write_bytes(content.getvalue())
    return name


def _of_client(client: Any, graphs: Any) -> Iterator[Any]:
    """Yield copies of a client's graphs, which say whose they are, and in which part."""
    from torch_geometric.data import Data

    from fedmpi.graphs.from_networkx import as_data

    for part, members in (graphs if isinstance(graphs, Mapping) else {"": graphs}).items():
        for member in members if isinstance(members, Iterable) else [members]:
            graph = copy.copy(as_data(member))
            if not isinstance(graph, Data):
                raise BadInput(f"data of client {client}: give a list of graphs, or a dict of lists by part")
            graph.client = str(client)
            graph.split = str(part)
            yield graph


def _start(command: Sequence[str], quiet: bool) -> None:
    """Run a command, print its lines as they come, and raise what its exit code stands for.

    It has a session of its own, so that Ctrl-C reaches it once, wherever it is typed.
    """
    reason = ""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, start_new_session=True, **pipes) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.startswith(_PREFIX) or ": diverged: " in line:
                    reason = line.strip()
                elif not quiet:
                    sys.stdout.write(line)
                    sys.stdout.flush()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            process.wait()
            raise
    if process.returncode:
        raise _ERRORS.get(process.returncode, RunFailed)(
            reason.removeprefix(_PREFIX) or f"code {process.returncode}"
        )

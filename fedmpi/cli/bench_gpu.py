"""``fedmpi bench gpu``: tests and measures a GPU, part by part; the same parts run on the CPU."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from fedmpi.cli.bench import alone, names_of
from fedmpi.cli.options import Data, refuse_beside
from fedmpi.cli.terminal import refuse_no_file, say, write
from fedmpi.config.documents import load_json, short
from fedmpi.errors import BadInput


@dataclass(frozen=True)
class Asked:
    """What is to be measured, how often, and where it is written."""

    device: Annotated[str, typer.Option(help="cuda, or cpu to try the commands without a GPU.")] = "cuda"
    settings: Annotated[
        str | None,
        typer.Option(help="Of gpu/rounds, with commas; default proteins,nci1,molecules,sider."),
    ] = None
    parts: Annotated[
        str | None,
        typer.Option(help="Of agreement, rounds, profile, resume, ranks, sharing; default all."),
    ] = None
    repetitions: Annotated[int, typer.Option(min=2, help="Pairs of rounds, all kept.")] = 10
    warmup: Annotated[int, typer.Option(min=0, help="Pairs of rounds before, not measured.")] = 3
    out: Annotated[Path, typer.Option(help="JSON file of all findings, written as they come.")] = Path(
        "results/gpu.json"
    )


def gpu(
    context: typer.Context,
    data: Data,
    asked: Asked,
    from_: Annotated[
        list[Path] | None,
        typer.Option("--from", help="Show what such files hold, one after another; measure nothing."),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="Also put the tables between the marks of a Markdown page.")
    ] = None,
) -> int:
    """Hold every path of a GPU against the CPU, time and profile rounds beside PyTorch Geometric.

    Each part is a process of its own that is ended after its time; together ten minutes at most. A part that
    fails is named, and the others go on; the exit code is then 1.

    Examples
    --------
    fedmpi bench gpu
    fedmpi bench gpu --device cpu --settings synthetic --repetitions 2
    fedmpi bench gpu --from results/gpu.json --page docs/performance.md
    """
    from fedmpi.cli.bench_gpu_tables import markdown, placed

    if from_:
        refuse_beside(context, "--from measures nothing", ("from_", "page"))
    text = "" if page is None else _read(page)
    if page is not None:
        placed(text, "")
    reports = [_stored(path) for path in from_] if from_ else [_measured(data, asked)]
    tables = "\n\n".join(map(markdown, reports))
    for line in tables.splitlines():
        say(line)
    if page is not None:
        write(page, placed(text, tables))
    bad = [each for each in reports[0]["parts"] if each["status"] not in ("complete", "skipped")]
    return 1 if bad and not from_ else 0


def _measured(data: Data, asked: Asked) -> dict[str, Any]:
    from fedmpi.benchmarks.gpu import driver, plan
    from fedmpi.store.provenance import collect

    if asked.device not in ("cuda", "cpu"):
        raise BadInput(f"--device {short(asked.device)}: cuda or cpu")
    known = ("synthetic", *plan.SETTINGS)
    chosen = plan.SETTINGS if asked.settings is None else names_of(asked.settings, known, "--settings")
    optional = [name for name in plan.LIMITS_S if name != "device"]
    wanted = ("device", *(optional if asked.parts is None else names_of(asked.parts, optional, "--parts")))
    refuse_no_file(asked.out, "--out ")
    checkout = alone("gpu", 1)
    counts = {"repetitions": asked.repetitions, "warmup": asked.warmup}
    requests = plan.requests(wanted, chosen, asked.device, data.source(), **counts)
    if idle := [part for part in wanted if asked.parts and part not in {each.part for each in requests}]:
        raise BadInput(f"--parts {idle[0]}: of the settings {', '.join(plan.GROUPS_OF)} only")
    machine = without_paths(collect({}, checkout))
    settings = {"device": asked.device, "settings": list(chosen), **counts}
    report = driver.run(requests, settings, machine, asked.out, lambda line: say(line, sys.stderr))
    say(f"Findings: {asked.out}", sys.stderr)
    return report


def without_paths(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provenance without folders and name of the machine: the file is to be committed or sent."""
    kept = {
        name: value for name, value in provenance.items() if name not in ("command", "executable", "host")
    }
    versions = {name: {"version": package["version"]} for name, package in provenance["packages"].items()}
    return {**kept, "packages": versions}


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--page {path}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from error


def _stored(path: Path) -> dict[str, Any]:
    try:
        report = load_json(path, "report")
    except BadInput as error:
        raise BadInput(f"--from {error}") from error
    if report.get("benchmark") != "gpu":
        raise BadInput(f"--from {path}: not what 'fedmpi bench gpu' writes")
    return report

"""``fedmpi bench gpu``: tests and measures a GPU, part by part, and shows what was found as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import typer

from fedmpi.analysis.stored import commit
from fedmpi.cli.commands import refuse_beside
from fedmpi.cli.measuring import Pairs, alone, names_of, told
from fedmpi.cli.options import Data
from fedmpi.cli.terminal import refuse_no_file, say
from fedmpi.config.documents import load_json
from fedmpi.errors import BadInput
from fedmpi.store.provenance import collect
from fedmpi.tables.texts import markdown_of

Report = Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """What is to be measured, how often, and where it is written.

    Attributes
    ----------
    device
        cuda, or cpu to try the commands without a GPU.
    settings
        Of gpu/rounds, with commas; default proteins,nci1,molecules,sider.
    parts
        Of agreement, rounds, models, profile, resume, ranks, sharing, transport; default all.
    """

    device: Literal["cuda", "cpu"] = "cuda"
    settings: str | None = None
    parts: str | None = None


def gpu(
    context: typer.Context,
    data: Data,
    asked: Asked,
    turns: Pairs = Pairs(10, 3),
    out: Path = Path("results/gpu.json"),
    from_: list[Path] | None = None,
) -> int:
    """Hold every path of a GPU against the CPU, time and profile rounds beside PyTorch Geometric.

    Each part is a process of its own that is ended after its time; together ten minutes at most. A part that
    fails is named, and the others go on; the exit code is then 1.

    Parameters
    ----------
    out
        JSON file of all findings, written as they come.
    from_
        Show what such files hold, one after another; measure nothing.

    Examples
    --------
    fedmpi bench gpu
    fedmpi bench gpu --device cpu --settings synthetic --repetitions 2
    fedmpi bench gpu --from results/gpu.json
    """
    if from_:
        refuse_beside(context, "--from measures nothing", ("from_",))
    reports = [_stored(path) for path in from_] if from_ else [_measured(data, asked, turns, out)]
    for line in "\n\n".join(map(markdown, reports)).splitlines():
        say(line)
    bad = [each for each in reports[0]["parts"] if each["status"] not in ("complete", "skipped")]
    return 1 if bad and not from_ else 0


def _measured(data: Data, asked: Asked, turns: Pairs, out: Path) -> dict[str, Any]:
    from fedmpi.benchmarks.gpu import kit

    known = ("synthetic", *kit.SETTINGS)
    chosen = kit.SETTINGS if asked.settings is None else names_of(asked.settings, known, "--settings")
    optional = [name for name in kit.PARTS if name != "device"]
    wanted = ("device", *(optional if asked.parts is None else names_of(asked.parts, optional, "--parts")))
    refuse_no_file(out, "--out ")
    checkout = alone("gpu")
    requests = kit.requests(wanted, chosen, asked.device, data.source(), turns)
    if idle := [part for part in wanted if asked.parts and part not in {each.part for each in requests}]:
        raise BadInput(f"--parts {idle[0]}: of the settings {', '.join(kit.PER_SETTING[idle[0]])} only")
    machine = without_paths(collect({}, checkout))
    settings = {"device": asked.device, "settings": list(chosen), **vars(turns)}
    report = kit.run(requests, settings, machine, out, told)
    told(f"Findings: {out}")
    return report


def without_paths(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provenance without folders and name of the machine: the file is to be committed or sent."""
    dropped = ("command", "executable", "host", "packages")
    kept = {name: value for name, value in provenance.items() if name not in dropped}
    versions = {name: {"version": package["version"]} for name, package in provenance["packages"].items()}
    return {**kept, "packages": versions}


def _stored(path: Path) -> dict[str, Any]:
    try:
        report = load_json(path, "report")
    except BadInput as error:
        raise BadInput(f"--from {error}") from error
    if report.get("benchmark") != "gpu":
        raise BadInput(f"--from {path}: not what 'fedmpi bench gpu' writes")
    return report


def markdown(report: Report) -> str:
    """Return the tables of a report that the kit wrote, and a line about each part that has none.

    Raises
    ------
    BadInput
        It is no such report.
    """
    try:
        parts = (_origin, _agreement, _rounds, _phases, _models, _profile, _work, _runs, _sharing, _transport)
        tables = [part(report) for part in parts]
        return "\n\n".join(text.rstrip() for text in (*tables, _left_out(report)) if text)
    except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
        raise BadInput(f"not a report of fedmpi bench gpu: {type(error).__name__} {error}") from error


def _findings(report: Report, part: str) -> list[Mapping[str, Any]]:
    return [each for found in report["parts"] if found["part"] == part for each in found["findings"]]


def _origin(report: Report) -> str:
    (device,) = _findings(report, "device")
    settings, provenance = report["settings"], report["provenance"]
    cuda = f", CUDA {device['cuda']}" if device.get("cuda") else ""
    made = commit(provenance, "no checkout", 12)
    return (
        f"`fedmpi bench gpu --device {settings['device']} --repetitions {settings['repetitions']} "
        f"--warmup {settings['warmup']}` on "
        f"{device['device']}, {provenance['cpu_model']}; torch {device['torch']}{cuda}; {made}."
    )


def _agreement(report: Report) -> str:
    found = _findings(report, "agreement")
    if not found:
        return ""
    wrong = [each["case"] for each in found if not each["agrees"]]
    verdict = f"{len(wrong)} differ: {', '.join(wrong)}" if wrong else "all agree"
    names = ("forward", "gradient", "rounds")
    rows = []
    for kernels in dict.fromkeys(each["kernels"] for each in found):
        members = [each for each in found if each["kernels"] == kernels]
        largest = [_largest(each.get(name) for each in members) for name in names]
        rows.append([f"`{kernels}`", str(len(members)), *largest])
    heads = ("kernels", "cases", "forward", "gradient", "three rounds")
    text = "Largest difference from the kernels `csr` on the CPU, as a share of the largest value"
    return f"{text}: {verdict}.\n\n{markdown_of(heads, rows)}"


def _largest(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{max(known):.1e}" if known else "–"


def _rounds(report: Report) -> str:
    found = [each for each in _findings(report, "rounds") if "ratio" in each]
    heads = ("setting", "clients", "kernels", "PyTorch Geometric", "fedmpi", "a client", "ratio (95 %)")
    rows = []
    for each in found:
        medians = [each["seconds"][program]["median"] for program in ("peer", "fedmpi")]
        ratio = "{median:.1f} ({low:.1f} to {high:.1f})".format(**each["ratio"])
        times = map(_ms, (*medians, each["client_seconds"]))
        rows.append([each["setting"], str(each["clients"]), f"`{each['kernels']}`", *times, ratio])
    return _under("A round of FedAvg with evaluation, both programs in turn", heads, rows)


def _phases(report: Report) -> str:
    """Return a table of what fedmpi's rounds are made of."""
    shown = ("round", "train", "clients", "evaluate", "communicate")
    heads = ("setting", "round", "training", "of it the clients'", "evaluation", "communication", "rest")
    rows = []
    for each in _findings(report, "rounds"):
        if alone := each.get("alone"):
            rest = alone["round"] - alone["train"] - alone["evaluate"] - alone["communicate"]
            rows.append([each["setting"], *(_ms(alone[name]) for name in shown), _ms(rest)])
    return _under("fedmpi's rounds one after another, and their parts", heads, rows)


def _models(report: Report) -> str:
    """Return a table of rounds by model, by grouped kernels and by "csr"."""
    rows = []
    for each in _findings(report, "models"):
        medians = (_ms(each["seconds"][kernels]["median"]) for kernels in ("csr", "grouped"))
        rows.append([each["setting"], f"`{each['model']}`", *medians, f"{each['ratio']:.1f}"])
    return _under(
        "A round of FedAvg with evaluation by model, both kernels in turn",
        ("setting", "model", "`csr`", "`grouped`", "ratio"),
        rows,
    )


def _profile(report: Report) -> str:
    heads = (
        "setting", "program", "torch's operators", "kernels", "launches", "copies", "synchronisations",
        "time in launches", "device busy",
    )  # fmt: skip
    rows = []
    for each in _findings(report, "profile"):
        counts = (f"{each[name]:,}" for name in ("operators", *heads[3:7]))
        shares = (f"{100 * each[name]:.0f} %" for name in ("launch_share", "device_share"))
        program = "PyTorch Geometric" if each["program"] == "peer" else each["program"]
        rows.append([each["setting"], program, *counts, *shares])
    return _under("One round under torch's profiler", heads, rows)


def _work(report: Report) -> str:
    """Return a table of what rounds ask of a GPU, as it was counted on a CPU."""
    heads = ("setting", "FLOPs", "bytes", "kernels", "in a row", "by FLOPs", "by bytes", "by kernels")
    rows = []
    for each in _findings(report, "profile"):
        if work := each.get("work"):
            times = [_ms(work["h100_seconds"][name]) for name in ("flops", "bytes", "kernels")]
            sizes = f"{work['flops'] / 1e9:.2f} G", f"{work['bytes'] / 1e9:.2f} GB"
            rows.append([each["setting"], *sizes, f"{work['kernels']:,}", f"{work['in_a_row']:,}", *times])
    return _under("What a round of fedmpi asks of a GPU, and an estimate for an H100", heads, rows)


def _runs(report: Report) -> str:
    """Return a line for each comparison of whole runs."""
    lines = [
        f"- `{each['case']}` killed after {each['killed_after']} of {each['rounds']} rounds and resumed: "
        f"{_identical(each)}."
        for each in _findings(report, "resume")
    ]
    lines += [
        f"- {each['what']}: {_identical(each)}; {_ms(each['round_seconds']['second'])} a round, "
        f"{_ms(each['round_seconds']['first'])} without."
        for each in _findings(report, "ranks")
    ]
    return "\n".join(lines)


def _sharing(report: Report) -> str:
    """Return a table of rounds by number of ranks."""
    heads = ("setting", "clients in a group", "ranks", "round", "results")
    rows = []
    for each in _findings(report, "sharing"):
        counts = (str(each["group_size"]), str(each["ranks"]))
        rows.append([each["setting"], *counts, _ms(each["round_seconds"]), _identical(each)])
    return _under('Ranks that share the device (`server = "shared"`)', heads, rows)


def _transport(report: Report) -> str:
    """Return a table of rounds by what sums over ranks."""
    heads = ("setting", "ranks", "sums by", "round", "of it sums, on rank 0", "results")
    rows = []
    for each in _findings(report, "transport"):
        times = (_ms(each[name]) for name in ("round_seconds", "sum_seconds"))
        name = f"`{each['transport']}`"
        rows.append([each["setting"], str(each["ranks"]), name, *times, _identical(each)])
    return _under("Sums over ranks (`reduction.transport`), a GPU for each rank", heads, rows)


def _identical(finding: Mapping[str, Any]) -> str:
    return "the same bits" if finding["agrees"] else f"**not** the same ({finding.get('difference', '?')})"


def _left_out(report: Report) -> str:
    """Return a line for each part that did not end well."""
    parts = [each for each in report["parts"] if each["status"] not in ("complete", "differs")]
    lines = [f"- {each['part']} {each['setting']}".rstrip() + f": {_reason(each)}" for each in parts]
    return "\n".join(["Not measured:", "", *lines]) if lines else ""


def _reason(part: Mapping[str, Any]) -> str:
    return f"{part['status']}: {part['reason']}" if part["reason"] else str(part["status"])


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.1f} ms" if seconds >= 0.01 else f"{1e3 * seconds:.2f} ms"


def _under(text: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table under a text; nothing where it has no row."""
    return f"{text}:\n\n{markdown_of(heads, rows)}" if rows else ""

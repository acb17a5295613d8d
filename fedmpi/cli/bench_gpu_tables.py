"""What the GPU kit found, as Markdown, and its place in a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fedmpi.analysis.stored import commit
from fedmpi.errors import BadInput
from fedmpi.tables.markdown import markdown_of

BEGIN, END = "<!-- bench gpu: begin -->", "<!-- bench gpu: end -->"
"""Lines of a page between which the tables stand."""

Report = Mapping[str, Any]


def markdown(report: Report) -> str:
    """Return the tables of a report that the kit wrote, and a line about each part that has none.

    Raises
    ------
    BadInput
        It is no such report.
    """
    try:
        parts = (_origin, _agreement, _rounds, _phases, _profile, _runs, _sharing)
        tables = [part(report) for part in parts]
        return "\n\n".join(text.rstrip() for text in (*tables, _left_out(report)) if text)
    except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
        raise BadInput(f"not a report of fedmpi bench gpu: {type(error).__name__} {error}") from error


def placed(page: str, tables: str) -> str:
    """Return a page with other tables between its two marks.

    Raises
    ------
    BadInput
        It has not both, once each, or the tables have one.
    """
    if BEGIN in tables or END in tables:
        raise BadInput(f"the report holds {BEGIN} or {END}: no page takes it")
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in after or END in before + after:
        raise BadInput(f"the page needs the lines {BEGIN} and {END}, once each")
    return f"{before}{BEGIN}\n{tables}\n{END}{after}"


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
    rows = [
        [
            each["setting"],
            str(each["clients"]),
            f"`{each['kernels']}`",
            _ms(each["seconds"]["peer"]["median"]),
            _ms(each["seconds"]["fedmpi"]["median"]),
            _ms(each["client_seconds"]),
            "{median:.1f} ({low:.1f} to {high:.1f})".format(**each["ratio"]),
        ]
        for each in found
    ]
    return _under("A round of FedAvg with evaluation, both programs in turn", heads, rows)


def _phases(report: Report) -> str:
    """Return a table of what fedmpi's rounds are made of."""
    found = [each for each in _findings(report, "rounds") if "alone" in each]
    shown = ("round", "train", "clients", "evaluate", "communicate")
    heads = ("setting", "round", "training", "of it the clients'", "evaluation", "communication", "rest")
    rows = []
    for each in found:
        alone = each["alone"]
        rest = alone["round"] - alone["train"] - alone["evaluate"] - alone["communicate"]
        rows.append([each["setting"], *(_ms(alone[name]) for name in shown), _ms(rest)])
    return _under("fedmpi's rounds one after another, and their parts", heads, rows)


def _profile(report: Report) -> str:
    heads = (
        "setting", "program", "torch's operators", "kernels", "launches", "copies", "synchronisations",
        "time in launches", "device busy",
    )  # fmt: skip
    counts = ("operators", "kernels", "launches", "copies", "synchronisations")
    rows = [
        [
            each["setting"],
            "PyTorch Geometric" if each["program"] == "peer" else each["program"],
            *(f"{each[name]:,}" for name in counts),
            *(f"{100 * each[name]:.0f} %" for name in ("launch_share", "device_share")),
        ]
        for each in _findings(report, "profile")
    ]
    return _under("One round under torch's profiler", heads, rows)


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
    found = _findings(report, "sharing")
    rows = [
        [
            each["setting"],
            str(each["group_size"]),
            str(each["ranks"]),
            _ms(each["round_seconds"]),
            _identical(each),
        ]
        for each in found
    ]
    heads = ("setting", "clients in a group", "ranks", "round", "results")
    return _under('Ranks that share the device (`server = "shared"`)', heads, rows)


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

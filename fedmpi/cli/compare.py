"""``fedmpi compare``: ratios of figures of merit, or equality bit for bit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from fedmpi.analysis.comparison.compare import Allowance, Comparison, Limits
from fedmpi.analysis.comparison.compare import compare as compare_sides
from fedmpi.analysis.comparison.outcomes import described, read_side, split
from fedmpi.analysis.comparison.pairs import Pair
from fedmpi.analysis.pairing import compare_identical
from fedmpi.cli.compare_tables import case_table, ratio_table
from fedmpi.cli.options import Json, Reference
from fedmpi.cli.report import check_target
from fedmpi.cli.terminal import counted, left_out, print_json, say, show
from fedmpi.errors import BadInput

_TOLERANCE = re.compile(r"(\d+(?:\.\d+)?)\s*(pt|pts|points?|%)?")
Tolerance = Annotated[str | None, typer.Option(metavar="1pt|1%|0.01")]


def allowance(text: str | None, option: str) -> Allowance | None:
    """Return "1pt" as a point, "1%" as a share of the reference's value, "0.01" as it stands."""
    if text is None:
        return None
    found = _TOLERANCE.fullmatch(text.strip())
    if found is None:
        raise BadInput(
            f"{option} {text}: give points such as 1pt, a percentage such as 1%, or a number such as 0.01"
        )
    unit = "absolute" if found[2] is None else "relative" if found[2] == "%" else "points"
    return Allowance(float(found[1]) * (1.0 if found[2] is None else 0.01), unit, f"{option} {text}")


def share(text: str | None, option: str) -> float | None:
    """Return "10%" as 0.1."""
    if text is None:
        return None
    found = _TOLERANCE.fullmatch(text.strip())
    if found is None or found[2] != "%":
        raise BadInput(f"{option} {text}: give a percentage, such as 10%")
    return float(found[1]) / 100


def compare(
    runs: list[Path],
    identical: bool = False,
    target: float | None = None,
    tolerance: Tolerance = None,
    fail_if_slower: Annotated[str | None, typer.Option(metavar="10%")] = None,
    fail_if_less_accurate: Tolerance = None,
    as_json: Json = False,
    by: Annotated[str | None, typer.Option(metavar="SETTING")] = None,
    reference: Reference = None,
    any_ranks: bool = False,
) -> int:
    """Compare runs, suites or systems: ratios of all figures of merit, paired by case and seed.

    Parameters
    ----------
    runs
        Runs, suites or folders; the first is the reference.
    identical
        Results must be equal bit for bit; of two sides.
    target
        Validation accuracy (0 to 1), ROC-AUC or RMSE that makes a run valid.
    tolerance
        Without a target: how much worse than the reference's accuracy, ROC-AUC or RMSE is still valid:
        points, a share of it, or a number; default 1pt, of RMSE 1%.
    fail_if_slower
        Exit code 1 if slower than the reference by more.
    fail_if_less_accurate
        Exit code 1 if accuracy, ROC-AUC or RMSE is worse by more.
    by
        Compare the values of a setting in these runs, such as algorithm, model, kernels, optimizer.lr: paired
        by seed and all other settings.
    any_ranks
        Runs on another number of ranks are like for like; it is stated.

    Returns
    -------
    int
        0; 1 if a check failed; 2 if anything was left out (named on the standard error).

    Examples
    --------
    fedmpi compare results/runs other
    """
    if identical:
        if len(runs) != 2 or by is not None or any_ranks:
            raise BadInput("compare --identical: name two runs or two suites' folders")
        return say_identical(*runs)
    check_target(target)
    limits = Limits(
        target,
        allowance(tolerance, "--tolerance"),
        share(fail_if_slower, "--fail-if-slower"),
        allowance(fail_if_less_accurate, "--fail-if-less-accurate"),
    )
    if by is None and (len(runs) < 2 or reference is not None):
        raise BadInput(
            "compare: name two runs, suites or folders, or more, the first is what others are set against; "
            "or one and --by SETTING"
        )
    complaints: list[str] = []
    sides = [read_side(path, target, complaints) for path in runs]
    first, *others = sides if by is None else split(sides, by, reference)
    return _say([compare_sides(first, other, limits, by, any_ranks) for other in others], complaints, as_json)


def _say(found: Sequence[Comparison], complaints: list[str], as_json: bool) -> int:
    """Print the comparisons and what was left out; return the exit code."""
    if as_json:
        print_json([_record(each) for each in found])
    else:
        show(*(part for each in found for part in _parts(each)))
    complaints += dict.fromkeys(line for each in found for line in each.left_out)
    code = left_out(complaints)
    return code if all(check.passed for each in found for check in each.checks) else 1


def _parts(found: Comparison) -> Iterator[Any]:
    """Yield the lines and tables that show a comparison."""
    for letter, side in zip("AB", (found.first, found.second), strict=True):
        yield f"{letter} = {side.label}: {described(side)}"
    yield from _validity(found)
    yield from _reasons([pair for case in found.cases for pair in case.pairs])
    several = len(found.cases) > 1
    if several:
        yield case_table(found.cases)
    if found.overall:
        title = "All cases" if several else f"{found.cases[0].dataset}, {found.cases[0].algorithm}"
        yield ratio_table(title, found.overall)
    for check in found.checks:
        yield f"{'passed' if check.passed else 'FAILED'}: {check.text}"


def _validity(found: Comparison) -> Iterator[Any]:
    wrong = [case for case in found.cases if case.invalid]
    if found.cases and not wrong:
        pairs = counted(sum(len(case.pairs) for case in found.cases), "pair")
        yield Text.assemble(("VALID", "bold"), f": {pairs} of runs, all of B complete and as accurate")
        return
    text = "no run of B has a counterpart in A"
    if wrong:
        good = len(found.cases) - len(wrong)
        text = f"{len(wrong)} of {len(found.cases)} cases ({good} valid); no speed is given"
    yield Text.assemble(("INVALID", "bold"), f": {text}")
    for case in wrong:
        yield f"  {case.dataset}, {case.algorithm}: {'; '.join(case.invalid)}"


def _reasons(pairs: Sequence[Pair]) -> Iterator[str]:
    """Yield why pairs are not like for like, and what else differs."""
    same = sum(pair.same for pair in pairs)
    if same:
        yield f"{same} of {len(pairs)} pairs are a run and itself, or its copy, which compares nothing"
    for reason, count in Counter(reason for pair in pairs for reason in pair.reasons).items():
        flagged = f"flagged: {' and '.join(reason.spoils)}" if reason.spoils else "noted"
        what = "refused" if reason.refused else flagged
        yield f"Not like for like, {what}, {count} of {len(pairs)} pairs: {reason.text}"
    for line, count in Counter(line for pair in pairs for line in pair.stated).items():
        yield f"Differs in {count} of {len(pairs)} pairs: {line}"


def _record(found: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON values."""
    return {
        "first": found.first.label,
        "second": found.second.label,
        "valid": found.valid,
        "cases": [
            {
                "dataset": case.dataset,
                "algorithm": case.algorithm,
                "valid": not case.invalid,
                "invalid": list(case.invalid),
                "pairs": [
                    {
                        "first": str(pair.first.folder),
                        "second": str(pair.second.folder),
                        "not_like_for_like": [asdict(reason) for reason in pair.reasons],
                        "differs": list(pair.stated),
                        "same_run": pair.same,
                    }
                    for pair in case.pairs
                ],
                "figures": [each.record() for each in case.ratios],
            }
            for case in found.cases
        ],
        "overall": [each.record() for each in found.overall],
        "left_out": list(found.left_out),
        "checks": [asdict(check) for check in found.checks],
    }


def say_identical(first: Path, second: Path) -> int:
    """Say whether the results of two runs, or of two suites, are identical bit for bit.

    Returns
    -------
    int
        0 if they are, 1 if not.
    """
    verdict = compare_identical(first, second)
    if not verdict.differences:
        cases = f"{verdict.cases} cases, " if verdict.cases > 1 else ""
        say(f"identical: {cases}{verdict.datasets} result datasets, {verdict.rounds} rounds")
        return 0
    say(f"different: {first} and {second}")
    for line in verdict.differences:
        say(f"  {line}")
    return 1

"""``fedmpi sweep --until-decided``: seeds are added until the claims about a suite are decided."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from fedmpi.analysis import rows
from fedmpi.case.folders import holds_run
from fedmpi.cli.decide_tables import expectation_table, verdict_table
from fedmpi.cli.options import Deciding, Share, SweepOptions
from fedmpi.cli.paper import read_rows
from fedmpi.cli.plan import plan_suite
from fedmpi.cli.sweep import run_missing
from fedmpi.cli.terminal import show, write
from fedmpi.config import locations
from fedmpi.config.documents import load_json
from fedmpi.config.suite import CaseSettings, read
from fedmpi.config.tables import toml_document
from fedmpi.errors import BadInput, Diverged, Interrupted, RunFailed
from fedmpi.reproduction.deciding import Design, Standing, standings
from fedmpi.reproduction.published import Published
from fedmpi.reproduction.repetitions import Posed, about, case_of, pose
from fedmpi.reproduction.results import Key, Repetition, Results
from fedmpi.store.lock import in_turn
from fedmpi.store.reader import load_run

_MAX_SEEDS = 30
_DESIGN = "until-decided.json"
_SUITE = "until-decided.toml"

_BY_WEIGHT = (0, Diverged.exit_code, RunFailed.exit_code)
"""Exit codes of sweeps, the worst last."""

_Missing = tuple[Key, Repetition]


def until_decided(
    path: Path, options: SweepOptions, share: Share, budget: float | None, deciding: Deciding
) -> int:
    """Run repetitions of a suite's cells until each claim about it is decided, or there may be no more.

    Parameters
    ----------
    path : Path
        Of the suite; its ``claims.csv`` and ``published.csv`` lie beside it.
    options : SweepOptions
    share : Share
        How ranks are started; a part of a suite decides nothing.
    budget : float, optional
        Minutes after which no case runs on.
    deciding : Deciding

    Returns
    -------
    int
        0: all that may be run was run; 1, 3: a case failed, diverged; 75: the budget is used up, or a signal.
    """
    if share.share is not None or share.cases is not None:
        raise BadInput("--until-decided chooses the cases: leave --share and --cases out")
    design = Design(deciding.max_seeds or _MAX_SEEDS, deciding.spending or "pocock")
    claims, figures = about(path)
    posed = pose(path, claims, options.overrides, design.max_seeds)
    root = options.out or locations.RUNS / read(path).name
    given = read_rows(deciding.rows) if deciding.rows else []
    deciders = _Deciders(path, options, root, posed, figures, design, given)
    show(expectation_table(deciders.standings(), design))
    if deciding.dry_run:
        return 0
    with in_turn(root, f"{root}: another sweep --until-decided works there; wait for its end"):
        _keep(root / _DESIGN, design, options.overrides)
        code = deciders.run(share, budget)
    found = deciders.standings()
    show(verdict_table(found, design, [deciders.reason(each, code) for each in found]))
    return code


def _keep(path: Path, design: Design, overrides: Sequence[str]) -> None:
    """Store how claims are decided, or refuse what a sweep that went before did not say."""
    now = {"max_seeds": design.max_seeds, "spending": design.spending, "set": list(overrides)}
    before = load_json(path, "design") if path.exists() else now
    if before != now:
        words = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in before.items() if value)
        raise BadInput(f"{path}: begun with {words}; claims that were looked at keep how they are decided")
    write(path, json.dumps(now, indent=2) + "\n")


@dataclass
class _Deciders:
    """The claims, the runs at hand by folder, and what could not be run, with the names of its cases."""

    path: Path
    options: SweepOptions
    root: Path
    posed: Sequence[Posed]
    figures: Sequence[Published]
    design: Design
    given: Sequence[dict[str, str]]
    complete: dict[Path, list[dict[str, str]]] = field(default_factory=dict)
    lost: dict[_Missing, str] = field(default_factory=dict)

    def results(self) -> Results:
        """Return the rows that were given, and those of the complete runs in the suite's folder."""
        for folder in sorted(self.root.iterdir()) if self.root.is_dir() else []:
            if folder not in self.complete and holds_run(folder) and (found := _rows_of(folder)):
                self.complete[folder] = found
        return Results([*self.given, *chain(*self.complete.values())])

    def standings(self) -> list[Standing]:
        """Return where the claims stand."""
        return standings(self.posed, self.figures, self.results(), self.design)

    def run(self, share: Share, budget: float | None) -> int:
        """Run what undecided claims need up to their next looks, and look, until nothing is left to run."""
        began, worst = time.monotonic(), 0
        while missing := self._missing():
            left = None if budget is None else budget - (time.monotonic() - began) / 60
            if left is not None and left <= 0:
                return Interrupted.exit_code
            cases = {
                each: case_of(self.path, self.options.overrides, *place, each[1])
                for each, place in missing.items()
            }
            code = self._run(cases.values(), share, left)
            if code == Interrupted.exit_code:
                return code
            worst = max(worst, code, key=_BY_WEIGHT.index)
            results = self.results()
            for (key, one), case in cases.items():  # claims that need what is not complete go no further
                if results.cell(key, [one]).missing:
                    self.lost[key, one] = case.name
        return worst

    def _missing(self) -> dict[_Missing, tuple[Posed, str]]:
        """Return what has to be run before the next looks, with a claim and the cases that it is of."""
        results = self.results()
        found: dict[_Missing, tuple[Posed, str]] = {}
        for each in standings(self.posed, self.figures, results, self.design):
            needed = each.posed.repetitions[: each.next_look or 0]
            mine = {
                (key, one): (each.posed, cases)
                for cases, key in each.posed.keys.items()
                for one in results.cell(key, needed).missing
            }
            if not mine.keys() & self.lost.keys():
                found |= mine
        return found

    def _run(self, cases: Iterable[CaseSettings], share: Share, budget: float | None) -> int:
        """Run cases as a suite of its own, under the suite's name; return the sweep's exit code."""
        self.root.mkdir(parents=True, exist_ok=True)
        suite = self.root / _SUITE
        said = "Cases that claims about the suite need up to their next looks"
        listed = [{"label": case.name, **case.settings} for case in cases]
        text = {"name": self.posed[0].claim.suite, "description": said, "matrix": {"case": listed}}
        write(suite, toml_document(text))
        plan = plan_suite(read(suite), self.root, resume=True, ranks=self.options.ranks)
        return run_missing(plan, suite, replace(self.options, set_=None, out=self.root), share, budget)

    def reason(self, standing: Standing, code: int) -> str:
        """Return why an undecided claim was not followed further."""
        needed = standing.posed.repetitions[: standing.next_look or 0]
        for (key, one), name in self.lost.items():
            if key in standing.posed.keys.values() and one in needed:
                return f"{name} is not complete"
        if standing.next_look is None:
            return f"{self.design.max_seeds} seeds at most"
        return "budget" if code == Interrupted.exit_code else ""


def _rows_of(folder: Path) -> list[dict[str, str]]:
    """Return the rows of a run; none of one that is not complete, or damaged: the sweep goes on with it."""
    try:
        run = load_run(folder)
    except BadInput:
        return []
    return rows.as_read(rows.client_rows(run)) if run.status == "complete" else []

"""The claims about a suite, and the repetitions that may decide them: the suite's own, then added ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import count, islice
from pathlib import Path

from fedmpi.config import suite as suites
from fedmpi.config.suite import CaseSettings, SuiteFile
from fedmpi.config.tables import parse_override
from fedmpi.errors import BadInput
from fedmpi.registry.check import check_suite
from fedmpi.reproduction.claims import Stated
from fedmpi.reproduction.published import PAPERS, Claim, Published, read, read_claims
from fedmpi.reproduction.results import Key, Known, Plan, Repetition, Results, only, plan

_SETTINGS = {"seed": "seed", "partition.seed": "split_seed"}
"""Settings that set a repetition's fields."""


@dataclass(frozen=True)
class Posed:
    """A claim with the repetitions that may decide it.

    Attributes
    ----------
    claim : Claim
    keys : dict
        What is run, by the claim's ``cases``, ``against`` and ``over``.
    repetitions : tuple of Repetition
        In the order in which they are run: the suite's own, then added ones.
    own : int
        How many are the suite's own.
    """

    claim: Claim
    keys: Mapping[str, Key]
    repetitions: tuple[Repetition, ...]
    own: int

    def available(self, results: Results) -> int:
        """Return how many repetitions, from the first on, all its cells have."""
        missing = {one for key in self.keys.values() for one in results.cell(key, self.repetitions).missing}
        found = (place for place, each in enumerate(self.repetitions) if each in missing)
        return next(found, len(self.repetitions))

    def first(self, figures: Sequence[Published], results: Results, number: int) -> Stated:
        """Return the claim beside the runs of its first repetitions."""
        first = self.repetitions[:number]
        return Stated(self.claim, figures, lambda _, cases: results.cell(self.keys[cases], first))

    def overrides(self, repetition: Repetition) -> list[str]:
        """Return what ``--set`` takes to have a repetition run: nothing for the suite's own."""
        own = self.repetitions[: self.own]
        if repetition in own:
            return []
        names = _varied(own)
        return [f"{name}={getattr(repetition, field)}" for name, field in _SETTINGS.items() if field in names]


def about(path: Path) -> tuple[list[Claim], list[Published]]:
    """Return the claims about a suite and the published figures, from the CSV files beside it.

    A suite of other splits of a paper's table answers that table's claims.

    Raises
    ------
    BadInput
        There are no such files, or no claim is about the suite.
    """
    name = suites.read(path).name
    listed = path.with_name("claims.csv")
    if not listed.exists():
        raise BadInput(f"{name}: no claims to decide: {listed} is missing")
    claims = read_claims(listed)
    figures = read(path.with_name("published.csv"))
    for paper in PAPERS:
        if paper.splits == name:
            table = paper.tables[0]
            claims = [replace(each, suite=name) for each in claims if each.suite == table]
            figures = [replace(each, suite=name) for each in figures if each.suite == table]
    found = [each for each in claims if each.suite == name]
    if not found:
        raise BadInput(f"{listed}: no claim is about {name}")
    return found, figures


def own_rule(claim: Claim, otherwise: str) -> str:
    """Return the selection rule of the paper that makes a claim; `otherwise` that of papers of the user's."""
    return next((paper.rules[0] for paper in PAPERS if paper.name == claim.paper), otherwise)


def pose(path: Path, claims: Sequence[Claim], overrides: Sequence[str], most: int) -> list[Posed]:
    """Return claims with the repetitions that may decide them.

    An added repetition has the least whole number from 1 on that the suite does not use. It sets what the
    suite's own repetitions vary: the seed of the run, that of the partition and its split, or both.

    Parameters
    ----------
    path : Path
        Of the suite.
    claims : sequence of Claim
    overrides : sequence of str
        As ``--set`` takes them; claims about cases that they leave out are left out.
    most : int
        Repetitions of a cell.

    Raises
    ------
    BadInput
        The overrides leave no claim, or a claim's cases are of several configurations.
    """
    file = SuiteFile(path)
    if overrides:
        check_suite(file.suite(overrides))  # what is wrong with them alone is said as ever
    known: Known = {}

    @cache
    def planned(cases: str) -> Plan | None:
        return _planned(file, overrides, cases, known)

    found = []
    for claim in claims:
        plans = {cases: planned(cases) for cases in (claim.cases, claim.against, claim.over) if cases}
        if None not in plans.values():
            found.append(_posed(claim, {cases: each for cases, each in plans.items() if each}, most))
    if not found:
        raise BadInput(f"--set {' '.join(overrides)}: leaves no case of a claim about {path}")
    return found


def _planned(file: SuiteFile, overrides: Sequence[str], cases: str, known: Known) -> Plan | None:
    """Return what cases run; None where the overrides chose others."""
    chosen = dict(parse_override(each) for each in overrides)
    if any(chosen.get(key, value) != value for key, value in map(parse_override, cases.split())):
        return None
    try:
        return plan(file, [*overrides, *cases.split()], known)
    except BadInput:
        if not overrides:
            raise
        return None


def _posed(claim: Claim, plans: Mapping[str, Plan], most: int) -> Posed:
    chosen = {cases: only(each, f"{claim.suite} {cases}") for cases, each in plans.items()}
    first, *others = (repetitions for _, repetitions in chosen.values())
    own = tuple(one for one in first if all(one in other for other in others))
    if not own:
        raise BadInput(f"{claim.suite}: {claim.claim}: its cells share no repetition")
    return Posed(claim, {cases: key for cases, (key, _) in chosen.items()}, _extended(own, most), len(own))


def _extended(own: tuple[Repetition, ...], most: int) -> tuple[Repetition, ...]:
    varied = _varied(own)
    taken = {getattr(one, field) for one in own for field in varied}
    numbers = islice((number for number in count(1) if number not in taken), max(0, most - len(own)))
    return (*own, *(own[0]._replace(**dict.fromkeys(varied, number)) for number in numbers))


def _varied(own: Sequence[Repetition]) -> list[str]:
    """Return the fields in which repetitions differ; of a single one the seed of the run."""
    found = [field for field in Repetition._fields if len({getattr(one, field) for one in own}) > 1]
    return found or ["seed"]


def case_of(path: Path, overrides: Sequence[str], posed: Posed, cases: str, one: Repetition) -> CaseSettings:
    """Return the suite's case that runs a repetition of a claim's cell."""
    file, chosen = SuiteFile(path), [*overrides, *cases.split()]
    found = file.suite([*chosen, *posed.overrides(one)]).cases
    if one not in posed.repetitions[: posed.own]:
        return found[0]  # what the overrides make the same is run once
    name = plan(file, chosen, {})[posed.keys[cases]][one]
    return next(each for each in found if each.name == name)

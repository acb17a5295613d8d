"""Counts what was tried and what came of it, and keeps the shortest input of each kind of failure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

_SHOWN = 700
"""Characters that are shown of an input's begin, and of its end."""

TALLIES: list[Tally] = []
"""One for each test that ran, for the summary at the end."""


@dataclass(frozen=True)
class Failure:
    """A bad end: its kind, and the input that shows it."""

    kind: str
    example: str

    def __str__(self) -> str:
        return f"{self.kind}\n{self.example}\n"


@dataclass
class Tally:
    """The counts of one test."""

    name: str
    inputs: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    shortest: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        TALLIES.append(self)

    def count(self, outcome: str) -> None:
        """Count an input with a good end: refused, unchanged, done."""
        self.inputs += 1
        self.outcomes[outcome] += 1

    def fail(self, kind: str, example: str) -> None:
        """Count an input with a bad one."""
        self.inputs += 1
        self.failures[kind] += 1
        if len(example) < len(self.shortest.get(kind, example + " ")):
            self.shortest[kind] = example

    def _example(self, kind: str) -> str:
        whole = self.shortest[kind]
        cut = len(whole) - 2 * _SHOWN
        return whole if cut <= 0 else f"{whole[:_SHOWN]} ...({cut} more)... {whole[-_SHOWN:]}"

    def line(self) -> str:
        """Return the counts in one line."""
        parts = [f"{count} {outcome}" for outcome, count in self.outcomes.most_common()]
        return (
            f"{self.name}: {self.inputs} inputs, {', '.join([*parts, f'{self.failures.total()} failures'])}"
        )

    def lines(self) -> list[str]:
        """Return the counts, and a line per kind of failure."""
        return [self.line(), *(f"  {count} x {kind}" for kind, count in self.failures.most_common())]

    def verdict(self) -> str:
        """Return each kind of failure with its shortest input; nothing where there was none."""
        return "\n".join(
            f"{count} x {kind}\n    {self._example(kind)}" for kind, count in self.failures.most_common()
        )

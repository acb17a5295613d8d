"""``fedmpi report`` as a page, as Markdown and as LaTeX; each returns the exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedmpi.analysis.discovery import each_run
from fedmpi.analysis.page import plain
from fedmpi.analysis.page.build import Page
from fedmpi.analysis.page.machine import read
from fedmpi.errors import BadInput

_MOST_NAMED = 3
"""Paths that a title names."""


@dataclass(frozen=True)
class Formats:
    """Which texts are wanted, and the machine's rates for the page."""

    html: Path | None = None
    markdown: bool = False
    latex: bool = False
    machine: Path | None = None

    def __bool__(self) -> bool:
        return self.html is not None or self.markdown or self.latex or self.machine is not None


def report(paths: Sequence[Path], target: float | None, formats: Formats) -> int:
    """Write the page, print the tables.

    Returns
    -------
    int
        0, or 2 if anything was left out of the averages (named on the standard error).
    """
    if formats.machine is not None and formats.html is None:
        raise BadInput("--machine is for the page: give --html too")
    page = Page(target, read(formats.machine) if formats.machine else None)
    complaints: list[str] = []
    page.add(each_run(paths, complaints))
    settings, left_out = page.settings(complaints)
    if formats.markdown:
        print(plain.markdown(settings), end="")
    if formats.latex:
        print(plain.latex(settings), end="")
    if formats.html is not None:
        _write(formats.html, page.html(_title(page, paths), complaints))
    for line in left_out:
        print(f"fedmpi: {line}", file=sys.stderr)
    return 2 if left_out else 0


def _title(page: Page, paths: Sequence[Path]) -> str:
    suites = {str(run.config.get("suite")) for run in page.digests}
    if len(suites) == 1:
        return suites.pop()
    return ", ".join(map(str, paths)) if len(paths) <= _MOST_NAMED else f"{len(page.digests)} runs"


def _write(target: Path, text: str) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"--html {target}: cannot write it ({error.strerror})") from error
    print(f"Page: {target} ({len(text.encode()) / 1e6:.1f} MB)", file=sys.stderr)

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
from fedmpi.cli.terminal import say
from fedmpi.errors import BadInput
from fedmpi.store import disk
from fedmpi.visible import complain_of, visible_lines

_MOST_NAMED = 3
"""Suites that a title names."""


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
        sys.stdout.write(visible_lines(plain.markdown(settings)))
    if formats.latex:
        sys.stdout.write(visible_lines(plain.latex(settings)))
    if formats.html is not None:
        _write(formats.html, page.html(_title(page), complaints))
    complain_of(left_out)
    return 2 if left_out else 0


def _title(page: Page) -> str:
    """Return what the runs are of, as their records say: never a path, which belongs to one machine."""
    suites = list(dict.fromkeys(str(run.config["suite"]) for run in page.digests if run.config.get("suite")))
    if 0 < len(suites) <= _MOST_NAMED:
        return ", ".join(suites)
    return f"{len(page.digests)} run{'s' * (len(page.digests) != 1)}" + (
        f" of {len(suites)} suites" if suites else ""
    )


def _write(target: Path, text: str) -> None:
    try:
        disk.write_whole(target, text)
    except OSError as error:
        raise BadInput(f"--html {target}: cannot write it ({error.strerror})") from error
    say(f"Page: {target} ({len(text.encode()) / 1e6:.1f} MB)", sys.stderr)

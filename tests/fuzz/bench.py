"""Commands in folders with copies of sound files, some of them damaged, and what came of them."""

from __future__ import annotations

import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz import damage
from tests.fuzz.oracle import Failure, flaw
from tests.fuzz.server import Ended, Server

REPORTS = {
    "report": ("report", "runs/whole", "--json"),
    "table": ("report", "runs/whole"),
    "compare": ("compare", "--identical", "good/whole", "runs/whole"),
    "ratios": ("compare", "good/whole", "runs/whole", "--json"),
    "export": ("export", "runs/whole", "--tensorboard", "logs"),
    "csv": ("report", "runs/whole", "--csv", "/dev/stdout"),
}
"""Commands that read a record."""


@dataclass
class Bench:
    """Runs commands in folders and compares what they say with what they say of sound files."""

    home: Path
    server: Server
    sound: dict[tuple[str, ...], Ended]

    def run(self, folder, words, **options):
        return self.server.run(folder, *words, **options)

    def expected(self, words: tuple[str, ...], *parts: str, **options: object) -> Ended:
        """Return what a command says of sound files; `parts` are what it needs."""
        if words not in self.sound:
            folder = self.home.parent / f"sound-{len(self.sound)}"
            self.lay_out(folder, *parts)
            self.sound[words] = self.run(folder, words, **options)
            assert not flaw(self.sound[words]), self.sound[words]
        return self.sound[words]

    def lay_out(self, folder: Path, *parts: str) -> None:
        """Copy parts of the home; ``good/`` holds sound records to compare with."""
        for part in parts:
            source, target = self.home / part.replace("good/", "runs/"), folder / part
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, target)


def said(words: tuple[str, ...], value: object, ended: Ended) -> str:
    """Return an input and what came of it, for a report."""
    text = (ended.out[-200:] + ended.err[-300:]).replace("\n", " | ")
    return f"fedmpi {' '.join(words)} after {value!r}: exit {ended.code}: {text}"


def outcome(
    ended: Ended,
    value: object,
    words: tuple[str, ...],
    sound: Ended | None = None,
    codes: tuple[int, ...] = (0, 2),
) -> str | Failure:
    """Return what came of a command that may say what it says of sound files, or refuse.

    Where nothing covers its input by a digest, any result is as good, a traceback is not. `compare` says that
    it left a side out, and that nothing is left to compare.
    """
    if kind := flaw(ended, codes, lines=2 if words == REPORTS["ratios"] else 1):
        return Failure(f"{words[0]}: {kind}", said(words, value, ended))
    if ended.refused:
        return "refused"
    if sound is not None and ended.out != sound.out:
        return Failure(f"{words[0]}: damage taken for a result", said(words, value, ended))
    return "unchanged" if sound else "read"


def rewrite(path: Path, value: damage.Damage) -> bool:
    """Damage a file; say whether that changed it."""
    content = path.read_bytes()
    path.write_bytes(value.apply(content))
    return path.read_bytes() != content


def replaced(path: Path, member: str, harm: damage.Damage) -> None:
    """Damage a member of an archive, which fits its checksum afterwards."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts[member] = harm.apply(parts[member])
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)

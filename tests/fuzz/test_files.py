"""Damaged files: what stood in them comes out, or one line says that it cannot."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.fuzz import damage
from tests.fuzz.home import Home
from tests.fuzz.oracle import flaw, refused
from tests.fuzz.server import Ended, Server
from tests.fuzz.tally import Failure

REPORTS = {
    "report": ("report", "runs/whole", "--json"),
    "table": ("report", "runs/whole"),
    "compare": ("compare", "--identical", "good/whole", "runs/whole"),
    "ratios": ("compare", "good/whole", "runs/whole", "--json"),
    "export": ("export", "runs/whole", "--mllog", "logs"),
    "csv": ("report", "runs/whole", "--csv", "/dev/stdout"),
}
"""Commands that read a record."""

SECRET = 0.7310585


@dataclass
class Bench:
    """Runs commands in folders and compares what they say with what they say of sound files."""

    home: Home
    server: Server
    sound: dict[tuple[str, ...], Ended]

    def run(self, folder: Path, words: tuple[str, ...], **options: object) -> Ended:
        return self.server.run(folder, *words, **options)  # type: ignore[arg-type]

    def expected(self, words: tuple[str, ...], *parts: str, **options: object) -> Ended:
        """Return what a command says of sound files; `parts` are what it needs."""
        if words not in self.sound:
            folder = self.home.path.parent / f"sound-{len(self.sound)}"
            self.lay_out(folder, *parts)
            self.sound[words] = self.run(folder, words, **options)
            assert not flaw(self.sound[words]), self.sound[words]
        return self.sound[words]

    def lay_out(self, folder: Path, *parts: str) -> None:
        """Copy parts of the home; ``good/`` holds sound records to compare with."""
        for part in parts:
            if part.startswith("good/"):
                shutil.copytree(self.home.path / "runs" / part.removeprefix("good/"), folder / part)
            else:
                self.home.copy(part, folder)


@pytest.fixture(scope="session")
def bench(home, server):
    return Bench(home, server, {})


def said(words: tuple[str, ...], value: object, ended: Ended) -> str:
    """Return an input and what came of it, for a report."""
    text = (ended.out[-200:] + ended.err[-300:]).replace("\n", " | ")
    return f"fedmpi {' '.join(words)} after {value!r}: exit {ended.code}: {text}"


def unchanged(ended: Ended, sound: Ended, value: object, words: tuple[str, ...]) -> str | Failure:
    """Return what came of a command that may say what it says of sound files, or refuse.

    `compare` says that it left a side out, and that nothing is left to compare.
    """
    if kind := flaw(ended, lines=2 if words == REPORTS["ratios"] else 1):
        return Failure(f"{words[0]}: {kind}", said(words, value, ended))
    if refused(ended):
        return "refused"
    if ended.out != sound.out:
        return Failure(f"{words[0]}: damage taken for a result", said(words, value, ended))
    return "unchanged"


def rewrite(path: Path, value: damage.Damage) -> bool:
    """Damage a file; say whether that changed it."""
    content = path.read_bytes()
    path.write_bytes(value.apply(content))
    return path.read_bytes() != content


def test_a_damaged_record_is_refused_or_shows_what_it_held(explore, bench):
    def attempt(value, folder):
        harm, name = value
        words = REPORTS[name]
        sound = bench.expected(words, "runs/whole", "good/whole")
        bench.lay_out(folder, "runs/whole", "good/whole")
        if not rewrite(folder / "runs/whole/run.h5", harm):
            return "unchanged"
        return unchanged(bench.run(folder, words), sound, harm, words)

    tally = explore(40, st.tuples(damage.of_bytes, st.sampled_from(sorted(REPORTS))), attempt)
    assert not tally.failures, tally.verdict()


def test_a_record_of_a_stranger_shows_nothing_else_and_no_traceback(explore, bench):
    def attempt(value, folder):
        harm, name = value
        words = REPORTS[name]
        sound = bench.expected(words, "runs/whole", "good/whole")
        bench.lay_out(folder, "runs/whole", "good/whole")
        for place in (folder, folder / "runs" / "whole"):
            (place / "secret.bin").write_bytes(np.full(10_000, SECRET).tobytes())
        harm.apply(folder / "runs/whole/run.h5")
        ended = bench.run(folder, words)
        if str(SECRET)[:6] in ended.out or f"{100 * SECRET:.2f}" in ended.out:
            return Failure(f"{words[0]}: shows another file's content", said(words, harm, ended))
        if name == "compare" and ended.code == 1 and not flaw(ended, (1,)):
            return "different"
        return unchanged(ended, sound, harm, words)

    tally = explore(36, st.tuples(damage.of_hdf5, st.sampled_from(sorted(REPORTS))), attempt)
    assert not tally.failures, tally.verdict()


def test_repair_makes_a_damaged_record_again(explore, bench):
    words, repair = REPORTS["report"], ("records", "repair", "runs/whole")
    sound = bench.expected(words, "runs/whole", "good/whole")

    def attempt(harm, folder):
        bench.lay_out(folder, "runs/whole")
        rewrite(folder / "runs/whole/run.h5", harm)
        mended = bench.run(folder, repair)
        if kind := flaw(mended, (0,)):
            return Failure(f"repair: {kind}", said(repair, harm, mended))
        ended = bench.run(folder, words)
        if ended.code or ended.out != sound.out:
            return Failure("repair: another record than before", said(words, harm, ended))
        return "mended"

    tally = explore(5, damage.of_bytes, attempt)
    assert not tally.failures, tally.verdict()


def is_a_beginning(part: bytes, whole: bytes) -> bool:
    """Return whether the whole lines of a log are the first lines of another: a log that was cut short."""
    return whole.startswith(part[: part.rfind(b"\n") + 1])


def test_a_damaged_log_is_refused_or_gives_the_record(explore, bench):
    words, repair = REPORTS["report"], ("records", "repair", "runs/whole")
    sound = bench.expected(words, "runs/whole", "good/whole")

    def attempt(harm, folder):
        bench.lay_out(folder, "runs/whole")
        (folder / "runs/whole/run.h5").unlink()
        log = folder / "runs/whole/events.jsonl"
        whole = log.read_bytes()
        rewrite(log, harm)
        mended = bench.run(folder, repair)
        if kind := flaw(mended):
            return Failure(f"repair: {kind}", said(repair, harm, mended))
        if refused(mended):
            return "refused"
        ended = bench.run(folder, words)
        if is_a_beginning(log.read_bytes(), whole) and json.loads(ended.out)[0]["status"] != "complete":
            return "cut short"
        return unchanged(ended, sound, harm, words)

    tally = explore(36, st.one_of(damage.of_text, damage.of_json, damage.of_json), attempt)
    assert not tally.failures, tally.verdict()


def test_watch_shows_a_damaged_log_as_it_was_or_refuses_it(explore, bench):
    words = ("watch", "runs/whole", "--once")
    sound = bench.expected(words, "runs/whole")

    def attempt(harm, folder):
        bench.lay_out(folder, "runs/whole")
        log = folder / "runs/whole/events.jsonl"
        whole = log.read_bytes()
        rewrite(log, harm)
        ended = bench.run(folder, words)
        if is_a_beginning(log.read_bytes(), whole) and not flaw(ended):
            return "cut short"
        return unchanged(ended, sound, harm, words)

    tally = explore(28, st.one_of(damage.of_text, damage.of_json, damage.of_json), attempt)
    assert not tally.failures, tally.verdict()


RESUME = ("run", "suite.toml", "--case", "whole", "--out", "stopped", "--resume")
CHECK = ("compare", "--identical", "good/whole", "stopped/whole")


def resumed(
    bench: Bench, engine: Server, folder: Path, value: object, codes: tuple[int, ...]
) -> str | Failure:
    """Resume the stopped run and compare its end with the undisturbed one."""
    ended = engine.run(folder, *RESUME, trains=True)
    if kind := flaw(ended, codes):
        return Failure(f"resume: {kind}", said(RESUME, value, ended))
    if refused(ended):
        return "refused"
    same = bench.run(folder, CHECK)
    if same.code != 0:
        return Failure("resume: another result", said(CHECK, value, same))
    return "identical"


def test_a_damaged_checkpoint_is_passed_over(explore, bench, engine):
    def attempt(value, folder):
        harm, names = value
        bench.lay_out(folder, "stopped/whole", "good/whole", "suite.toml")
        place = folder / "stopped/whole/checkpoints"
        for path in sorted(path for name in names for path in place.glob(name)):
            rewrite(path, harm)
        return resumed(bench, engine, folder, value, (0,))

    which = st.sampled_from(
        (("manifest",), ("manifest.previous",), ("manifest*",), ("*.server",), ("*.rank-0",), ("*",))
    )
    tally = explore(8, st.tuples(damage.of_bytes, which), attempt)
    assert not tally.failures, tally.verdict()


def test_a_run_with_a_damaged_file_is_resumed_to_the_same_end_or_not_at_all(explore, bench, engine):
    def attempt(value, folder):
        harm, name = value
        bench.lay_out(folder, "stopped/whole", "good/whole", "suite.toml")
        rewrite(folder / "stopped/whole" / name, harm)
        return resumed(bench, engine, folder, value, (0, 2))

    names = st.sampled_from(("run.h5", "events.jsonl"))
    tally = explore(6, st.tuples(damage.of_bytes | damage.of_text, names), attempt)
    assert not tally.failures, tally.verdict()


LOCK = json.dumps({"job": "", "restart": "0", "host": "here", "pid": 4000000, "started": "123",
                   "place": "boot pid:[1]", "token": "00ff"}).encode()  # fmt: skip


def test_a_damaged_lock_is_held_or_free_but_no_traceback(explore, bench):
    words = (
        ("records", "repair", "runs/whole"),
        ("report", "runs/whole", "--json"),
        ("watch", "runs/whole", "--once"),
    )
    resume = ("run", "suite.toml", "--case", "whole", "--out", "runs", "--resume", "--list")

    def attempt(value, folder):
        harm, command = value
        bench.lay_out(folder, "runs/whole", "suite.toml")
        (folder / "runs/whole/lock").write_bytes(harm.apply(LOCK))
        ended = bench.run(folder, command)
        if kind := flaw(ended):
            return Failure(f"{command[0]}: {kind}", said(command, harm, ended))
        return "refused" if refused(ended) else "done"

    damages = st.one_of(damage.of_text, damage.of_json, damage.of_json)
    tally = explore(12, st.tuples(damages, st.sampled_from((*words, resume))), attempt)
    assert not tally.failures, tally.verdict()


def test_damaged_embeddings_are_refused_or_read_as_they_were(explore, bench):
    words, call = ("runs/vectors",), "tests.fuzz.home:load_embeddings"
    sound = bench.expected(words, "runs/vectors", call=call)

    def attempt(harm, folder):
        bench.lay_out(folder, "runs/vectors")
        rewrite(folder / "runs/vectors/embeddings/round-0001.npz", harm)
        return unchanged(bench.run(folder, words, call=call), sound, harm, ("embeddings",))

    tally = explore(15, damage.of_bytes, attempt)
    assert not tally.failures, tally.verdict()


def test_damaged_prepared_data_are_made_again_refused_or_read_as_they_were(explore, bench):
    words, call = ("FUZZ", "cache"), "tests.fuzz.home:load_dataset"
    sound = bench.expected(words, "cache", "mirror", call=call)
    files = sorted(path.name for path in (bench.home.path / "cache/tudataset/FUZZ").iterdir())

    def attempt(value, folder):
        harm, name = value
        bench.lay_out(folder, "cache", "mirror")
        rewrite(folder / "cache/tudataset/FUZZ" / name, harm)
        return unchanged(bench.run(folder, words, call=call), sound, value, ("load",))

    damages = st.tuples(damage.of_bytes, st.sampled_from(files))
    texts = st.tuples(damage.of_json, st.just("meta.json"))
    tally = explore(28, damages | damages | texts, attempt)
    assert not tally.failures, tally.verdict()


def only_refused(
    ended: Ended, value: object, words: tuple[str, ...], codes: tuple[int, ...]
) -> str | Failure:
    """Return what came of a command whose input has no digest: any result is as good, a traceback is not."""
    if kind := flaw(ended, codes):
        return Failure(f"{words[0]}: {kind}", said(words, value, ended))
    return "refused" if refused(ended) else "read"


def test_damaged_raw_data_are_read_or_refused(explore, bench):
    archives = ("mirror/tudataset/FUZZ.zip", "mirror/tudataset/PACKED.zip")
    texts = tuple(
        f"own/OWN/OWN_{part}.txt" for part in ("A", "graph_indicator", "graph_labels", "node_attributes")
    )

    def attempt(value, folder):
        harm, name = value
        bench.lay_out(folder, "mirror", "own")
        rewrite(folder / name, harm)
        dataset = "own/OWN" if name in texts else Path(name).stem
        words = ("data", "fetch", dataset, "--mirror", "mirror", "--data", "fresh")
        return only_refused(bench.run(folder, words), value, words, (0, 2))

    packed = st.tuples(damage.of_bytes, st.sampled_from(archives))
    plain = st.tuples(damage.of_text, st.sampled_from(texts))
    tally = explore(28, packed | plain, attempt)
    assert not tally.failures, tally.verdict()


def test_a_damaged_table_of_molecules_is_refused(explore, bench, real_data):
    words, call = ("FreeSolv", "mirror", "cache"), "tests.fuzz.home:check_dataset"
    table = Path(os.environ["FEDMPI_MIRROR"]) / "moleculenet" / "SAMPL.csv"

    def attempt(harm, folder):
        (folder / "mirror" / "moleculenet").mkdir(parents=True)
        shutil.copy(table, folder / "mirror" / "moleculenet" / "SAMPL.csv")
        if not rewrite(folder / "mirror" / "moleculenet" / "SAMPL.csv", harm):
            return "unchanged"
        return only_refused(bench.run(folder, words, call=call), harm, ("check",), (0, 2))

    tally = explore(8, damage.of_text, attempt)
    assert not tally.failures, tally.verdict()


VERIFY = ("records", "verify", "bundle.tar.gz")


def test_a_damaged_bundle_is_not_valid(explore, bench):
    sound = bench.expected(VERIFY, "bundle.tar.gz")

    def attempt(value, folder):
        harm, plain = value
        pack(bench.home.path / "unpacked", folder / "bundle.tar.gz", packed=not plain)
        if not rewrite(folder / "bundle.tar.gz", harm):
            return "unchanged"
        ended = bench.run(folder, VERIFY)
        if ended.code == 1 and "WRONG: " in ended.out and not flaw(ended, (1,)):
            return "refused"
        return unchanged(ended, sound, value, VERIFY)

    tally = explore(15, st.tuples(damage.of_bytes, st.booleans()), attempt)
    assert not tally.failures, tally.verdict()


def pack(folder: Path, target: Path, packed: bool = False) -> None:
    """Make an archive of a bundle's folder."""
    with tarfile.open(target, "w:gz" if packed else "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.add(path, str(path.relative_to(folder)), recursive=False)


def test_a_bundle_of_a_stranger_is_checked_without_a_traceback(explore, bench):
    (inner,) = (bench.home.path / "unpacked").iterdir()
    names = sorted(str(path.relative_to(inner)) for path in inner.rglob("*") if path.is_file())

    def attempt(value, folder):
        harm, name = value
        shutil.copytree(inner, folder / "made" / inner.name)
        place = folder / "made" / inner.name
        if isinstance(harm, damage.Tampering):
            harm.apply(place / next(name for name in names if name.endswith("run.h5")))
        else:
            rewrite(place / name, harm)
        if name != "bundle.json" and isinstance(
            index := json.loads((place / "bundle.json").read_text()), dict
        ):
            for each in index["files"]:
                content = (place / each["path"]).read_bytes()
                each |= {"bytes": len(content), "sha256": sha256(content).hexdigest()}
            (place / "bundle.json").write_text(json.dumps(index))
        pack(folder / "made", folder / "bundle.tar.gz")
        return only_refused(bench.run(folder, VERIFY), value, VERIFY, (0, 1, 2))

    texts = st.tuples(damage.of_text, st.sampled_from(names))
    values = st.tuples(damage.of_json, st.sampled_from(("bundle.json", "systems.json")))
    records = st.tuples(damage.of_hdf5, st.just(""))
    tally = explore(20, texts | values | records, attempt)
    assert not tally.failures, tally.verdict()


TEXTS = {
    "rows.csv": ("paper", "reproduction", "rows.csv", "--cells", "cells.csv", "--document", "document.md"),
    "plugin.py": ("run", "suite.toml", "--list", "--plugin", "plugin.py"),
    "system.toml": ("jobs", "plan", "suite.toml", "--system", "system.toml", "--json"),
    "suite.toml": ("run", "suite.toml", "--list"),
}
"""Files that people write, and the command that reads each."""


@pytest.mark.parametrize("name", TEXTS)
def test_a_damaged_text_is_read_or_refused(explore, bench, name):
    def attempt(harm, folder):
        bench.lay_out(folder, *{"suite.toml", name})
        rewrite(folder / name, harm)
        return only_refused(bench.run(folder, TEXTS[name]), harm, TEXTS[name], (0, 2))

    tally = explore(4 if name == "rows.csv" else 12, damage.of_text, attempt)
    assert not tally.failures, tally.verdict()

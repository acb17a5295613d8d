"""Damaged files: what stood in them comes out, or one line says that it cannot."""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.fuzz import damage
from tests.fuzz.bench import REPORTS, outcome, replaced, rewrite, said
from tests.fuzz.oracle import Failure, flaw

SECRET = 0.7310585


def fetch(name: str) -> tuple[str, ...]:
    return ("data", "fetch", name, "--mirror", "mirror", "--data", "fresh")


def each(pattern: str, names: str, *words: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    """Return files of these names, each with each command that reads it."""
    return [(pattern.format(name), command) for name in names.split() for command in words]


ANY = st.one_of(damage.of_text, damage.of_json, damage.of_json)
LIST = ("run", "suite.toml", "--list")
PLAN = ("jobs", "plan", "suite.toml", "--system", "system.toml", "--json")
TABLE = ("paper", "reproduction", "rows.csv", "--cells", "cells.csv", "--document", "document.md")
REPAIR, WATCH = ("records", "repair", "runs/whole"), ("watch", "runs/whole", "--once")
RESUMED = ("run", "suite.toml", "--case", "whole", "--out", "runs", "--resume", "--list")

RECORD = each("runs/{}/run.h5", "whole", *REPORTS.values())
LOCK = {"job": "", "restart": "0", "host": "here", "pid": 4000000, "started": "123",
        "place": "boot pid:[1]", "token": "00ff"}  # fmt: skip
LOCKED = each("runs/{}/lock", "whole", REPAIR, REPORTS["report"], WATCH, RESUMED)
PLUGIN = each("{}.py", "plugin", (*LIST, "--plugin", "plugin.py"))
VECTORS = each("runs/vectors/embeddings/{}.npz", "round-0001", ("runs/vectors",))
ARRAYS = "columns graph_ptr labels node_attributes node_labels row_ptr"
PREPARED = each("cache/tudataset/FUZZ/{}.npy", ARRAYS, ("FUZZ", "cache"))
FACTS = each("cache/tudataset/FUZZ/{}.json", "meta", ("FUZZ", "cache"))
ARCHIVES = each("mirror/tudataset/{}.zip", "FUZZ", fetch("FUZZ"))
ARCHIVES += each("mirror/tudataset/{}.zip", "PACKED", fetch("PACKED"))
ROWS = "A graph_indicator graph_labels node_attributes edge_labels edge_attributes client graph_split"
GRAPHS = each("own/OWN/OWN_{}.txt", ROWS, fetch("own/OWN"))
GRAPHS += each("own/TEXT/TEXT_{}.txt", "graph_labels", fetch("own/TEXT"))
OWN = each("own/mine.{}", "csv", fetch("own/mine.csv")) + each("own/mine.{}", "sdf", fetch("own/mine.sdf"))
PARQUET = each("own/mine.{}", "parquet", fetch("own/mine.parquet"))
BENCHMARK = "raw/edge raw/num-node-list raw/num-edge-list raw/node-feat raw/edge-feat split/random/valid"
OGB = each("own/ogbg/{}.csv.gz", f"{BENCHMARK} raw/graph-label", fetch("own/ogbg?add_inverse_edge=True"))
OGB += each("own/ogbn/{}.csv.gz", f"{BENCHMARK} raw/node-label", fetch("own/ogbn"))
SAVED = each("own/{}.pt", "graphs network", ("own", "cache"))
MOLECULES = each("mirror/moleculenet/{}.csv", "SAMPL", ("FreeSolv", "cache"))

READS = {
    "record": (True, 40, "runs/whole good/whole", damage.of_bytes, RECORD, ""),
    "embeddings": (True, 15, "runs/vectors", damage.of_bytes, VECTORS, "load_embeddings"),
    "prepared": (True, 18, "cache mirror", damage.of_bytes, PREPARED + FACTS, "load_dataset"),
    "facts": (True, 10, "cache mirror", damage.of_json, FACTS, "load_dataset"),
    "lock": (False, 12, "runs/whole suite.toml", ANY, LOCKED, ""),
    "archives": (False, 14, "mirror", damage.of_bytes, ARCHIVES, ""),
    "graphs": (False, 20, "mirror own", damage.of_text, GRAPHS, ""),
    "own molecules": (False, 16, "mirror own", damage.of_text, OWN, ""),
    "own Parquet": (False, 16, "mirror own", damage.of_bytes, PARQUET, ""),
    "own graphs": (False, 20, "own", damage.of_bytes, SAVED, "check_files"),
    "molecules": (False, 8, "mirror", damage.of_text, MOLECULES, "check_dataset"),
    "rows": (False, 4, "rows.csv", damage.of_text, [("rows.csv", TABLE)], ""),
    "suite": (False, 12, "suite.toml", damage.of_text, [("suite.toml", LIST)], ""),
    "plug-in": (False, 12, "suite.toml plugin.py", damage.of_text, PLUGIN, ""),
    "system": (False, 12, "suite.toml system.toml", damage.of_text, [("system.toml", PLAN)], ""),
}  # fmt: skip
"""Whether a digest covers them, inputs, what is laid out, damages, files with commands that read them, a call."""


@pytest.mark.long
@pytest.mark.parametrize("name", READS)
def test_a_damaged_file_is_refused_or_read(request, explore, bench, name):
    """As it was, where it has a digest; else in some way, without a traceback."""
    digest, inputs, parts, harms, files, call = READS[name]
    calls = {"call": f"tests.fuzz.home:{call}"} if call else {}
    if name == "molecules":
        request.getfixturevalue("real_data")

    def attempt(value, folder):
        harm, (file, words) = value
        sound = bench.expected(words, *parts.split(), **calls) if digest else None
        bench.lay_out(folder, *parts.split())
        if name == "lock":
            (folder / file).write_text(json.dumps(LOCK))
        if not rewrite(folder / file, harm):
            return "unchanged"
        ended = bench.run(folder, words, **calls)
        return outcome(ended, value, words, sound)

    explore(inputs, st.tuples(harms, st.sampled_from(files)), attempt)


def test_a_damaged_table_of_ogb_is_refused_or_read(explore, bench):
    """It is packed anew, so that what reads it sees the damage."""

    def attempt(value, folder):
        harm, (file, words) = value
        bench.lay_out(folder, "mirror", "own")
        path = folder / file
        path.write_bytes(gzip.compress(harm.apply(gzip.decompress(path.read_bytes()))))
        return outcome(bench.run(folder, words), value, words)

    explore(16, st.tuples(damage.of_text, st.sampled_from(OGB)), attempt)


def test_a_pickle_of_a_stranger_is_refused_or_read(explore, bench):
    """Its checksum is right, so that what reads it sees the damage."""

    def attempt(value, folder):
        harm, name = value
        bench.lay_out(folder, f"own/{name}.pt")
        replaced(folder / f"own/{name}.pt", f"{name}/data.pkl", harm)
        words = ("own", "cache")
        return outcome(bench.run(folder, words, call="tests.fuzz.home:check_files"), value, words)

    explore(40, st.tuples(damage.of_bytes, st.sampled_from(("graphs", "network"))), attempt)


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
        return outcome(ended, harm, words, sound)

    explore(36, st.tuples(damage.of_hdf5, st.sampled_from(sorted(REPORTS))), attempt)


def test_repair_makes_a_damaged_record_again(explore, bench):
    words, repair = REPORTS["report"], REPAIR
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

    explore(5, damage.of_bytes, attempt)


def is_a_beginning(part: bytes, whole: bytes) -> bool:
    """Return whether the whole lines of a log are the first lines of another: a log that was cut short."""
    return whole.startswith(part[: part.rfind(b"\n") + 1])


@pytest.mark.parametrize(("inputs", "words"), [(36, REPORTS["report"]), (28, WATCH)], ids=["repair", "watch"])
def test_a_damaged_log_is_refused_or_gives_what_it_held(explore, bench, inputs, words):
    """To `watch`, and to `report` of the record that `repair` makes of it."""
    sound = bench.expected(words, "runs/whole", "good/whole")

    def attempt(harm, folder):
        bench.lay_out(folder, "runs/whole")
        log = folder / "runs/whole/events.jsonl"
        whole = log.read_bytes()
        rewrite(log, harm)
        if words != WATCH:
            (folder / "runs/whole/run.h5").unlink()
            mended = bench.run(folder, REPAIR)
            if kind := flaw(mended):
                return Failure(f"repair: {kind}", said(REPAIR, harm, mended))
            if mended.refused:
                return "refused"
        ended = bench.run(folder, words)
        shorter = is_a_beginning(log.read_bytes(), whole) and not flaw(ended)
        if shorter and (words == WATCH or json.loads(ended.out)[0]["status"] != "complete"):
            return "cut short"
        return outcome(ended, harm, words, sound)

    explore(inputs, ANY, attempt)


RESUME = ("run", "suite.toml", "--case", "whole", "--out", "stopped", "--resume")
CHECK = ("compare", "--identical", "good/whole", "stopped/whole")
PASSED_OVER = ("manifest", "manifest.previous", "manifest*", "*.server", "*.rank-0", "*")
"""Files of checkpoints, without which a run is resumed all the same."""


@pytest.mark.parametrize(
    ("inputs", "harms", "names", "codes"),
    [
        (8, damage.of_bytes, [f"checkpoints/{name}" for name in PASSED_OVER], (0,)),
        (6, damage.of_bytes | damage.of_text, ["run.h5", "events.jsonl"], (0, 2)),
    ],
    ids=["checkpoint", "record"],
)
def test_a_run_with_a_damaged_file_is_resumed_to_the_same_end_or_not_at_all(
    explore, bench, inputs, harms, names, codes
):
    def attempt(value, folder):
        harm, name = value
        bench.lay_out(folder, "stopped/whole", "good/whole", "suite.toml")
        for path in sorted((folder / "stopped/whole").glob(name)):
            rewrite(path, harm)
        ended = bench.server.run(folder, *RESUME, trains=True)
        if kind := flaw(ended, codes):
            return Failure(f"resume: {kind}", said(RESUME, value, ended))
        if ended.refused:
            return "refused"
        same = bench.run(folder, CHECK)
        return Failure("resume: another result", said(CHECK, value, same)) if same.code else "identical"

    explore(inputs, st.tuples(harms, st.sampled_from(names)), attempt)


VERIFY = ("records", "verify", "bundle.tar.gz")


def test_a_damaged_bundle_is_not_valid(explore, bench):
    sound = bench.expected(VERIFY, "bundle.tar.gz")

    def attempt(value, folder):
        harm, plain = value
        pack(bench.home / "unpacked", folder / "bundle.tar.gz", packed=not plain)
        if not rewrite(folder / "bundle.tar.gz", harm):
            return "unchanged"
        ended = bench.run(folder, VERIFY)
        if ended.code == 1 and "WRONG: " in ended.out and not flaw(ended, (1,)):
            return "refused"
        return outcome(ended, value, VERIFY, sound)

    explore(15, st.tuples(damage.of_bytes, st.booleans()), attempt)


def pack(folder: Path, target: Path, packed: bool = False) -> None:
    """Make an archive of a bundle's folder."""
    with tarfile.open(target, "w:gz" if packed else "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.add(path, str(path.relative_to(folder)), recursive=False)


def test_a_bundle_of_a_stranger_is_checked_without_a_traceback(explore, bench):
    (inner,) = (bench.home / "unpacked").iterdir()
    names = sorted(str(path.relative_to(inner)) for path in inner.rglob("*") if path.is_file())

    def attempt(value, folder):
        harm, name = value
        shutil.copytree(inner, folder / "made" / inner.name)
        place = folder / "made" / inner.name
        if isinstance(harm, damage.Tampering):
            harm.apply(place / next(name for name in names if name.endswith("run.h5")))
        else:
            rewrite(place / name, harm)
        index = json.loads((place / "bundle.json").read_text()) if name != "bundle.json" else None
        if isinstance(index, dict):
            for each in index["files"]:
                content = (place / each["path"]).read_bytes()
                each |= {"bytes": len(content), "sha256": sha256(content).hexdigest()}
            (place / "bundle.json").write_text(json.dumps(index))
        pack(folder / "made", folder / "bundle.tar.gz")
        return outcome(bench.run(folder, VERIFY), value, VERIFY, codes=(0, 1, 2))

    texts = st.tuples(damage.of_text, st.sampled_from(names))
    values = st.tuples(damage.of_json, st.just("bundle.json"))
    records = st.tuples(damage.of_hdf5, st.just(""))
    explore(20, texts | values | records, attempt)

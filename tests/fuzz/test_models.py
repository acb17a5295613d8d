"""Files of trained models, damaged or a stranger's: the model, or one line; and nothing in them is run."""

from __future__ import annotations

import pytest
import torch
from hypothesis import strategies as st

from fedmpi.case.initial import SUFFIXES
from tests.fuzz import damage, states
from tests.fuzz.bench import outcome, replaced, rewrite, said
from tests.fuzz.oracle import Failure, flaw

INITIAL = ("run", "suite.toml", "--case", "whole", "--out", "fresh", "--set", "rounds=1", "--set")
EXPORT = ("export", "runs/whole", "--client", "synthetic-0", "--model", "out.pt")


def loaded(bench, folder, file, value, sound=None):
    """Load a file as `fedmpi.load_model` does, and say what came of it."""
    words = (file,)
    ended = bench.run(folder, words, call="tests.fuzz.home:load_model")
    return outcome(ended, value, words, sound)


def started(bench, folder, file, value):
    """Start a run from a file, and say what came of it: values that are large may make it diverge."""
    words = (*INITIAL, f"initial={file}")
    ended = bench.run(folder, words, trains=True)
    if ended.refused and (folder / "fresh").exists():
        return Failure("run: a folder of a run that was refused", said(words, value, ended))
    return outcome(ended, value, words, codes=(0, 2, 3))


def both(bench, folder, file, value):
    """Do both; nothing is executed."""
    found = [loaded(bench, folder, file, value), started(bench, folder, file, value)]
    if (folder / states.EXECUTED).exists():
        return Failure("code of the file was run", repr(value))
    return next((each for each in found if isinstance(each, Failure)), " and ".join(map(str, found)))


def test_damaged_tensors_are_refused_or_the_same(explore, bench):
    """The digest of the parameters covers them."""

    def attempt(value, folder):
        harm, suffix = value
        file = f"models/mine{suffix}"
        sound = bench.expected((file,), "models", call="tests.fuzz.home:load_model")
        bench.lay_out(folder, "models")
        if not rewrite(folder / file, harm):
            return "unchanged"
        return loaded(bench, folder, file, value, sound)

    explore(20, st.tuples(damage.of_bytes, st.sampled_from(SUFFIXES)), attempt)


def test_a_damaged_description_of_a_model_is_refused_or_read(explore, bench):
    def attempt(harm, folder):
        bench.lay_out(folder, "models")
        if not rewrite(folder / "models/mine.json", harm):
            return "unchanged"
        return loaded(bench, folder, "models/mine.pt", harm)

    explore(30, damage.of_json | damage.of_text, attempt)


def test_damaged_tensors_start_a_run_or_are_refused(explore, bench):
    def attempt(value, folder):
        harm, suffix = value
        bench.lay_out(folder, "models", "suite.toml")
        if not rewrite(folder / f"models/mine{suffix}", harm):
            return "unchanged"
        return started(bench, folder, f"models/mine{suffix}", value)

    explore(8, st.tuples(damage.of_bytes, st.sampled_from(SUFFIXES)), attempt)


def test_tensors_of_a_stranger_are_read_or_refused_and_nothing_is_run(explore, bench):
    def attempt(value, folder):
        other, suffix = value
        bench.lay_out(folder, "models", "suite.toml")
        state = torch.load(folder / "models/mine.pt", weights_only=True)
        (folder / f"models/mine{suffix}").write_bytes(other.content(state, suffix))
        return both(bench, folder, f"models/mine{suffix}", value)

    explore(16, st.tuples(states.of_states, st.sampled_from(SUFFIXES)), attempt)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_header_of_a_stranger_is_read_or_refused_and_nothing_is_run(explore, bench, suffix):
    """Its checksum or length is right, so that what reads it sees the damage."""

    def attempt(harm, folder):
        bench.lay_out(folder, "models", "suite.toml")
        path = folder / f"models/mine{suffix}"
        if suffix == ".pt":
            replaced(path, "archive/data.pkl", harm)
        else:
            path.write_bytes(states.with_header(path.read_bytes(), harm))
        return both(bench, folder, f"models/mine{suffix}", harm)

    explore(8, damage.of_bytes if suffix == ".pt" else damage.of_json, attempt)


def test_of_a_damaged_checkpoint_the_same_model_is_written_or_none(explore, bench):
    def attempt(value, folder):
        harm, name = value
        bench.lay_out(folder, "runs/whole", "models")
        for path in (folder / "runs/whole/checkpoints").glob(name):
            rewrite(path, harm)
        ended = bench.run(folder, EXPORT)
        if kind := flaw(ended):
            return Failure(f"export: {kind}", said(EXPORT, value, ended))
        written = folder / "out.pt"
        if ended.refused:
            return Failure("export: a file all the same", repr(value)) if written.exists() else "refused"
        if "after 3 rounds" in ended.out and name == "manifest":
            return "of the checkpoint before"
        found, expected = (
            torch.load(each, weights_only=True) for each in (written, folder / "models/mine.pt")
        )
        same = found.keys() == expected.keys() and all(map(torch.equal, found.values(), expected.values()))
        return "the same" if same else Failure("export: another model", said(EXPORT, value, ended))

    names = st.sampled_from(("manifest", "*.server", "*.rank-0"))
    explore(16, st.tuples(damage.of_bytes, names), attempt)

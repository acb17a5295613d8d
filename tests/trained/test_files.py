"""Models written to files and read again, in Python and at the command line."""

import json
import pickle
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import fedmpi
from fedmpi.case.initial import SUFFIXES
from fedmpi.errors import BadInput
from fedmpi.trained import files
from tests.trained.test_graphs import model, triangle


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_has_the_same_model(tmp_path, suffix):
    saved, path = model(), tmp_path / f"mine{suffix}"
    files.save(saved, path)
    found = fedmpi.load_model(path)
    assert torch.equal(found(triangle()), saved(triangle()))
    assert found.about == saved.about
    assert {each.name for each in tmp_path.iterdir()} == {path.name, "mine.json"}


def test_others_read_the_tensors_without_fedmpi(tmp_path):
    saved = model()
    for suffix in SUFFIXES:
        files.save(saved, tmp_path / f"mine{suffix}")
    expected = saved.network.state_dict()
    for found in (
        load_file(tmp_path / "mine.safetensors"),
        torch.load(tmp_path / "mine.pt", weights_only=True),
    ):
        assert set(found) == set(expected)
        assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_the_command_writes_a_clients_model(trained, command):
    folder = trained()
    done = command("export", folder, "--client", "synthetic-1", "--model", "home/one.safetensors", code=0)
    assert "fedavg's model of synthetic-1 after 2 rounds" in done.stdout
    known = json.loads(Path("home/one.json").read_text())
    assert (known["client"], known["num_features"], known["names"]) == ("synthetic-1", 5, ["0", "1"])
    found, expected = fedmpi.load_model("home/one.safetensors"), fedmpi.load_model(folder, "synthetic-1")
    assert found.about == expected.about


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "say what to write: --tensorboard DIR, or --model FILE"),
        (("--model", "a.pt", "--tensorboard", "tb"), "say what to write"),
        (("--tensorboard", "tb", "--client", "a"), "--client and --round are for --model"),
        (("--model", "a.onnx"), "a.onnx: the name of a model must end in .safetensors or .pt"),
        (("--model", "a.pt"), "its clients share no whole model; name one: synthetic-0, synthetic-1, synthetic-2"),
    ],
    ids=lambda each: "",
)  # fmt: skip
def test_what_cannot_be_exported_is_refused_and_leaves_nothing(trained, command, words, line):
    folder = trained()
    done = command("export", folder, *words, code=2)
    assert line in done.stderr
    assert not list(Path().glob("a.*"))


class Code:
    def __reduce__(self):
        return (Path("executed").write_text, ("x",))


def no_pickle(path):
    path.write_bytes(pickle.dumps({"pre.weight": Code()}))


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-50])


def another(path):
    other = model()
    with torch.no_grad():
        next(other.network.parameters()).add_(1)
    torch.save(other.network.state_dict(), path)


def in_json(**changed):
    def change(path):
        about = path.with_suffix(".json")
        about.write_text(json.dumps(json.loads(about.read_text()) | changed))

    return change


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (no_pickle, "mine.pt: it holds no state dict"),
        (cut_short, "mine.pt: damaged, or no model of mine.json"),
        (another, "mine.pt: the tensors are not those of this model: their digest is another one"),
        (lambda path: torch.save([1], path), "mine.pt: it holds no state dict"),
        (lambda path: path.unlink(), "mine.pt: cannot read it"),
        (lambda path: path.with_suffix(".json").unlink(), "mine.json: cannot read it"),
        (lambda path: path.with_suffix(".json").write_text("{"), "mine.json: Invalid JSON"),
        (in_json(num_features=3), r"mine.pt: damaged, or no model of mine.json \(Error.* size mismatch"),
        (in_json(num_features=-3), "mine.json: num_features: Input should be greater than or equal to 1"),
        (in_json(model={"name": "gim"}), 'there is no "gim"; did you mean "gin"?'),
        (in_json(model={"name": "gin", "layers": 0}), "mine.pt: model: layers: Input should be greater"),
        (
            in_json(objective={"name": "fclg", "temperature": 0}),
            "mine.pt: objective: temperature: Input should be gr",
        ),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_damaged_file_is_refused_in_a_line_and_nothing_is_executed(tmp_path, monkeypatch, damage, words):
    monkeypatch.chdir(tmp_path)
    files.save(model(), tmp_path / "mine.pt")
    damage(tmp_path / "mine.pt")
    with pytest.raises(BadInput, match=words) as refused:
        fedmpi.load_model(tmp_path / "mine.pt")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "executed").exists()


def test_a_file_is_one_client(tmp_path):
    files.save(model(), tmp_path / "mine.pt")
    with pytest.raises(BadInput, match="is one model: client and round are for run folders"):
        fedmpi.load_model(tmp_path / "mine.pt", "a")


def test_without_safetensors_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(BadInput, match=r"pip install safetensors, or use a \.pt"):
        files.save(model(), tmp_path / "mine.safetensors")

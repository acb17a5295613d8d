import dataclasses
import sys

import matplotlib
import pytest

from fedmpi.analysis import figures
from fedmpi.analysis.figures import style
from fedmpi.analysis.names import algorithm_name, dataset_name
from fedmpi.errors import BadInput


@pytest.mark.parametrize("name", figures.KINDS)
def test_every_kind_has_options_and_says_which_figure_it_is(name):
    kind = figures.load(name)
    assert kind.model_config["extra"] == "forbid" and kind.model_config["frozen"]
    assert name in ("scaling", "client-costs", "epsilon") or ", Figure" in kind.__doc__  # no paper's


def test_a_notebook_shows_a_figure_without_pyplot():
    figure, _ = style.panels(1)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BadInput, match=r"pip install 'fedmpi\[report\]'"):
        figures.load("losses")


UNKNOWN = r'^--option feild: unknown option; did you mean "field"\? \(known: field, first_round, panels'


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("loses", {}, r'no kind "loses" of figure; did you mean "losses".* gains'),
        ("losses", {"feild": 1}, UNKNOWN),
        ("losses", {"panels": "loss"}, r"^--option panels: input should be 'settings'.* \(got 'loss'\)"),
    ],
)
def test_an_unknown_kind_and_a_wrong_option_are_one_line(kind, options, words):
    with pytest.raises(BadInput, match=words):
        figures.check_options(figures.load(kind), options, "--option ")


@pytest.fixture
def runs(record):
    return [record({}, test_loss=[[1.0, 2.0], [0.5, 0.7]])]


def picture(runs, image, notes=()):
    figures.picture(figures.load("losses")(), runs, None, notes, image)


@pytest.mark.parametrize("suffix", figures.FORMATS)
def test_the_same_picture_has_the_same_bytes_whatever_the_users_style(tmp_path, runs, suffix):
    first, second = tmp_path / f"one{suffix}", tmp_path / "below" / f"two{suffix}"
    picture(runs, first)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red"}):
        picture(runs, second)
        assert matplotlib.rcParams["font.size"] == 30
    assert first.read_bytes() == second.read_bytes()
    assert len(first.read_bytes()) > 1000


def test_other_suffixes_are_refused(tmp_path):
    with pytest.raises(BadInput, match=r"must end in one of \.svg, \.pdf, \.png"):
        figures.check_image(tmp_path / "a.jpg")


def test_unfit_runs_are_refused(tmp_path, runs):
    with pytest.raises(BadInput, match="no complete run"):
        picture([], tmp_path / "a.svg")
    with pytest.raises(BadInput, match="interrupted, not complete"):
        picture([dataclasses.replace(runs[0], status="interrupted")], tmp_path / "a.svg")
    with pytest.raises(BadInput, match="a figure shows runs of one version"):
        picture([*runs, dataclasses.replace(runs[0], numerics_version=99)], tmp_path / "a.svg")
    assert not (tmp_path / "a.svg").exists()


def test_a_caption_grows_the_figure_and_stays_within_its_width():
    with style.applied():
        figure, _ = style.panels(3, columns=2, height=2.0)
        assert figure.get_size_inches().tolist() == [style.WIDTH, 4.0]
        style.add_caption(figure, "First line.")
        style.add_caption(figure, "WIDE " * 60)
        figure.draw_without_rendering()
        lines = style.caption(figure).split("\n")
        assert lines[0] == "First line."
        assert len(lines) > 3
        (placed,) = figure.texts
        assert placed.get_window_extent().x1 <= figure.bbox.x1
        assert placed.get_window_extent().y1 < min(axis.get_tightbbox().y0 for axis in figure.axes)


def test_names_are_the_papers():
    assert dataset_name("gcfl/mix") == "MIX"
    assert dataset_name("./mydata/FOO") == "FOO"
    assert algorithm_name("gcfl-plus") == "GCFL+"
    assert algorithm_name("mine") == "mine"


def test_an_algorithm_has_one_colour_and_a_second_line_of_it_other_dashes():
    alone, fedavg, again, mine, yours = style.looks(["self-train", "fedavg", "fedavg", "mine", "yours"])
    assert style.looks(["fedavg"]) == [fedavg]
    apart = style.looks(["fedcch"] * 3)
    assert len({look["color"] for look in apart}) == len({look["linestyle"] for look in apart}) == 3
    assert fedavg["color"] == again["color"] != alone["color"]
    assert fedavg["linestyle"] != again["linestyle"]
    assert len({look["color"] for look in (alone, fedavg, mine, yours)}) == 4

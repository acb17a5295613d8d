import re
from dataclasses import replace

import pytest

from fedmpi.analysis.discovery import each_run
from fedmpi.analysis.page.build import Page
from fedmpi.analysis.page.fronts import TIME, front
from fedmpi.analysis.page.settings import apart, legend, settings, unsplit
from fedmpi.cli.report import Formats, report
from fedmpi.errors import BadInput
from tests.analysis.tasks import begun


def page_of(*folders, **options):
    page = Page(**options)
    page.add(each_run(folders, []))
    return page


def settings_of(*folders):
    complaints = []
    page = Page()
    page.add(each_run(folders, complaints))
    return page.settings(complaints)


@pytest.fixture
def record(tmp_path, make_run):
    """Return a function that records runs by algorithm, one round each: a list of accuracies per seed from 1."""

    def make(by_algorithm, folder="runs", settings=None, **about):
        for name, accuracies in by_algorithm.items():
            for seed, values in enumerate(accuracies, 1):
                chosen = {"algorithm": name, **(settings or {})}
                make_run(tmp_path / folder / f"{name}-{seed}", [values], seed=seed, settings=chosen, **about)
        return tmp_path / folder

    return make


def printed(capsys, folder, **formats):
    """Return the lines of what the command prints of runs."""
    assert report([folder], formats=Formats(**formats)) == 0
    return capsys.readouterr().out.splitlines()


def table_of(html, name):
    return re.search(f'<table id="{name}".*?</table>', html, re.DOTALL).group()


def test_complete_runs_are_averaged_over_seeds_once_and_others_named(tmp_path, make_run):
    for name, seed, status, rounds in (
        ("a", 10, "complete", [[0.5, 0.6], [0.7, 0.8]]),
        ("b", 42, "complete", [[0.5, 0.6], [0.9, 0.8]]),
        ("c", 7, "diverged", [[0.5, 0.6]]),
        ("d", 10, "complete", [[0.5, 0.6], [0.7, 0.8]]),
    ):
        make_run(tmp_path / name, rounds, seed=seed, status=status)
    (setting,), left_out = settings_of(tmp_path)
    (cell,) = setting.cells
    assert (setting.heading, cell.label, list(cell.runs)) == ("PROTEINS", "FedAvg", [10, 42])
    assert cell.mean("test_accuracy") == pytest.approx(0.8)
    twice = f"{tmp_path / 'd'}: left out of the averages, the same case and seed as {tmp_path / 'a'}"
    assert left_out == [twice, f"{tmp_path / 'c'}: diverged, so in no average: made up"]


def test_a_method_with_other_clients_is_a_setting_of_its_own(tmp_path, make_run):
    make_run(tmp_path / "a", [[0.5, 0.6]])
    make_run(tmp_path / "b", [[0.5]], settings={"algorithm": "centralised"})
    found, left_out = settings_of(tmp_path)
    assert [(each.heading, [cell.label for cell in each.cells]) for each in found] == [
        ("PROTEINS, 2 clients", ["FedAvg"]),
        ("PROTEINS, 1 client", ["centralised"]),
    ]
    assert left_out == []


def test_algorithms_are_told_apart_on_one_page(tmp_path, make_run):
    from fedmpi.registry.algorithms import ALGORITHMS

    own = [name for name, kind in ALGORITHMS.items() if kind.__module__.startswith("fedmpi.")]
    for name in own:
        make_run(tmp_path / name, [[0.5, 0.6]], settings={"algorithm": name})
    (setting,), _ = settings_of(tmp_path)
    assert len({(cell.colour, cell.dash) for cell in setting.cells}) == len(own) >= 22


def test_settings_are_named_by_their_model_where_a_dataset_has_several(tmp_path, make_run):
    for name, dropout in (("gcn", 0.3), ("gat", 0.3), ("gcn", 0.5)):
        model = {"name": f"fedgraphnn/{name}", "dropout": dropout}
        make_run(tmp_path / f"{name}-{dropout}", [[0.5, 0.6]], settings={"model": model})
    found, _ = settings_of(tmp_path)
    headings = {each.heading.removeprefix("PROTEINS, fedgraphnn/") for each in found}
    assert headings == {"gat", "gcn, dropout = 0.3", "gcn, dropout = 0.5"}


@pytest.mark.parametrize(
    ("name", "title", "values", "best", "way"),
    [
        ("rmse", "RMSE", (0.7, 0.8), "0.7000 (lower is better)", "lower"),
        ("roc_auc", "ROC-AUC", (0.8, 0.7), "0.8000", "higher"),
    ],
)
def test_a_pooled_score_is_shown_with_its_direction_whoever_the_clients_are(
    name, title, values, best, way, tmp_path, make_scored
):
    make_scored(tmp_path / "a", name, [0.9, values[0]])
    make_scored(tmp_path / "b", name, [0.6, values[1]], settings={"algorithm": "centralised"})
    page = page_of(tmp_path)
    page.digests[1] = replace(page.digests[1], clients=("all",))
    html = page.html("page", [])
    assert page.settings([])[1] == []
    rows = table_of(html, "cells-0")
    assert f"by {title}, {way} is better</caption>" in rows
    leading = re.findall(r'class="[^"]*best"[^>]*>([0-9.]+)<', rows)
    assert leading[0] == best[:6]
    assert f"has the best test {title} in the last round, {best}. " in html.replace("</li>", " ")
    assert "Against FedAvg one seed, so undecided: centralised." in html
    assert "in no table by client and in no gain" in html
    assert 'id="clients-0"' not in html and 'id="gains"' not in html
    assert "BBBP, 1 or 2 clients" in html


def test_one_algorithm_leads_nobody_and_those_that_tie_as_printed_share_the_lead(record):
    alone = page_of(record({"fedavg": [[0.7, 0.8]]})).html("page", [])
    assert "FedAvg</strong> has a test accuracy of 75.00 % in the last round." in alone
    html = page_of(record({"fedprox": [[0.80004, 0.7]]})).html("page", [])
    assert (
        "<strong>FedAvg</strong> and <strong>FedProx</strong> tie for the best test accuracy in the last "
        "round, 75.00 %.</li>"
    ) in html
    assert "Against FedAvg one seed, so undecided: FedProx." in html
    assert "Best by client: FedAvg on 1, FedProx on 1 of 2 clients." in html
    assert table_of(html, "cells-0").count("★") == 4  # of two algorithms, by two rules


def test_who_has_fewer_seeds_than_others_does_not_lead(record):
    html = page_of(record({"fedavg": [[0.7, 0.8]] * 2, "fedprox": [[0.9, 0.9]]})).html("page", [])
    assert "<strong>FedAvg</strong> has the best test accuracy in the last round, 75.00" in html
    assert "90.00 (1 of 2 seeds)" in html and table_of(html, "cells-0").count("★") == 2


def test_who_is_not_better_than_a_constant_prediction_is_named(record):
    scores = {"fedavg": [[0.9, 0.8]], "fedprox": [[0.7, 0.8]], "self-train": [[0.5, 0.6]]}
    folder = record(scores, provenance={"constants": {"accuracy": [0.7, 0.8]}})
    said = "The same prediction for every example of a client would score 75.00 %."
    html = page_of(folder).html("page", [])
    assert f"{said} FedProx and self-train are not better than that." in html


def test_the_title_is_what_the_runs_are_of_and_never_a_path(tmp_path, make_run):
    for seed, suite in enumerate(("mine/one", "mine/two")):
        make_run(tmp_path / "here" / suite, [[0.7]], seed=seed, settings={"suite": suite})
    make_run(tmp_path / "nameless", [[0.7]])
    for paths, title in (
        ([tmp_path / "here"], "mine/one, mine/two"),
        ([tmp_path / "here" / "mine" / "one"], "mine/one"),
        ([tmp_path / "nameless"], "1 run"),
    ):
        assert report(paths, formats=Formats(html=tmp_path / "page.html")) == 0
        assert f"<h1>{title}</h1>" in (tmp_path / "page.html").read_text()


def test_who_leads_by_its_own_seeds_may_be_behind_over_those_of_both(record):
    html = page_of(record({"fedavg": [[0.7]], "fedprox": [[0.6], [0.9]]})).html("page", [])
    assert "<strong>FedProx</strong> has the best test accuracy" in html
    assert "%, -10.00 points against FedAvg: one pair only." in html


def test_all_columns_or_chosen_ones_as_markdown_and_latex(record, capsys):
    folder = record({"fedavg": [[0.7, 0.8], [0.9, 0.8]]})
    row = next(line for line in printed(capsys, folder, markdown=True) if "FedAvg" in line)
    # mean 0.8, deviation 0.0707 over two seeds: 12.706 * 0.0707 / sqrt(2) = 0.6353
    score = "80.00 ± 63.53"
    assert row.startswith(f"| PROTEINS | FedAvg | {score} | {score} | {score} | 75.00 | 1 | 2 |")
    lines = printed(capsys, folder, latex=True, columns="all")
    assert r"test accuracy \%, last round" in lines[2]
    tex = score.replace("±", r"$\pm$")
    assert rf"PROTEINS & FedAvg & {tex} & {tex} & {tex} & 75.00 & 1 & 2 & 1.000 & 1.0 \\" in lines
    lines = printed(capsys, folder, latex=True, columns="algorithm, worst client,client MB")
    assert lines[2] == r"algorithm & worst client & client MB \\"
    with pytest.raises(BadInput, match="--columns: no 'cost'; there are dataset; algorithm;"):
        report([folder], formats=Formats(latex=True, columns="cost"))
    with pytest.raises(BadInput, match="--columns is for --markdown and --latex"):
        report([folder], formats=Formats(columns="all"))


def test_latex_is_the_table_of_a_paper(tmp_path, record, capsys):
    scores = [[[0.601], [0.602]], [[0.701], [0.702]]]
    for dataset, (fedavg, fedprox) in (("PROTEINS", scores), ("NCI1", scores[::-1])):
        about = {"dataset": {"name": dataset}}
        record({"fedavg": fedavg, "fedprox": fedprox}, f"runs/{dataset}", about)
    lines = printed(capsys, tmp_path / "runs", latex=True)
    assert lines[0] == r"\begin{tabular}{lrrr}"
    assert lines[2] == r"algorithm & NCI1 & PROTEINS & average rank \\"
    assert lines[4] == r"FedAvg & \textbf{70.15 $\pm$ 0.64} & 60.15 $\pm$ 0.64 & 1.50 \\"
    assert lines[5] == r"FedProx & 60.15 $\pm$ 0.64 & \textbf{70.15 $\pm$ 0.64} & 1.50 \\"
    assert "Bold: the best of a dataset; of equal ones the reference." in lines[-1]
    lines = printed(capsys, tmp_path / "runs", markdown=True, columns="paper")
    assert "| FedAvg | **70.15 ± 0.64** | 60.15 ± 0.64 | 1.50 |" in lines


def test_latex_of_one_dataset_has_leads(record, capsys):
    folder = record({"fedavg": [[0.60], [0.61], [0.62]], "fedprox": [[0.70], [0.711], [0.722]]})
    lines = printed(capsys, folder, latex=True)
    assert lines[2] == r"algorithm & test accuracy \%, last round & lead over FedAvg \\"
    assert lines[4] == r"FedAvg & 61.00 $\pm$ 2.48 & - \\"
    assert lines[5] == r"FedProx & \textbf{71.10 $\pm$ 2.73} & \textbf{+10.10 $\pm$ 0.25} \\"
    assert "last round on PROTEINS, higher is better" in lines[-1]


def test_markdown_has_runs_by_their_score_in_a_table_of_their_own(tmp_path, make_run, make_scored, capsys):
    make_run(tmp_path / "a", [[0.7, 0.8]])
    for seed in (1, 2):
        make_scored(tmp_path / f"b{seed}", "rmse", [2.0, 1.0, 1.5], val=[2, 3, 4], seed=seed, constant=4.0)
    blocks = "\n".join(printed(capsys, tmp_path, markdown=True)).split("\n\n")
    first, second = (block for block in blocks if block.startswith("| dataset"))
    assert "BBBP" not in first and "test accuracy" not in second and "nan" not in second
    assert "| test RMSE, last round | best by validation | as published | constant | test MAE |" in second
    scores = "1.5000 ± 0.0000 | 2.0000 ± 0.0000 | 1.0000 ± 0.0000 | 4.0000 | 0.7500 ± 0.0000"
    assert f"| BBBP | FedAvg | {scores} |" in second


def test_what_is_left_out_is_named_in_the_page_and_by_the_exit_code(tmp_path, make_run, capsys):
    make_run(tmp_path / "runs" / "a", [[0.7, 0.8]])
    make_run(tmp_path / "runs" / "b", [[0.7, 0.8]], seed=42, status="interrupted")
    (make_run(tmp_path / "runs" / "c", [[0.7, 0.8]], seed=43) / "run.h5").write_text("no record")
    begun(tmp_path / "runs" / "d")
    (tmp_path / "empty").mkdir()
    paths = [tmp_path / "runs", tmp_path / "empty"]
    page = tmp_path / "page.html"
    assert report(paths, formats=Formats(html=page)) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 5 and lines[0].startswith("Page: ")
    for words in ("c/run.h5: damaged or no HDF5 file", "empty: no run", "b: interrupted, so in no average"):
        assert words in page.read_text() and words in "\n".join(lines)
    assert report([tmp_path / "none"], formats=Formats(html=page)) == 2
    assert "1 left out" in page.read_text()
    with pytest.raises(BadInput, match="cannot write it"):
        report(paths, formats=Formats(html=tmp_path.__class__("/proc/none/page.html")))


def test_the_page_is_whole_in_itself_escapes_names_and_says_what_columns_mean(tmp_path, make_run):
    make_run(tmp_path / "<b>&", [[0.7, 0.8]] * 3)
    report([tmp_path / "<b>&"], formats=Formats(html=tmp_path / "page.html"))
    text = (tmp_path / "page.html").read_text()
    assert not re.search(r'(?:src|href)="(?!#|data:)', text)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "&lt;b&gt;&amp;" in text and "<b>" not in text
    assert "<dt>worst client</dt><dd>worst accuracy of a client, mean over seeds</dd>" in text
    headings = re.findall(r'"col"(?: class="(.*?)")?><button.*?>(.*?)</b', text)
    classes = {name: kinds for kinds, name in headings}
    assert (classes["algorithm"], classes["worst client"], classes["seeds"]) == ("", "number", "number")


def leads_of(record, accuracies, folder="runs"):
    """Return the setting of runs of FedAvg, which has 0.7, and of others by name: an accuracy per seed."""
    every = {"fedavg": [0.7] * 3, **accuracies}
    scores = {name: [[each] for each in values] for name, values in every.items()}
    (found,), _ = settings_of(record(scores, folder, {"dataset": {"name": folder.upper()}}))
    return found


def test_settings_that_part_methods_are_named_and_may_be_compared_across(record):
    for name, lr, scores in (("fedavg", 0.001, (0.5, 0.5, 0.5)), ("fedprox", 0.005, (0.61, 0.62, 0.63))):
        of_lr = {"optimizer": {"name": "adam", "lr": lr}}
        folder = record({name: [[score, score] for score in scores]}, settings=of_lr)
    found, _ = settings_of(folder)
    assert [each.heading for each in found] == ["PROTEINS, lr = 0.001", "PROTEINS, lr = 0.005"]
    line = "PROTEINS: no lead where optimizer.lr differs; --across optimizer.lr compares them"
    assert apart(found) == [line]
    page = page_of(folder, across=["optimizer.lr"])
    (setting,), _ = page.settings([])
    ((cell, lead),) = setting.leads.items()
    assert (cell.label, lead.verdict) == ("FedProx, lr = 0.005", "better")
    assert apart([setting]) == []
    with pytest.raises(BadInput, match="--across lr: no run has this setting"):
        settings(page.digests, [], None, ["lr"])


def test_named_tables_may_be_compared_across_and_some_runs_have_none(record):
    for name, kind in {"none": {}, "few": {"compression": {"name": "top-k", "share": 0.1}}}.items():
        folder = record({"fedavg": [[0.5]]}, f"runs/{name}", settings=kind).parent
    (setting,), _ = page_of(folder, across=["compression"]).settings([])
    assert [cell.label for cell in setting.cells] == ["FedAvg, top-k", "FedAvg"]
    cells = [(cell.colour, cell.dash) for cell in setting.cells]
    assert cells == [(0, 0), (1, 0)]  # of one algorithm each has a colour


def test_numbered_settings_are_said(tmp_path, make_run):
    long = {f"made_up_setting_{letter}": 1 for letter in "abcdef"}
    for number, change in enumerate(({}, {"made_up_setting_c": 2}, dict.fromkeys(long, 3))):
        make_run(tmp_path / str(number), [[0.5, 0.6]], settings={**long, **change})
    found, _ = settings_of(tmp_path)
    assert [each.heading for each in found] == [f"PROTEINS, setting {place}" for place in (1, 2, 3)]
    first, second, third = legend(found)
    assert first == "setting 1 of PROTEINS: what most have"
    assert second == "setting 2 of PROTEINS: made_up_setting_c = 2"
    assert third.count(" = 3") == 6


def test_settings_of_one_dataset_are_not_ranked_as_datasets(tmp_path, record):
    for lr in (0.1, 0.2):
        settings = {"optimizer": {"name": "adam", "lr": lr}}
        record({name: [[0.5, 0.6]] for name in ("fedavg", "fedprox", "ditto")}, f"runs/{lr}", settings)
    html = page_of(tmp_path / "runs").html("page", [])
    assert "settings of one dataset are no independent datasets" in html
    assert "Friedman" not in html


def test_a_lead_is_decided_after_holm_over_the_leads_of_its_dataset(record):
    ahead = {"fedprox": [0.718, 0.720, 0.735]}  # p = 0.046 alone
    alone = leads_of(record, ahead, "alone")
    assert [lead.verdict for lead in alone.leads.values()] == ["better"]
    two = leads_of(record, {**ahead, "self-train": [0.6, 0.7, 0.8]}, "two")
    verdicts = {cell.label: lead.verdict for cell, lead in two.leads.items()}
    assert verdicts == {"FedProx": "undecided", "self-train": "undecided"}


def test_equal_runs_are_named_once_and_share_their_rank(tmp_path, record):
    equal = {"fedprox": [0.7] * 3, "gcfl": [0.7] * 3, "self-train": [0.6, 0.61, 0.59]}
    for folder in ("a", "b"):
        found = leads_of(record, equal, folder)
    assert unsplit(found.cells) == ["GCFL: its groups never split, so all clients are one"]
    html = page_of(tmp_path).html("page", [])
    said = "FedProx equals FedAvg in every round and seed; GCFL never split, so it equals FedAvg."
    assert html.count(f"No difference: {said}") == 2
    assert html.count("<strong>FedAvg</strong> has the best") == 2
    matrix = table_of(html, "matrix-0")
    other = page_of(tmp_path, reference="fedprox").html("page", [])
    assert other.count("No difference: FedAvg and GCFL equal FedProx in every round and seed.") == 2
    assert matrix.count("★") == 2 and matrix.count("▼") == 2
    assert re.findall(r">([0-9.]+)</td></tr>", matrix) == ["2.00", "2.00", "2.00", "4.00"]
    assert "differ by less than 3.32 are not told apart" in html  # 2.569 sqrt(4 5 / (6 2))


def test_equal_scores_of_the_last_round_are_no_equal_runs(tmp_path, make_run):
    """FedProx ends where FedAvg ends, and is better in an earlier round, which validation chooses."""
    for name, before in (("fedavg", 0.6), ("fedprox", 0.9)):
        for seed in (1, 2, 3):
            chosen = {"algorithm": name}
            make_run(tmp_path / f"{name}-{seed}", [[before], [0.7]], seed=seed, settings=chosen)
    page = page_of(tmp_path)
    html = page.html("page", [])
    assert "Against FedAvg the same score in the last round: FedProx." in html
    assert "No difference" not in html
    (setting,), _ = page.settings([])
    assert [lead.verdict for lead in setting.leads.values()] == ["same last score"]


def test_the_front_holds_what_no_other_beats(record):
    for name, accuracy, slowness in (("fedavg", 0.7, 1), ("gcfl", 0.8, 2), ("fedprox", 0.7, 3)):
        folder = record({name: [[accuracy]]}, slowness=slowness)
    (setting,), _ = settings_of(folder)
    assert [cell.label for cell in front(setting.cells, TIME)] == ["FedAvg", "GCFL"]


def test_costs_to_a_target_are_those_up_to_its_first_round_on_validation_data(tmp_path, make_run):
    make_run(tmp_path / "a", [[0.5], [0.6], [0.7]])
    for name, first, seed in (("fedprox", 0.7, 10), ("gcfl", 0.7, 10), ("gcfl", 0.6, 11)):
        chosen = {"algorithm": name}
        make_run(tmp_path / f"{name}-{seed}", [[first], [first], [0.6]], seed=seed, settings=chosen)
    page = page_of(tmp_path)
    costs = table_of(page.html("page", []), "costs-0")
    rows = [re.findall(r">([^<>]+)</td>", row)[-4:] for row in costs.split("</tr>")[1:-1]]
    # rounds take 1, 2 and 3 s and 1.5 MB; FedAvg's last validation accuracy is the target
    reached = [["3", "6.00 s", "4.50 MB"], ["1", "1.00 s", "1.50 MB"], ["1 of 2 runs"] * 3]
    assert rows == [["70.00", *each] for each in reached]


def test_secure_sums_have_a_picture_of_their_steps(fedmpi, tiny_suite, tmp_path):
    for reduction in ("fixed32", "secagg"):
        options = ("--case", "0", "--set", f"reduction={reduction}", "--out", reduction)
        assert fedmpi("run", tiny_suite, *options).returncode == 0
        html = page_of(tmp_path / reduction).html("page", [])
        assert ("secure sums by step" in html) == (reduction == "secagg")


def test_single_runs_have_pictures_as_far_as_there_is_room(record, monkeypatch):
    page = page_of(record({"fedavg": [[0.5, 0.6]] * 4}))
    whole = page.html("page", [])
    assert whole.count("<template>") == 3 and "have no pictures" not in whole
    for room, left_out in ((len(whole.encode()) - 100, "fedavg-4"), (0, "fedavg-2, fedavg-3, fedavg-4")):
        monkeypatch.setattr("fedmpi.analysis.page.build._LARGEST", room)
        smaller = page.html("page", [])
        assert f"have no pictures here: {left_out}." in smaller
        assert not room or len(smaller.encode()) <= room


def test_pages_of_a_run_on_nodes_and_of_a_big_suite_are_below_3_mb(tmp_path, make_run):
    page = page_of(make_run(tmp_path / "nodes", [[0.5 + k / 1000] * 100 for k in range(50)]))
    assert len(page.html("page", []).encode()) < 3e6
    page = page_of(make_run(tmp_path / "many", [[0.5 + k / 1000] * 10 for k in range(200)]))
    (digest,), (detail,) = page.digests, page.details
    names = [(data, str(number)) for data in "ABCDEFGHIJ" for number in range(20)]
    of_each = ({"dataset": {"name": data}, "algorithm": {"name": name}} for data, name in names)
    page.digests = [replace(digest, config=digest.config | about) for about in of_each]
    page.details = [("-".join(pair), detail[1]) for pair in names]
    html = page.html("page", [])
    assert len(html.encode()) < 3e6 and "have no pictures here: " in html

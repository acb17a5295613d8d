"""Plans in numbers worked out by hand."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from fedmpi.config.suite import read
from fedmpi.datasets.names import family_of
from fedmpi.errors import BadInput
from fedmpi.jobs import estimate, plan, systems
from fedmpi.jobs.cases import Item, num_clients, survey
from fedmpi.jobs.estimate import Estimate, _of_egos, round_gflop
from tests.cli.refusals import refused
from tests.started import sets

MADE = '{ name = "synthetic", synthetic = { domains = 3, graphs = 40 } }'
SUITE = f"""
name = "mine"
[case]
dataset = {MADE}
partition = "per-dataset"
rounds = 100
[matrix]
seed = [1, 2, 3, 4]
algorithm = ["fedavg", "gcfl"]
"""


def suite_on(dataset, partition="per-dataset"):
    """Return the suite above on another dataset, with another partition."""
    part = partition if partition.startswith("{") else f'"{partition}"'
    return SUITE.replace(MADE, f'"{dataset}"').replace('"per-dataset"', part)


def with_setting(line):
    """Return the suite above with one more setting."""
    return SUITE.replace("rounds = 100", f"rounds = 100\n{line}")


@pytest.fixture
def make(tmp_path, system):
    """Plan the suite above with changes on the plain system: four cores a node, three tasks at once."""

    def planned(text=SUITE, change=("", ""), **wishes):
        (tmp_path / "mine.toml").write_text(text)
        system.write_text(system.read_text().replace(*change))
        items = survey(read(tmp_path / "mine.toml"), tmp_path / "runs")
        loaded = systems.load(str(system))
        return plan.make(items, loaded, estimate.Paces(items), plan.Wishes(**wishes))

    return planned


def test_short_cases_share_tasks(make):
    (batch,) = make().batches
    assert (batch.ranks, batch.nodes, batch.threads, batch.gpus) == (4, 1, 1, 0)  # three clients and a server
    assert len(batch.items) == 8
    # About 110 s each by the model: 880 s in all are worth two tasks, but three may run at once.
    assert (batch.tasks, batch.at_once) == (3, 3)
    assert batch.task_seconds()[0] == pytest.approx(3 * 110, rel=0.05)
    assert batch.minutes == math.ceil(1.5 * batch.task_seconds()[0] / 60) + 5


def test_a_server_that_hosts_clients_needs_no_rank_of_its_own(make):
    (batch,) = make(with_setting('server = "shared"')).batches
    assert (batch.ranks, batch.idle()) == (3, [])
    (batch,) = make(with_setting('server = "shared"'), ranks=4).batches
    assert len(batch.idle()) == 8


def test_task_t_of_T_has_the_cases_t_and_t_plus_T(make):
    (batch,) = make(tasks=3).batches
    order = [item.number for item in batch.items]
    assert [order[task::3] for task in range(3)] == [[0, 3, 6], [1, 4, 7], [2, 5]]


def test_an_array_ends_with_its_last_task(make):
    (batch,) = make(tasks=4, at_once=3).batches
    one = Estimate(60.0, "model")
    # Tasks of two cases each: 120, 120, 120 and 120 s, three at a time, so that the fourth begins at 120.
    assert replace(batch, estimates=(one,) * 8).end_seconds() == 240
    # 600, 120, 120 and 120 s: the fourth runs beside the first.
    long = Estimate(540.0, "model")
    assert replace(batch, estimates=(long, *(one,) * 7)).end_seconds() == 600
    unknown = Estimate(math.nan, "unknown")
    assert math.isnan(replace(batch, estimates=(unknown, *(one,) * 7)).end_seconds())


def test_the_plan_says_its_hours_and_which_ranks_have_no_work(fedmpi, tmp_path, system):
    (tmp_path / "mine.toml").write_text(SUITE)
    system.write_text(f"{system.read_text()}gflops = 1e6\n")
    command = ("jobs", "plan", "mine.toml", "--system", system)
    usual = fedmpi(*command).stdout
    # Eight cases of 110 s on four ranks, which are a node.
    assert "All cases: 0.978 core-hours (ranks x threads), 0.244 node-hours" in usual
    assert "Ranks without work" not in usual and "Unknown" not in usual
    words = "Ranks without work: 8 of 8 cases on 6 ranks have fewer clients, such as seed1-fedavg with 3."
    assert words in fedmpi(*command, "--ranks", 6).stdout


def test_a_question_mark_is_explained(fedmpi, tmp_path, system):
    text = 'name = "two"\n[case]\npartition = "iid"\n[matrix]\ndataset = ["PROTEINS", "OTHER"]\n'
    (tmp_path / "mine.toml").write_text(text)
    shown = fedmpi("jobs", "plan", "mine.toml", "--system", system).stdout
    assert "model, unknown" in shown and "?" in shown.split("\n\n")[0]
    assert "Unknown, ?: 1 cases, left out of the hours." in shown


def test_more_ranks_than_a_node_has_cores_take_more_nodes(make):
    assert make(ranks=5).batches[0].nodes == 2
    with pytest.raises(BadInput, match=r"9 ranks x 1 threads take 3 nodes of 4 cores, the system allows 2"):
        make(ranks=9)


def test_cases_of_different_shape_are_batches_of_their_own(make):
    rule = '[[where]]\nwhen = { algorithm = "gcfl" }\nset = { threads = 2 }\n'
    one, two = make(SUITE + rule).batches
    assert (one.ranks, one.threads, one.nodes) == (4, 1, 1)
    assert (two.ranks, two.threads, two.nodes) == (2, 2, 1)  # two ranks of two threads fill a node


MORE_SEEDS = SUITE.replace("3, 4]", "3, 4, 5, 6, 7, 8]")


@pytest.mark.parametrize(
    ("wishes", "text", "words"),
    [
        ({"minutes": 61}, SUITE, "--minutes 61: the system allows 60"),
        ({"tasks": 11}, MORE_SEEDS, "--tasks 11: the system allows arrays of 10"),
        ({"tasks": 1, "minutes": 2}, SUITE, "takes about 15 minutes, longer than 3 attempts of 2 minutes"),
        ({}, with_setting('device = "cuda"'), "this system has no GPUs"),
        ({}, with_setting("threads = 8"), "threads = 8, but a node of this system"),
    ],
    ids=range(5),
)
def test_more_than_the_limits_is_refused(make, wishes, text, words):
    with pytest.raises(BadInput, match=words):
        make(text, **wishes)


def test_a_long_task_is_cut_at_the_limit_and_goes_on(make):
    (batch,) = make(SUITE.replace("rounds = 100", "rounds = 4000"), tasks=8).batches
    assert batch.task_seconds()[0] > 60 * 60  # longer than one attempt
    assert batch.minutes == 60


def test_gpus_are_asked_for_where_cases_want_them(make):
    text = with_setting('device = "cuda"')
    (batch,) = make(text, change=("cores = 4", "cores = 4\ngpus = 8")).batches
    assert batch.gpus == 4  # no more than ranks


def test_an_unknown_dataset_has_no_estimate_and_asks_for_the_longest_time(make):
    (batch,) = make(suite_on("OTHER")).batches
    assert math.isnan(batch.estimates[0].seconds)
    assert batch.minutes == 60


@pytest.mark.parametrize(("name", "nodes"), [("CiteSeer", 19), ("DBLP", 84), ("Cora", 80), ("PubMed", 59)])
def test_ego_networks_are_about_of_the_sizes_of_table_8(name, nodes, here):
    dataset = f'dataset = {{ name = "CitationFull-{name}", egos = {{ number = 1000, hops = 2 }} }}'
    settings = f'model = "gcn"\npartition = {{ name = "fedgraphnn", clients = 10 }}\n{dataset}'
    case = item_of(f'name = "one"\n[case]\n{settings}\n').case
    facts = family_of(f"CitationFull-{name}").facts[f"CitationFull-{name}"]
    counts = [_of_egos(case.dataset.egos, facts, share) for share in (0.8, 0.2)]
    assert [each.graphs for each in counts] == [800, 200]
    assert sum(each.nodes for each in counts) == pytest.approx(1000 * nodes, rel=0.25)
    assert round_gflop(case) > 0


def item_of(text, **facts):
    Path("one.toml").write_text(text)
    item = survey(read(Path("one.toml")), Path("nowhere"))[0]
    return Item(item.number, item.case, item.folder, **facts)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_centralised_case_takes_the_ranks_of_one_client(here):
    settings = 'partition = { name = "iid", clients = 8 }\ndataset = { synthetic = { domains = 1 } }'
    item = item_of(f'name = "one"\n[case]\nalgorithm = "centralised"\n{settings}\n')
    assert num_clients(item.case) == 1


def test_a_measured_pace_is_scaled_by_the_busiest_ranks_clients(here):
    item = item_of(SUITE, status="interrupted", rounds=40, pace=0.5, ranks=2)
    model = systems.Model(start_seconds=7.0)
    assert num_clients(item.case) == 3
    # 60 rounds are left; on 2 ranks one hosts three clients, on 4 ranks one each.
    assert estimate.Paces([item]).estimate(item, 2, model) == Estimate(7.0 + 60 * 0.5, "record")
    assert estimate.Paces([item]).estimate(item, 4, model) == Estimate(7.0 + 60 * 0.5 / 3, "record")


def test_a_pilot_that_differs_in_seed_rounds_checkpoints_and_link_is_a_like_case(fedmpi, tiny_suite, system):
    command = ("jobs", "plan", tiny_suite, "--system", system)
    assert "Estimated from records: 0 of 3 cases." in fedmpi(*command).stdout
    changes = ("seed=9", "rounds=3", "checkpoint_seconds=5", "link.megabits=10")
    fedmpi("run", tiny_suite, "--out", "earlier", *sets(*changes), "--case", "fedavg")
    command = (*command, "--records", "earlier")
    assert "Estimated from records: 1 of 3 cases." in fedmpi(*command).stdout
    (batch,) = json.loads(fedmpi(*command, "--json").stdout)
    assert [case["origin"] for case in batch["cases"]] == ["like ones", "model", "model"]


def test_a_folder_without_records_is_refused(fedmpi, tiny_suite, system):
    done = fedmpi("jobs", "plan", tiny_suite, "--system", system, "--records", "earlyer")
    refused(done, "--records earlyer: no run (run.h5) in it or below")


def test_the_models_flop_are_those_of_the_known_counts(here):
    item = item_of(suite_on("PROTEINS", '{ name = "chunks", clients = 10 }'))
    # Recorded by a run: 5.119e9 model_flops and 0.476e9 evaluation_flops in every round.
    assert estimate.round_gflop(item.case) == pytest.approx(5.119 + 0.476, rel=0.02)


@pytest.mark.parametrize(
    ("algorithm", "trained", "evaluated"),
    [
        ("ditto", 2, 1),
        ("apfl", 2, 1),
        ("fedrep", 10 + 1, 1),
        ("pfedme", 5, 1),
        ("q-fedavg", 1, 1 + 0.8 / 0.2),
    ],
)
def test_personal_models_and_losses_at_the_received_model_are_counted(here, algorithm, trained, evaluated):
    text = suite_on("PROTEINS", '{ name = "chunks", clients = 10 }')
    plain = item_of(text).case
    other = item_of(text.replace('["fedavg", "gcfl"]', f'["{algorithm}"]')).case
    assert other.algorithm.name == algorithm
    forward = 0.476
    training = estimate.round_gflop(plain) - forward
    assert estimate.round_gflop(other) == pytest.approx(trained * training + evaluated * forward, rel=0.02)


def test_both_passes_over_a_part_of_a_graph_take_all_of_its_nodes(here):
    text = suite_on("Cora", '{ name = "iid", clients = 10 }')
    gflop = estimate.round_gflop(item_of(text).case)
    # GIN of 1,433 columns, 64 wide, three layers: products of all 2,708 nodes, once forward, twice backward
    first, layers = 2 * 2708 * 1433 * 64, 3 * 2 * 2 * 2708 * 64 * 64
    assert gflop * 1e9 == pytest.approx(2 * first + 3 * layers + first + layers, rel=0.05)


def test_the_phase_in_which_clients_mend_their_parts_is_counted_once(here):
    text = suite_on("Cora", '{ name = "louvain", clients = 10, parts = "20/40/40" }')
    plain = item_of(text)
    mended = item_of(text.replace('["fedavg", "gcfl"]', '["fedsage-plus"]'))
    assert estimate.preparation_gflop(plain.case) == 0
    # Recorded by a run: 1,613e9 model_flops more in the first round than in the second.
    assert estimate.preparation_gflop(mended.case) == pytest.approx(1613, rel=0.25)
    model = systems.Model(start_seconds=7.0, round_seconds=0.0, gflops=10.0)
    times = [estimate.Paces([]).estimate(item, 1, model).seconds for item in (plain, mended)]
    assert times[1] - times[0] == pytest.approx(estimate.preparation_gflop(mended.case) / 10)


def test_a_mode_says_on_how_many_ranks_each_case_runs(make, tmp_path):
    text = SUITE.replace('name = "mine"', 'name = "mine"\nmode = "strong"\nranks = [1, 4]')
    one, four = make(text).batches
    assert (one.ranks, four.ranks) == (1, 4)
    assert one.items[0].name == "ranks1/seed1-fedavg"
    assert four.items[0].folder == (tmp_path / "runs" / "ranks4" / "seed1-fedavg")
    (only,) = make(text, ranks=4).batches
    assert [item.name for item in only.items] == [item.name for item in four.items]

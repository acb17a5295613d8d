import pytest

from fedmpi.analysis.figures.style import caption
from fedmpi.errors import BadInput

SELF = {"algorithm": {"name": "self-train"}}


def overlapped(settings, overlap):
    return {**settings, "partition": {"name": "chunks", "clients": 10, "overlap": overlap}}


def points(picture):
    """Return the heights of the clients' dots in the first panel, violin by violin."""
    drawn = [artist for artist in picture.axes[0].collections if artist.get_gid() == "clients"]
    return [[round(float(height), 6) for _, height in artist.get_offsets()] for artist in drawn]


def labels(axis):
    return [label.get_text() for label in axis.get_xticklabels()]


def test_a_gain_is_a_clients_mean_over_seeds_minus_self_trains(record, draw):
    alone, fedavg = ([0.5, 0.6], [0.7, 0.6]), ([0.8, 0.5], [0.8, 0.4], [0.0, 0.0])
    runs = [record({**SELF, "seed": n}, test_accuracy=[[0.9] * 2, each]) for n, each in enumerate(alone, 1)]
    runs += [record({"seed": n}, test_accuracy=[[0.1] * 2] * 2 + [each]) for n, each in enumerate(fedavg, 1)]
    picture = draw("gains", runs)
    (axis,) = picture.axes
    assert points(picture) == [[20.0, -15.0]]
    (bar,) = [artist for artist in axis.collections if artist.get_gid() == "mean"]
    assert bar.get_segments()[0][0][1] == pytest.approx(2.5)
    assert labels(axis) == ["FedAvg"]
    assert axis.get_title(loc="left") == "PROTEINS, 2 clients"
    assert "self-train for 2 rounds, means over seeds 1, 2." in caption(picture)


def test_halves_are_those_of_the_setting_each_against_its_own_self_train(record, draw):
    scores = {True: ([0.5, 0.5], [0.6, 0.7]), False: ([0.4, 0.4], [0.4, 0.3])}
    runs = [
        record(overlapped(settings, overlap), test_accuracy=[each])
        for overlap, both in scores.items()
        for settings, each in zip((SELF, {}), both, strict=True)
    ]
    picture = draw("gains", runs, split="partition.overlap", sides=[False, True], labels=["apart", "shared"])
    (axis,) = picture.axes
    assert points(picture) == [[10.0, 20.0], [0.0, -10.0]]
    right, left = [artist for artist in axis.collections if artist.get_gid() == "clients"]
    assert max(left.get_offsets()[:, 0]) < 0 < min(right.get_offsets()[:, 0])
    assert [text.get_text() for text in picture.legends[0].get_texts()] == ["apart", "shared"]


def test_a_violin_per_dataset_with_halves_of_one_algorithm(record, draw):
    def plus(dataset, standardise):
        algorithm = {"name": "gcfl-plus", "standardise": standardise}
        return {"dataset": {"name": dataset}, "algorithm": algorithm}

    runs = []
    for name in ("PROTEINS", "gcfl/mix"):
        of_each = ({**SELF, "dataset": {"name": name}}, plus(name, False), plus(name, True))
        scores = ([0.5, 0.5], [0.6, 0.7], [0.5, 0.4])
        runs += [record(own, test_accuracy=[each]) for own, each in zip(of_each, scores, strict=True)]
    options = {"by": "dataset", "split": "algorithm.standardise", "sides": [False, True]}
    picture = draw("gains", runs, **options)
    (axis,) = picture.axes
    assert points(picture) == [[10.0, 20.0], [0.0, -10.0]] * 2
    assert labels(axis) == ["PROTEINS\nn = 2", "MIX\nn = 2"]
    assert axis.get_title(loc="left") == "GCFL+"


def test_as_published_is_a_maximum_at_splits_and_says_so(record, draw):
    split = [[0, 0], [0, 1]]
    gcfl = {"algorithm": {"name": "gcfl"}}
    runs = [record(SELF, test_accuracy=[[0.5, 0.5]])]
    runs.append(record(gcfl, test_accuracy=[[0.9, 0.4], [0.6, 0.6]], group=split))
    assert points(draw("gains", runs)) == [[10.0, 10.0]]
    picture = draw("gains", runs, rule="as published")
    assert points(picture) == [[40.0, 10.0]]
    assert "as published: chosen on test data" in caption(picture)


def test_equal_gains_have_dots_and_no_density_and_a_run_on_neither_side_is_refused(record, draw):
    runs = [record(SELF, test_accuracy=[[0.5, 0.5]]), record({}, test_accuracy=[[0.6, 0.6]])]
    picture = draw("gains", runs)
    assert points(picture) == [[10.0, 10.0]]
    assert [artist.get_gid() for artist in picture.axes[0].collections] == ["clients", "mean"]
    refused = r"algorithm\.standardise is to be False or True, but in .* no such"
    with pytest.raises(BadInput, match=refused):
        draw("gains", runs, split="algorithm.standardise", sides=[False, True])


def test_a_cell_without_self_train_is_named(record, draw):
    runs = [
        record(SELF, test_accuracy=[[0.5, 0.5]]),
        record({}, test_accuracy=[[0.6, 0.7]]),
        record({"dataset": {"name": "NCI1"}}, test_accuracy=[[0.6, 0.7]]),
    ]
    picture = draw("gains", runs)
    assert len(picture.axes) == 1
    assert "Left out, without self-train of the same seeds: FedAvg on NCI1." in caption(picture)
    with pytest.raises(BadInput, match="no run has a self-train"):
        draw("gains", runs[1:])


def test_self_train_of_two_lengths_needs_a_choice(record, draw):
    runs = [record(SELF, test_accuracy=scores) for scores in ([[0.5, 0.5]], [[0.5, 0.5], [0.6, 0.6]])]
    runs.append(record({}, test_accuracy=[[0.7, 0.6]]))
    with pytest.raises(BadInput, match="for 1 and 2 rounds: choose one by self_train_rounds"):
        draw("gains", runs)
    assert points(draw("gains", runs, self_train_rounds=2)) == [[10.0, 0.0]]


@pytest.mark.parametrize("options", [{"split": "seed"}, {"labels": ["a", "b"]}, {"sides": [1, 2]}])
def test_options_that_belong_together(draw, options):
    with pytest.raises(BadInput, match=r"^--option .*sides"):
        draw("gains", [], **options)

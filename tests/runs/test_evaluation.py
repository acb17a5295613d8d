"""When and on whom new models are scored."""

import numpy as np

from tests.started import runs_of

SCORES = ("val_loss", "val_accuracy", "test_loss", "test_accuracy")


def test_models_are_scored_every_so_many_rounds_and_in_the_last(fedmpi, tiny_suite, tmp_path):
    common = (fedmpi, tmp_path, tiny_suite, "algorithm=fedavg")
    found = [runs_of(*common, f"evaluation.every={every}").values() for every in (1, 3)]
    usual, seldom = (run.results for (run,) in found)
    for name in SCORES:
        assert np.array_equal(seldom[name][[2, 3]], usual[name][[2, 3]]), name
        assert np.isnan(seldom[name][[0, 1]]).all(), name
    assert np.array_equal(seldom["test_correct"][[2, 3]], usual["test_correct"][[2, 3]])
    assert usual["test_correct"][[0, 1]].any() and not seldom["test_correct"][[0, 1]].any()
    assert not seldom["evaluation_flops"][[0, 1]].any()
    assert np.array_equal(seldom["parameter_digest"], usual["parameter_digest"])


def test_participants_alone_are_scored_where_the_case_says_so(fedmpi, tiny_suite, tmp_path):
    settings = ("algorithm=fedavg", "participation=0.3", "evaluation.clients=participants")
    for kernels in ("compiled", "grouped"):
        (run,) = runs_of(fedmpi, tmp_path, tiny_suite, *settings, f"kernels={kernels}").values()
        took_part = run.results["participated"] == 1
        assert not took_part.all()
        for name in SCORES:
            assert np.array_equal(np.isfinite(run.results[name]), took_part), name
        scored = np.repeat(took_part, np.diff(run.partition["test_ptr"]), axis=1)
        assert run.results["test_correct"][scored].any()
        assert not run.results["test_correct"][~scored].any()

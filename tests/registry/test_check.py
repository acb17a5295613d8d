"""What checks make of the settings of a case that can be."""

import pytest

from fedmpi.config.suite import CaseSettings, read
from fedmpi.errors import BadInput
from fedmpi.registry.check import build, check_suite, stated


@pytest.fixture
def check(tmp_path):
    def run(text, overrides=()):
        path = tmp_path / "demo.toml"
        path.write_text(text)
        return check_suite(read(path, overrides))

    return run


def test_an_axis_that_takes_back_what_another_sets_is_refused(check):
    table = '{{ label = "{0}", dataset = {{ features = "{0}" }} }}'
    features = ", ".join(map(table.format, ("labels", "degree")))
    matrix = f'[matrix]\nfeatures = [{features}]\ndataset = ["MUTAG", "PROTEINS"]'
    kinds = {each.case.dataset.features for each in check(matrix)}
    assert kinds == {"labels", "degree"}  # a plain name leaves a table without a name as it is
    with pytest.raises(BadInput, match="labels-MUTAG and degree-MUTAG have the same settings"):
        check(f'[case]\ndataset = "MUTAG"\n{matrix}')


HUNDRED = 'partition = { name = "iid", clients = 100 }\ndataset = { synthetic = { domains = 1 } }\n'


MOLECULES = 'dataset = "{}"\npartition = "fedgraphnn"\nmodel = "fedgraphnn/gcn"\nshare = "all"\n'


def test_settings_that_the_labels_have_are_kept(check):
    (scaffold,) = check("[case]\n" + MOLECULES.format("SIDER"), ["partition.split=scaffold"])
    (scaled,) = check("[case]\n" + MOLECULES.format("ESOL"), ["dataset.targets=standardised"])
    (classes,) = check("[case]\n" + MOLECULES.format("MUTAG"), ["partition.split=stratified"])
    assert (scaffold.case.partition.split, classes.case.partition.split) == ("scaffold", "stratified")
    assert scaled.case.dataset.targets == "standardised"


def test_a_mistake_in_an_override_names_the_option(check):
    with pytest.raises(BadInput, match=r'^--set optimizer\.lrr: unknown key; did you mean "lr"\?'):
        check("", ["optimizer.lrr=1"])


def test_a_case_on_a_gpu_gets_kernels_that_take_its_steps(check):
    (adam,) = check('[case]\ndevice = "cuda"')
    (sgd,) = check('[case]\ndevice = "cuda"\nalgorithm = "scaffold"\noptimizer = "sgd"')
    (ditto,) = check('[case]\ndevice = "cuda"\nalgorithm = "ditto"')
    assert (adam.case.kernels, sgd.case.kernels, ditto.case.kernels) == ("grouped", "grouped", "csr")
    for dataset in ("SIDER", "ESOL"):
        (labels,) = check(LABELS.format(dataset), ["device=cuda"])
        assert labels.case.kernels == "grouped"
    (nodes,) = check(
        '[case]\ndevice = "cuda"\ndataset = "Cora"\npartition = "iid"\nmodel = "gcn"\nshare = "all"'
    )
    assert nodes.case.kernels == "csr"
    with pytest.raises(BadInput, match='"grouped" cannot run ditto as it is here: use "compiled", "csr"'):
        check('[case]\nkernels = "grouped"\nalgorithm = "ditto"')


LABELS = '[case]\ndataset = "{}"\npartition = "iid"\nshare = "all"\n'


@pytest.mark.parametrize("dataset", ["SIDER", "ESOL"])
@pytest.mark.parametrize("algorithm", ["fedavg", "fedprox", "ditto", "scaffold", "self-train"])
def test_compiled_kernels_of_labels_and_numbers_are_chosen_by_name(check, dataset, algorithm):
    """By default they stay with torch's, as in the suites that were run."""
    wanted = [f"algorithm={algorithm}", "optimizer=sgd"]
    (usual,), (named,) = (check(LABELS.format(dataset), wanted + more) for more in ([], ["kernels=compiled"]))
    assert (usual.case.kernels, named.case.kernels) == ("csr", "compiled")


NODES = '[case]\ndataset = "synthetic-nodes"\npartition = "louvain"\nmodel = "gcn"\nshare = "all"\n'


@pytest.mark.parametrize("algorithm", ["fedavg", "ditto", "scaffold", "fedgta", "fedpub", "fedtad"])
def test_compiled_kernels_of_nodes_are_chosen_by_name(check, algorithm):
    wanted = [f"algorithm={algorithm}", "optimizer=sgd"]
    (usual,), (named,) = (check(NODES, wanted + more) for more in ([], ["kernels=compiled"]))
    assert (usual.case.kernels, named.case.kernels) == ("csr", "compiled")


def test_compiled_kernels_of_a_head_of_one_layer_are_chosen_by_name(check):
    text = '[case]\ndataset = "MUTAG"\nmodel = { name = "gcn", head_layers = 1 }\n'
    (usual,), (named,) = (check(text, more) for more in ([], ["kernels=compiled"]))
    assert (usual.case.kernels, named.case.kernels) == ("csr", "compiled")


@pytest.mark.parametrize(
    "options",
    [
        HUNDRED + 'reduction = { name = "secagg+", neighbours = 30, colluders = 0.1 }',
        HUNDRED + 'reduction = { name = "secagg+", neighbours = 20, colluders = 0.1 }\nparticipation = 0.2',
        HUNDRED + 'reduction = { name = "secagg+", neighbours = 2, dropouts = { probability = 0.5 } }',
        'reduction = { name = "secagg+", colluders = 0.5 }',
    ],
    ids=["enough", "all of 20", "no colluders", "all of 6"],
)
def test_neighbours_that_are_enough_or_all_are_taken(check, options):
    assert check("[case]\n" + options)


def built(**settings):
    return build("demo", CaseSettings("demo", settings)).case


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        ("exact", {"name": "exact", "clip": 1.0}),  # as when all had one table
        ({"name": "float32"}, {"name": "float32", "clip": 1.0}),
        ({"name": "fixed32", "clip": 0.5}, {"name": "fixed32", "clip": 0.5}),
        ("secagg+", {"name": "secagg+", "clip": 1.0, "threshold": 0.5, "neighbours": 40, "keys": "run"}),
    ],
)
def test_a_reduction_is_recorded_as_it_was(given, recorded):
    assert built(reduction=given).config()["reduction"] == recorded


@pytest.mark.parametrize(
    "changed",
    [{}, {"algorithm": "fedadam"}, {"algorithm": "fedprox"}, {"optimizer": "sgd"}, {"algorithm": "median"}],
)
def test_what_needs_no_client_again_fits_a_population(changed):
    fitting = {"dataset": "PROTEINS", "partition": "population", "share": "all"}
    assert built(**{**fitting, "optimizer": {"state": "reset"}, **changed}).partition.num_clients(1) == 100


def test_a_case_without_attack_and_privacy_is_recorded_as_it_was():
    plain, named = built(), built(attack="none", privacy="none")
    assert {"attack", "privacy"}.isdisjoint(plain.config())
    assert named.digest() == plain.digest()


def test_a_stored_case_is_the_same_case():
    case = built(privacy="central", weights="equal", attack={"name": "noise", "clients": [1, 2]})
    assert built(**stated(case.config())) == case

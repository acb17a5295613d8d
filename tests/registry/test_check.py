import pytest

from fedmpi.config.suite import read
from fedmpi.errors import BadInput
from fedmpi.registry.check import check_suite


@pytest.fixture
def check(tmp_path):
    def run(text, overrides=()):
        path = tmp_path / "demo.toml"
        path.write_text(text)
        return check_suite(read(path, overrides))

    return run


def test_defaults_are_gcfls(check):
    (checked,) = check('[case]\ndataset = "PROTEINS"\npartition = "chunks"')
    config = checked.case.config()
    assert config["optimizer"] == {
        "name": "adam",
        "lr": 1e-3,
        "weight_decay": 5e-4,
        "beta1": 0.9,
        "beta2": 0.999,
        "eps": 1e-8,
        "state": "kept",
    }
    assert config["partition"] == {"name": "chunks", "clients": 10, "overlap": False, "seed": 123}
    assert config["model"] == {"name": "gin", "hidden": 64, "layers": 3, "dropout": 0.5, "head": "dataset"}
    assert (config["batch_size"], config["local_epochs"], config["share"]) == (128, 1, "conv")
    assert checked.algorithm.name == "fedavg"


def test_an_axis_that_takes_back_what_another_sets_is_refused(check):
    table = '{{ label = "{0}", dataset = {{ features = "{0}" }} }}'
    features = ", ".join(map(table.format, ("labels", "degree")))
    matrix = f'[matrix]\nfeatures = [{features}]\ndataset = ["MUTAG", "PROTEINS"]'
    kinds = {each.case.dataset.features for each in check(matrix)}
    assert kinds == {"labels", "degree"}  # a plain name leaves a table without a name as it is
    with pytest.raises(BadInput, match="labels-MUTAG and degree-MUTAG have the same settings"):
        check(f'[case]\ndataset = "MUTAG"\n{matrix}')


HUNDRED = 'partition = { name = "iid", clients = 100 }\ndataset = { synthetic = { domains = 1 } }\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rouns = 3", 'demo.toml: case.rouns: unknown key; did you mean "rounds"?'),
        ("rounds = 0", "case.rounds: input should be greater than or equal to 1 (got 0)"),
        ('rounds = "many"', "case.rounds: input should be a valid integer"),
        (
            'algorithm = "fedavgg"',
            'there is no "fedavgg"; did you mean "fedavg"? (valid: apfl, centralised, ditto, fedadagrad',
        ),
        ('algorithm = { name = "fedprox", nu = 1 }', 'case.algorithm.nu: unknown key; did you mean "mu"?'),
        (
            'algorithm = { name = "fedprox", mu = -1 }',
            "case.algorithm.mu: input should be greater than or equal to 0",
        ),
        ('model = "ginn"', 'there is no "ginn"; did you mean "gin"? (valid: fedgraphnn/gat,'),
        ("model = { hiden = 3 }", 'case.model.hiden: unknown key; did you mean "hidden"?'),
        ('optimizer = { lr = "fast" }', "case.optimizer.lr: input should be a valid number"),
        ('partition = "chunk"', 'there is no "chunk"; did you mean "chunks"?'),
        (
            "dataset = { synthetic = { domain = 3 } }",
            'case.dataset.synthetic.domain: unknown key; did you mean "domains"?',
        ),
        ('partition = "iid"', "deals out one dataset, here are 6 synthetic domains"),
        (
            'model = { norm = "batch" }\nalgorithm = "fedcch"\nreduction = "fixed32"',
            'case.reduction.clip: fedcch averages models, not updates, and "fixed32" cuts their elements: 8 or',
        ),
        (
            'algorithm = "gcfl"\nreduction = "secagg"',
            'case.reduction: gcfl compares single updates, which "secagg" hides: use "exact"',
        ),
        (
            'algorithm = "q-fedavg"\nreduction = "lightsecagg"',
            'the weights of q-fedavg can exceed 1, "lightsecagg" needs a sum of 1: use "exact"',
        ),
        (
            'algorithm = "median"\nreduction = "secagg+"',
            "median needs every client's update and computes no sum: remove the setting `reduction`",
        ),
        (
            'algorithm = "gcfl-plus"\nreduction = { name = "secagg", server = "active", threshold = 0.7 }',
            "case.reduction.server: gcfl-plus sums the same updates again with other weights",
        ),
        (
            'reduction = { name = "lightsecagg", colluders = 0.7 }',
            "case.reduction.colluders: it must be below the threshold",
        ),
        (
            'algorithm = "fedcch"\nattack = { name = "sign-flip", clients = [0] }\nmodel = { norm = "graph" }\n'
            'reduction = { name = "secagg", clip = 8.0, dropouts = { probability = 0.1 } }',
            "case.reduction.dropouts: attackers start from their group's model, and fedcch keeps none of a group",
        ),
        (
            HUNDRED + 'reduction = { name = "secagg+", neighbours = 20, colluders = 0.1 }',
            "case.reduction.neighbours: 20 of 99 with threshold = 0.5 are not safe if 10 % collude and 0 % drop "
            "out: use neighbours = 30 with threshold = 0.500",
        ),
        (
            HUNDRED + 'reduction = { name = "secagg+", neighbours = 30, colluders = 0.1, '
            "dropouts = { schedule = [{ round = 1, clients = [0, 1, 2] }, { round = 2, clients = [4] }] } }",
            "30 of 99 with threshold = 0.5 are not safe if 10 % collude and 3 % drop out: use neighbours = 32",
        ),
        (
            HUNDRED + 'reduction = { name = "secagg+", colluders = 0.3, dropouts = { probability = 0.3 } }',
            '40 of 99 with threshold = 0.5 are not safe if 30 % collude and 30 % drop out: use "secagg"',
        ),
        (
            'reduction = { name = "secagg+", neighbours = 3 }',
            "case.reduction.neighbours: input should be a multiple of 2",
        ),
        (
            'record = "protocol"',
            'case.record: "protocol" is for secure sums, "exact" hides nothing: use "full"',
        ),
        (
            'record = "protocol"\nreduction = "secagg"\nalgorithm = "gcfl-plus"',
            'case.record: gcfl-plus needs reports of single clients: use "full"',
        ),
        (
            'record = "protocol"\nreduction = "secagg"\nalgorithm = "self-train"',
            'case.record: self-train has no sums over clients: use "full"',
        ),
        (
            'record = "protocol"\nreduction = "secagg"\ndataset = "ESOL"\npartition = "fedgraphnn"\n'
            'model = "fedgraphnn/gcn"',
            'case.record: hits of classes can be summed, the scores of this task cannot: use "full"',
        ),
        (
            'reduction = { name = "secagg", server = "active" }',
            "case.reduction.threshold: an active server could show two lists of survivors: it must be above 2/3",
        ),
        (
            'reduction = { name = "secagg+", server = "active" }',
            "case.reduction.server: input should be 'semi-honest' (got 'active')",
        ),
        (
            'reduction = { name = "secagg", buffers = "device" }',
            "case.reduction.buffers: input should be 'host' (got 'device')",
        ),
        (
            'model = { norm = "graph" }\nalgorithm = { name = "fedbn", pf = "shared" }',
            "case.algorithm.pf: unknown key; fedcch has it (known: name)",
        ),
        (
            'dataset = { synthetic = { domains = 1 } }\npartition = "dominant-share"\nobjective = "mvgrl"\n'
            'model = "mvgrl"\nshare = "all"\nalgorithm = "fedbn"',
            'fedbn keeps normalisation layers at home: choose model = "gin" with a norm',
        ),
        (
            'dataset = { synthetic = { domains = 1 } }\npartition = "dominant-share"\nobjective = "mvgrl"\n'
            'model = { name = "mvgrl", register_layers = false }',
            'case.share: model.register_layers = false leaves no convolution to share: use share = "all"',
        ),
        ('algorithm = "median"\nreduction = "float32"', "median needs every client's update"),
        ("participation = 0", "case.participation: input should be greater than 0"),
        (
            "reduction = { clip = 2.0 }",
            "case.reduction.clip: unknown key; fixed32, secagg, secagg+, lightsecagg have it (known: buffers, dropouts, name)",
        ),
        (
            'algorithm = "self-train"\nreduction = { dropouts = { probability = 0.1 } }',
            "case.reduction.dropouts: self-train sends no updates: remove it",
        ),
        *(
            (
                f'algorithm = "{name}"\nreduction = {{ dropouts = {{ probability = 0.1 }} }}',
                f"case.reduction.dropouts: {name} needs something of every participant: remove it",
            )
            for name in ("gcfl", "median", "fednova")
        ),
        (
            'algorithm = "gcfl-plus"\nreduction = { dropouts = { probability = 0.1, step = "training" } }',
            'gcfl-plus groups clients by what they report after training: use "shares" or a later step',
        ),
        (
            'algorithm = "fedavg"\nrounds = 2\nreduction = { dropouts = { schedule = [{ round = 3, clients = [0] }] } }',
            "round 3 of the schedule is behind the last, 2",
        ),
        ('reduction = { name = "float32", clip = 1.0 }', "case.reduction.clip: unknown key"),
        (
            'reduction = { name = "fixed32", clip = 0.0 }',
            "case.reduction.clip: input should be greater than 0",
        ),
        ('name = "x"', "case.name: unknown key"),
        ("optimizer = { lr = inf }", "case.optimizer.lr: input should be a finite number"),
        ('dataset = "gcfl/molecules"\npartition = "iid"', "gcfl/molecules is several"),
        ('dataset = { name = "MUTAG", synthetic = { domains = 2 } }', 'is read for dataset "synthetic" only'),
        ('task = "regresion"', 'case.task: there is no "regresion"; did you mean "regression"?'),
        ('task = "clustering"', '"clustering" and objective "supervised" do not go together: leave task out'),
        (
            'task = "multi-label"',
            '"multi-label" needs binary labels, dataset synthetic has one class each: remove',
        ),
        ("task = 3", "case.task: must be the name of a task"),
        ("dataset = 3", "case.dataset: must be a name or a table, not 3"),
    ],
)
def test_each_mistake_is_one_line_that_names_file_key_and_closest_match(check, text, words):
    with pytest.raises(BadInput) as error:
        check(f"[case]\n{text}")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


MOLECULES = 'dataset = "{}"\npartition = "fedgraphnn"\nmodel = "fedgraphnn/gcn"\nshare = "all"\n'


@pytest.mark.parametrize(
    ("name", "setting", "words"),
    [
        (
            "ESOL",
            "partition.split=stratified",
            '--set partition.split: "stratified" needs one class per graph, ESOL has numbers: use "random"',
        ),
        (
            "SIDER",
            "partition.split=stratified",
            '"stratified" needs one class per graph, SIDER has binary labels',
        ),
        ("SIDER", "model={name='gcn',head='own'}", '"own" is for graphs with one class each, SIDER has'),
        (
            "SIDER",
            "dataset.targets=standardised",
            '"standardised" is for regression, SIDER has binary labels',
        ),
        ("MUTAG", "dataset.targets=standardised", '"standardised" is for regression, MUTAG has classes'),
        ("MUTAG", "partition.split=scaffold", '"scaffold" needs molecules read from SMILES, which MUTAG has'),
    ],
)
def test_settings_for_other_labels_than_the_dataset_has_are_refused(check, name, setting, words):
    with pytest.raises(BadInput) as error:
        check("[case]\n" + MOLECULES.format(name), [setting])
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("name", "model", "words"),
    [
        (
            "synthetic-nodes",
            "rgcn",
            '"rgcn" predicts of edges, synthetic-nodes has labels of nodes: use "gat", "gcn", "gin", "mpnn"',
        ),
        (
            "synthetic-ratings",
            "fedstar",
            '"fedstar" predicts of graphs, synthetic-ratings has labels of edges: '
            'use "gat", "gcn", "gin", "mpnn", "sage"',
        ),
        ("synthetic-triples", "fedstar", 'use "gat", "gcn", "gin", "mpnn", "rgcn", "sage"'),
    ],
)
def test_a_model_for_other_examples_names_those_that_fit(check, name, model, words):
    with pytest.raises(BadInput) as error:
        check(f'[case]\ndataset = "{name}"\nmodel = "{model}"\npartition = "iid"')
    assert words in str(error.value)


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
    with pytest.raises(BadInput, match='"grouped" cannot run ditto as it is here: use "compiled", "csr"'):
        check('[case]\nkernels = "grouped"\nalgorithm = "ditto"')


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


def test_a_case_without_colluders_has_the_configuration_that_it_had(check):
    (checked,) = check('[case]\nreduction = "secagg+"')
    assert checked.case.config()["reduction"] == {
        "name": "secagg+", "clip": 1.0, "threshold": 0.5, "neighbours": 40, "keys": "run",
    }  # fmt: skip

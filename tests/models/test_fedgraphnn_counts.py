"""Parameters and FLOPs of FedGraphNN's Tables 6 and 8, as printed."""

import pytest

from fedmpi.models.fedgraphnn_flops import PUBLISHED_SLIPS, published_flops, published_node_flops
from fedmpi.models.options import MODELS, GcnOptions, SageOptions, Shape
from tests.making import flat

KINDS = ("gcn", "gat", "sage")

NAMES = ["SIDER", "BACE", "ClinTox", "BBBP", "Tox21", "FreeSolv", "ESOL", "Lipophilicity", "hERG", "QM9"]
NODES = (33, 34, 26, 24, 18, 8, 13, 27, 29, 8)
TASKS = (27, 1, 2, 1, 12, 1, 1, 1, 1, 12)
"""Whole nodes of an average molecule, and tasks."""

WIDTHS = {
    ("SIDER", "sage"): {"node": 16},
    ("BACE", "sage"): {"node": 16},
    ("Lipophilicity", "sage"): {"node": 256, "hidden": 256, "readout": 256, "graph": 256},
}
"""Where they are not 64."""

PARAMETERS = {
    "gcn": "15.1K 13.5K 13.6K 13.5K 14.2K 13.5K 13.5K 13.5K 13.5K 14.2K",
    "gat": "20.2K 18.5K 18.6K 18.5K 19.2K 18.5K 18.5K 18.5K 18.5K 19.2K",
    "sage": "10.6K 8.9K 18.2K 18.1K 18.8K 18.1K 18.1K 269K 18.1K 18.8K",
}
FLOPS = {
    "gcn": "697.3K 605.1K 466.2K 427.2K 345.8K 142.6K 231.6K 480.6K 516.6K 153.9K",
    "gat": "703.4K 612.1K 470.2K 431K 347.8K 142.5K 232.6K 485K 521.3K 154.3K",
    "sage": "846K 758.6K 1.1M 980K 760.6K 326.9K 531.1K 1.5M 1.184M 338.2K",
}
CELLS = [(kind, *cell) for kind in KINDS for cell in zip(NAMES, NODES, TASKS, range(10), strict=True)]


def number(printed):
    """Return a printed number, and a unit of its last digit."""
    digits, unit = printed[:-1], {"K": 1e3, "M": 1e6}[printed[-1]]
    decimals = len(digits.partition(".")[2])
    return float(digits) * unit, unit / 10**decimals


def agrees(computed, printed):
    """Tell whether a number was rounded or cut to what is printed."""
    value, step = number(printed)
    return value - step / 2 <= computed < value + step


def options(name, kind):
    return MODELS[f"fedgraphnn/{kind}"](**WIDTHS.get((name, kind), {}))


@pytest.mark.parametrize(("kind", "name", "nodes", "tasks", "place"), CELLS)
def test_parameters_and_flops_are_those_of_table_6_but_for_four_slips(kind, name, nodes, tasks, place):
    parameters = flat(options(name, kind), 8, tasks).num_parameters
    assert agrees(parameters, PARAMETERS[kind].split()[place])
    computed = published_flops(options(name, kind), Shape(8, tasks), nodes)
    if (name, kind) in PUBLISHED_SLIPS:
        printed, instead, _ = PUBLISHED_SLIPS[name, kind]
        assert printed == FLOPS[kind].split()[place]
        assert agrees(computed, instead)
        assert not agrees(computed, printed)
    else:
        assert agrees(computed, FLOPS[kind].split()[place])


def test_128_one_hot_features_cannot_be_table_6():
    assert flat(MODELS["fedgraphnn/gcn"](), 128, 27).num_parameters == 30_555


@pytest.mark.parametrize(
    ("name", "width", "classes", "nodes", "gcn", "sage", "gcn_flops", "sage_flops"),
    [
        ("CORA", 8710, 70, 80, 282_118, 283_142, "44.9M", "45.3M"),
        ("Citeseer", 602, 6, 19, 20_550, 21_574, "739.4K", "817K"),
        ("DBLP", 1639, 4, 84, 53_668, 54_692, "8.8M", "9.2M"),
        ("PubMed", 500, 3, 59, 17_187, 18_211, "1.9M", "2.1M"),
    ],
)
def test_table_8(name, width, classes, nodes, gcn, sage, gcn_flops, sage_flops):
    """Its models are the scripts' defaults: 32 wide, one convolution between two Linears."""
    shape, common = Shape(width, classes), {"hidden": 32, "layers": 1, "head_layers": 1}
    assert flat(GcnOptions(**common), width, classes).num_parameters == gcn
    assert flat(SageOptions(**common), width, classes).num_parameters == sage
    assert agrees(published_node_flops("gcn", shape, 32, nodes), gcn_flops)
    assert agrees(published_node_flops("sage", shape, 32, nodes), sage_flops)

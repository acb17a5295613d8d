import pytest

from fedmpi.config.suite import read
from fedmpi.errors import BadInput
from tests.refusals import refused, table

SUITE = """
name = "demo"
priority = ["seed"]
[case]
rounds = 200
model = { hidden = 32 }
[matrix]
method = [
  { label = "alone", algorithm = "self-train", rounds = 50 },
  { label = "prox", algorithm = { name = "fedprox", mu = 0.1 } },
]
seed = [10, 42]
[[where]]
when = { algorithm = "fedprox", seed = 42 }
set = { model = { dropout = 0.0 } }
"""


@pytest.fixture
def expand(tmp_path):
    def run(text=SUITE, overrides=()):
        path = tmp_path / "demo.toml"
        path.write_text(text)
        return {case.name: case.settings for case in read(path, overrides).cases}

    return run


def test_cases_are_the_product_in_priority_order(expand):
    assert list(expand()) == ["seed10-alone", "seed10-prox", "seed42-alone", "seed42-prox"]


SEARCH = """
draws = 40
[matrix]
algorithm = ["fedavg", "fedprox"]
[[where]]
when = {}
draw = { optimizer = { lr = { log-uniform = [1e-4, 1.0] } }, local_epochs = { choice = [1, 2] } }
[[where]]
when = { algorithm = "fedprox" }
draw = { algorithm = { mu = { uniform = [0.5, 1.5] } } }
"""


def test_candidates_draw_their_settings_from_the_distributions_of_rules(expand):
    cases = expand(SEARCH)
    assert next(iter(cases)) == "fedavg-draw1" and len(cases) == 80
    rates = [cases[f"fedavg-draw{number}"]["optimizer"]["lr"] for number in range(1, 41)]
    assert rates == [cases[f"fedprox-draw{number}"]["optimizer"]["lr"] for number in range(1, 41)]
    assert all(1e-4 <= rate < 1 and rate == float(f"{rate:.5g}") for rate in rates) and len(set(rates)) == 40
    weights = [cases[f"fedprox-draw{number}"]["algorithm"]["mu"] for number in range(1, 41)]
    assert all(0.5 <= mu < 1.5 for mu in weights)
    for fifth in range(5):
        assert sum(fifth <= 5 * (mu - 0.5) < fifth + 1 for mu in weights) == 8
    assert cases["fedavg-draw1"]["algorithm"] == "fedavg"


def test_candidates_are_spread_evenly_for_each_choice_of_another_setting(expand):
    cases = expand(SEARCH, ["algorithm=fedavg"]).values()
    tried = {
        epochs: [c["optimizer"]["lr"] for c in cases if c["local_epochs"] == epochs] for epochs in (1, 2)
    }
    for rates in tried.values():
        assert 18 <= len(rates) <= 22
        decades = [sum(10.0 ** (low - 4) <= rate < 10.0 ** (low - 3) for rate in rates) for low in range(4)]
        assert min(decades) >= 4


def test_a_rule_may_draw_from_another_stream(expand):
    rule = '[[where]]\nwhen = { algorithm = "fedprox" }\nstream = "again"\n'
    other = expand(SEARCH + rule + "draw = { optimizer = { lr = { log-uniform = [1e-4, 1.0] } } }\n")
    rates = {
        method: [other[f"{method}-draw{number}"]["optimizer"]["lr"] for number in range(1, 41)]
        for method in ("fedavg", "fedprox")
    }
    assert rates["fedavg"] == [
        expand(SEARCH)[f"fedavg-draw{each}"]["optimizer"]["lr"] for each in range(1, 41)
    ]
    assert not set(rates["fedavg"]) & set(rates["fedprox"])


def test_what_is_drawn_stays_in_its_interval(expand):
    text = SEARCH.replace("log-uniform = [1e-4, 1.0]", "uniform = [0.9999985, 0.9999999]")
    rates = {case["optimizer"]["lr"] for case in expand(text).values()}
    assert all(0.9999985 <= rate <= 0.9999999 for rate in rates)


def test_more_candidates_leave_the_earlier_ones_as_they_are(expand):
    more = expand(SEARCH.replace("draws = 40", "draws = 60"))
    assert expand(SEARCH).items() <= more.items()
    assert list(expand(SEARCH, ["draw=draw7"])) == ["fedavg-draw7", "fedprox-draw7"]


def test_a_rule_may_leave_cases_out(expand):
    rule = '[[where]]\nwhen = { method = "alone", seed = 42 }\nskip = true'
    assert list(expand(SUITE + rule)) == ["seed10-alone", "seed10-prox", "seed42-prox"]
    with pytest.raises(BadInput, match="skip = true leave no case"):
        expand(SUITE + rule, ["method=alone", "seed=42"])


def test_a_case_knows_its_labels(tmp_path):
    (tmp_path / "demo.toml").write_text(SUITE)
    first = read(tmp_path / "demo.toml").cases[0]
    assert (first.name, first.labels) == ("seed10-alone", {"seed": "seed10", "method": "alone"})


def test_an_override_that_loses_an_earlier_one_is_refused(expand):
    with pytest.raises(BadInput, match=r"--set model=gin replaces what an earlier --set model\.\.\. says"):
        expand(overrides=["model.norm=layer", "model=gin"])
    merged = expand(overrides=["model.norm=layer", "model={layers=2}"])
    assert all(case["model"]["norm"] == "layer" for case in merged.values())
    assert expand(overrides=["model=gin", "model.norm=layer"])


def test_axis_tables_and_rules_set_what_they_say(expand):
    cases = expand()
    assert cases["seed10-alone"]["rounds"] == 50
    assert cases["seed10-prox"]["rounds"] == 200
    assert cases["seed10-prox"]["model"] == {"hidden": 32}
    assert cases["seed42-prox"]["model"] == {"hidden": 32, "dropout": 0.0}


def test_a_rule_may_name_an_axis_label(expand):
    rule = '[[where]]\nwhen = { method = "alone" }\nset = { seed = 1 }'
    assert expand(SUITE + rule)["seed42-alone"]["seed"] == 1


def test_a_rule_may_rest_on_what_an_earlier_one_sets(expand):
    rules = """
        [[where]]
        when = { method = "alone" }
        set = { batch_size = 7 }
        [[where]]
        when = { batch_size = 7 }
        set = { seed = 1 }
    """
    assert expand(SUITE + rules)["seed42-alone"]["seed"] == 1


def test_a_rule_may_be_for_a_value_that_an_axis_is_given(expand):
    rule = "[[where]]\nwhen = { seed = 7 }\nset = { rounds = 9 }"
    assert expand(SUITE + rule, overrides=["seed=7"])["seed7-alone"]["rounds"] == 9


def test_overriding_an_axis_reduces_it(expand):
    assert list(expand(overrides=["seed=42", "method=prox"])) == ["seed42-prox"]
    assert list(expand(overrides=["seed=7"])) == ["seed7-alone", "seed7-prox"]


def test_overriding_what_an_axis_sets_selects_its_values(expand):
    assert list(expand(overrides=["algorithm=self-train"])) == ["seed10-alone", "seed42-alone"]


def test_an_axis_may_be_a_dotted_key(expand):
    text = 'name = "demo"\n[matrix]\nseed = [1]\npartition.seed = [1, 2]\npartition.alpha = [0.5]'
    cases = expand(text)
    assert list(cases) == ["seed1-partition.seed1-alpha0.5", "seed1-partition.seed2-alpha0.5"]
    assert [case["partition"]["seed"] for case in cases.values()] == [1, 2]
    with pytest.raises(BadInput, match=r"demo\.toml: matrix\.partition\.seed is given twice"):
        expand(text + '\n"partition.seed" = [3]')


def test_a_table_in_the_place_of_an_axis_is_its_label(expand):
    text = 'name = "demo"\n[matrix]\nalgorithm = ["fedavg", "fedprox"]'
    (name,) = expand(text, ['algorithm={name = "fedprox", mu = 0.5}'])
    assert name == "name=fedprox+mu=0.5"


def test_overriding_anything_else_shows_in_the_name(expand):
    cases = expand(overrides=["seed=10", "algorithm=fedprox", "algorithm.mu=0.5"])
    assert list(cases) == ["seed10-prox-algorithm.mu=0.5"]
    assert cases["seed10-prox-algorithm.mu=0.5"]["algorithm"] == {"name": "fedprox", "mu": 0.5}


WRONG = r"""
name = -> demo.toml: not TOML
[cases]; rounds = 3 -> demo.toml: cases: unknown key; did you mean "case"?
[matrix]; seed = 3 -> matrix.seed must be a list
[matrix]; seed = [] -> matrix.seed must be a list
[matrix]; a = [{ rounds = 3 }] -> a table needs a label and settings
[matrix]; algorithm = [{ name = "x", when = 2020-01-01 }] -> a table needs a label and settings
[matrix]; algorithm = [{ name = "fedprox", mu = 0.1 }]
    -> such as { label = "fedprox", algorithm = { name = "fedprox", mu = 0.1 } }
[matrix]; seed = [1]; [[where]]; when = { seed = 1 } -> exactly the tables `when` and `set`
[[where]]; when = { seed = 1 }; skip = false -> or `skip = true`
[[where]]; when = { algoritm = "fedprox" }; set = { rounds = 1 } -> algoritm is neither an axis nor set
[matrix]; algorithm = ["fedavg", "fedprox"];
    [[where]]; when = { algorithm = "fedprx" }; set = { rounds = 1 }
    -> no case has algorithm = 'fedprx'; did you mean "fedprox"? (valid: fedavg, fedprox)
priority = ["sed"]; [matrix]; seed = [1] -> no axis of the matrix; did you mean "seed"?
[matrix]; seed = [1, 1] -> matrix.seed: seed1 stands 2 times
[where]; when = { seed = 1 } -> where must be a list: write [[where]], with two brackets
[matrix]; seed = [1, 2]; [[where]]; when = { seed = [1, 2] }; set = { rounds = 1 }
    -> no case has seed = [1, 2]; a rule takes one value: write one for each
[matrix]; seed = [1, 2]; [[where]]; when = { seed = 7 }; set = { rounds = 1 }
    -> no case has seed = 7 (valid: 1, 2)
[[where]]; when = { rounds = 5 }; set = { rounds = 5 } -> where: no case has rounds = 5
[matrix]; seed = [{ label = 'a', rounds = 1 }, { label = 'b', rounds = 2 }];
    [[where]]; when = { seed = 'a', rounds = 2 }; skip = true
    -> where: no case has seed = 'a' and rounds = 2 together
[case]; rounds = 1; [[where]]; when = { rounds = 2 }; set = { batch_size = 3 };
    [[where]]; when = { batch_size = 3 }; set = { rounds = 2 } -> where: no case has rounds = 2
[matrix]; seed = [1, 2]; [[where]]; when = { seed = 1 }; skip = true;
    [[where]]; when = { seed = 1 }; set = { rounds = 3 } -> where: no case has seed = 1
figure = 3 -> figure must be a table
[figure]; field = 1 -> figure.kind must name what to draw
[figure]; kind = 1 -> figure.kind must name what to draw
draws = 2; [matrix]; seed = [1] -> draws = N, of candidates, and a rule of [[where]] with `draw` go together
[case]; rounds = 1; [[where]]; when = { rounds = 1 }; draw = { seed = { choice = [1] } } -> go together
draws = -1 -> draws must be a number of candidates
draws = 2; [matrix]; draw = [1] -> matrix.draw: draws = 2 has an axis of this name
draws = 2; [[where]]; when = {}; draw = { seed = 3 } -> seed needs a distribution
draws = 2; [[where]]; when = {}; draw = { seed = { choice = [] } } -> seed needs one of log-uniform, uniform, choice
draws = 2; [[where]]; when = {}; draw = { optimizer = { lr = { log-uniform = [0, 1] } } }
    -> optimizer.lr: log-uniform needs two numbers above 0, the smaller one first
draws = 2; [[where]]; when = {}; draw = { optimizer = { lr = { uniform = [1, 0, 3] } } }
    -> optimizer.lr: uniform needs two numbers, the smaller one first
"""
"""Suites, lines apart by semicolons, and what is said of them."""


@pytest.mark.parametrize(("text", "words"), table(WRONG))
def test_a_wrong_structure_is_named(expand, text, words):
    with refused(words):
        expand(text.replace("; ", "\n"))


@pytest.mark.parametrize(
    ("override", "name"),
    [
        ('model={name="gat", heads=4}', "seed10-prox-model=name=gat+heads=4"),
        ("algorithm.note='a'", "seed10-prox-algorithm.note=a"),
        ("evaluation.embeddings=[1, 2]", "seed10-prox-evaluation.embeddings=1+2"),
    ],
)
def test_a_name_is_readable_whatever_is_overridden(expand, override, name):
    assert name in expand(overrides=["seed=10", override])


@pytest.mark.parametrize("override", ["rounds", "=3", "a..b=1"])
def test_an_override_without_key_or_value_is_refused(expand, override):
    with pytest.raises(BadInput, match="write it as key=value"):
        expand(overrides=[override])


def test_overriding_what_only_some_axis_values_set_changes_every_case(expand):
    cases = expand(overrides=["rounds=5", "seed=10"])
    assert {name: case["rounds"] for name, case in cases.items()} == {
        "seed10-alone-rounds=5": 5,
        "seed10-prox-rounds=5": 5,
    }


def test_a_figure_is_handed_on_as_it_stands(tmp_path):
    path = tmp_path / "demo.toml"
    path.write_text('[figure]\nkind = "losses"\nlog = true')
    assert read(path).figure == {"kind": "losses", "log": True}
    path.write_text("")
    assert read(path).figure == {}


AXIS = "[" + ", ".join(f'{{ label = "{value}", seed = {value} }}' for value in range(10)) + "]"


def test_a_matrix_is_counted_before_it_is_written_out(expand):
    axes = "".join(f"a{axis} = {AXIS}\n" for axis in range(12))
    with refused(match=r"matrix: 1,000,000,000,000 cases, at most 20,000 are run as one suite"):
        expand(f"[matrix]\n{axes}")
    assert len(expand(f"[matrix]\na = {AXIS}\nb = {AXIS}")) == 100


def test_a_name_that_no_folder_can_have_is_cut_and_stays_unique(expand):
    names = list(expand(overrides=["seed=10", *(f"model.a{place}={'x' * 30}" for place in range(12))]))
    assert [len(name) for name in names] == [173, 173]
    assert names[0].startswith("seed10-alone-model.a0=xxx") and names[1].startswith(
        "seed10-prox-model.a0=xxx"
    )
    other = list(expand(overrides=["seed=10", *(f"model.a{place}={'x' * 29}y" for place in range(12))]))
    assert not {*names} & {*other}


def test_names_that_a_folder_can_have_stay_as_they_are(expand):
    (name, _) = expand(overrides=["seed=10", f"model.a={'x' * 234}"])
    assert name == f"seed10-alone-model.a={'x' * 234}" and len(name) == 255


@pytest.mark.parametrize(
    ("override", "words"),
    [
        (f"rounds={'9' * 5000}", "--set 'rounds=9999"),
        (f"{'.'.join(['a'] * 2000)}=1", "deeper than 32 levels"),
        ("dataset=own/\0", r"dataset: text with the character '\x00'"),
        (f"seed={2**64}", "an integer of more than 64 bits"),
    ],
)
def test_an_override_beyond_the_bounds_is_refused(expand, override, words):
    with pytest.raises(BadInput) as error:
        expand(overrides=[override])
    assert words in str(error.value) and len(str(error.value)) < 250

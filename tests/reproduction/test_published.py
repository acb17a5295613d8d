import math
from collections import Counter
from pathlib import Path

import pytest

from fedmpi.errors import BadInput
from fedmpi.reproduction.published import PAPERS, read, read_claims

GROUPS = ("MOLECULES (1)", "BIOCHEM (2)", "MIX (3)")
CLAIMS = {paper.name: paper.claims for paper in PAPERS}
FIGURES = {paper.name: paper.figures for paper in PAPERS}
HEAD = (
    "paper,table,reading,row,column,metric,value,spread,spread_of,seeds,unpublished,suite,cases,lacks,note\n"
)


@pytest.fixture
def written(tmp_path):
    """Return a function that writes lines of figures."""

    def write(*lines, head=HEAD):
        path = Path(tmp_path / "published.csv")
        path.write_text(head + "".join(f"{line}\n" for line in lines))
        return path

    return write


def test_a_ratio_is_a_share(written):
    (found,) = read(written("P,T,,FedAvg,C,ratio,14/30,,,5,,s,dataset=D method=m,,"))
    assert (found.value, found.number, found.clients, found.spread) == ("14/30", 14 / 30, 30, None)
    assert found.command == "fedmpi sweep s --set dataset=D --set method=m"


@pytest.mark.parametrize(
    ("metric", "value", "spread", "seeds", "suite", "said"),
    [
        ("average", "x", "", 5, "s", "could not convert string to float: 'x'"),
        ("best", "1", "", 5, "s", "metric best: there are average, min gain, ratio"),
        ("average", "nan", "", 5, "s", "value nan: no number"),
        ("average", "1", "inf", 5, "s", "spread inf: no number"),
        ("average", "1e999", "", 5, "s", "value inf: no number"),
        ("average", "1", "", 0, "s", "seeds 0: at least 1"),
        ("micro F1", "0.5", "", 1, "", "no suite: 'lacks' must say"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(written, metric, value, spread, seeds, suite, said):
    right = "P,T,,FedAvg,C,average,1,,,5,,s,c,,"
    with pytest.raises(BadInput, match=rf"published\.csv: line 3: {said}"):
        read(written(right, f"P,T,,FedAvg,C,{metric},{value},{spread},,{seeds},,{suite},c,,"))


def test_what_is_no_file_of_figures_is_refused(written):
    with pytest.raises(BadInput, match="the columns must be paper, table"):
        read(written(head="a,b\n"))
    with pytest.raises(BadInput, match=r"none\.csv: cannot read these rows"):
        read(Path("none.csv"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("P,best,text,Section 1,x,,,s,c,d,", "kind best: there are lead, behind, level, above, alike, gain"),
        ("P,lead,rumour,Section 1,x,,,s,c,d,", "source rumour: there are text, table"),
        ("P,lead,text,Section 1,x,,luck,s,c,d,", "line 2: metric luck: there are average, min gain"),
        ("P,lead,text,Section 1,x,,,s,c,,", "x: a claim of kind lead needs against"),
        ("P,more,text,Section 1,x,,,s,c,d,", "x: a claim of kind more needs over"),
    ],
)
def test_a_claim_is_of_a_known_kind(written, line, said):
    head = "paper,kind,source,place,claim,reading,metric,suite,cases,against,over\n"
    with pytest.raises(BadInput, match=said):
        read_claims(written(line, head=head))


def test_what_has_no_suite_says_what_it_lacks(written):
    (found,) = read(written("P,T,,GAT,C,micro F1,diverge,,,1,,,,the data,"))
    assert (found.lacks, found.command, math.isnan(found.number)) == ("the data", "", True)


def test_only_a_spread_of_the_average_is_its_deviation(written):
    lines = [f"P,T,,FedAvg,C,average,0.7,0.02,{of},5,,s,c,," for of in ("average", "client")]
    assert [each.deviation for each in read(written(*lines))] == [0.02, None]


def test_a_reading_is_no_table_of_its_own(written):
    (found,) = read(written("P,T,no dropout,FedAvg,C,average,0.7,,,5,dropout,s,c,,"))
    assert (found.place, found.cell) == ("T, no dropout", ("T", "FedAvg", "C"))


def test_figures_are_what_the_papers_print():
    figures = FIGURES["FedGraphNN"] + FIGURES["GCFL"]
    printed = {(each.row, each.column, each.metric): each.value for each in figures}
    expected = {
        ("GraphSAGE (FedAvg)", "ESOL", "RMSE"): "1.1860",
        ("GCN (centralised)", "hERG", "RMSE"): "0.7257",
        ("GAT (FedAvg)", "QM9", "MAE"): "23.173",
        ("GraphSAGE (FedAvg)", "EPINIONS", "MSE by client"): "1.6136",
        ("GAT (centralised)", "CORA", "micro F1"): "diverge",
        ("GraphSAGE (centralised)", "DBLP", "micro F1"): "0.9798",
        ("GCFL+", "NCI1 (30)", "average"): "0.7422",
        ("FedProx", "MIX (3)", "min gain"): "-0.1367",
        ("GCFL", "BIOCHEM (2)", "ratio"): "7/10",
    }
    assert {place: printed[place] for place in expected} == expected


def test_gcfls_text_says_what_its_tables_print():
    """13.27, 14.75, 7.29 and 7.81 % are relative gains; 10 and 14 more clients, and twice as many, are counts."""
    printed = {(each.row, each.column, each.metric): each.number for each in FIGURES["GCFL"]}
    for row, gains in {"GCFL": (13.27, 7.29, 1.6, 0.6, 0.8), "GCFL+": (14.75, 7.81, 2.7, 2.6, 1.7)}.items():
        for column, gain in zip(("NCI1 (30)", "PROTEINS (10)", *GROUPS), gains, strict=True):
            part = printed[row, column, "average"] / printed["self-train", column, "average"] - 1
            assert round(100 * part, 1 if column in GROUPS else 2) == gain
    improved = {
        row: round(30 * printed[row, "NCI1 (30)", "ratio"]) for row in ("GCFL", "GCFL+", "FedAvg", "FedProx")
    }
    assert (improved["GCFL"] - improved["FedProx"], improved["GCFL+"] - improved["FedAvg"]) == (10, 14)
    for column in GROUPS:
        assert printed["GCFL+", column, "ratio"] >= 2 * printed["FedAvg", column, "ratio"]


def test_gcfls_leads_are_differences_of_cells_and_the_other_claims_its_text():
    assert Counter((claim.kind, claim.source) for claim in CLAIMS["GCFL"]) == {
        ("lead", "table"): 6,
        ("lead", "text"): 3,
        **{("gain", source): 7 for source in ("text", "equal work")},
        **{("improved", "text"): 11, ("improved", "equal work"): 7},
        **{("more", "text"): 4, ("twice", "text"): 3, ("least", "text"): 13},
    }


def test_fedcchs_claims_on_normalised_methods_stand_in_two_readings():
    readings = {}
    for claim in CLAIMS["FedCCH"]:
        if claim.reading != "no dropout":
            readings.setdefault((claim.kind, claim.claim), []).append(claim.reading)
    assert len(readings) == 68
    both = ["with batch normalisation", "without normalisation"]
    for (_, claim), found in readings.items():
        assert found == (both[:1] if "FedStar" in claim or "FedBN" in claim else both), claim


def test_every_claim_says_where_it_stands_in_its_paper():
    for claims in CLAIMS.values():
        assert {claim.place.split()[0] for claim in claims} == {"Section", "Table"}
        for claim in claims:
            assert claim.source != "table" or claim.place.startswith("Table"), claim


def test_fclgs_leads_are_those_over_every_other_row_of_its_tables():
    tables = [each for each in CLAIMS["FCLG"] if (each.kind, each.source) == ("lead", "table")]
    leads = {(each.suite, each.cases, each.against, each.metric) for each in tables}
    figures = [each for each in FIGURES["FCLG"] if not each.reading]
    own = {(each.suite, each.column): each.cases for each in figures if each.row == "FCLG"}
    others = [each for each in figures if each.row != "FCLG"]
    expected = {(each.suite, own[each.suite, each.column], each.cases, each.metric) for each in others}
    assert (len(leads), leads) == (128, expected)


def test_fedgraphnns_orderings_are_those_that_its_tables_print():
    printed = {(each.suite, each.cases, each.metric): each for each in FIGURES["FedGraphNN"]}
    claims = CLAIMS["FedGraphNN"]
    kinds = Counter((claim.kind, claim.source) for claim in claims)
    assert kinds == {("above", "table"): 102, ("above", "text"): 5}
    for claim in claims:
        better, worse = (printed[claim.suite, cases, claim.metric] for cases in (claim.cases, claim.against))
        assert claim.score is not None
        assert claim.score.sign * better.number > claim.score.sign * worse.number, claim


def test_gcfl_has_every_cell_of_its_tables():
    assert Counter((each.table, each.metric) for each in FIGURES["GCFL"]) == {
        (table, metric): count
        for table in ("Table 3", "Table 4")
        for metric, count in (("average", 15), ("min gain", 12), ("ratio", 12))
    }


def test_gcfl_min_gains_are_multiples_of_a_test_graph():
    # Five seeds: a client's mean moves in steps of 1 / (5 x its test graphs); all have between 9 and 600.
    for each in FIGURES["GCFL"]:
        if each.metric == "min gain":
            steps = [round(each.number * 5 * graphs) / (5 * graphs) for graphs in range(9, 601)]
            assert min(abs(each.number - step) for step in steps) < 0.5e-4, each

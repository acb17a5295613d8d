from collections import Counter
from pathlib import Path

import pytest

from fedmpi.analysis.reproduction.published import read, read_claims
from fedmpi.config import locations
from fedmpi.errors import BadInput

GCFL = locations.find("gcfl/table3").parent
HEAD = "paper,table,row,column,metric,value,spread,seeds,suite,cases,note\n"


@pytest.fixture
def written(tmp_path):
    """Return a function that writes lines of figures."""

    def write(*lines, head=HEAD):
        path = Path(tmp_path / "published.csv")
        path.write_text(head + "".join(f"{line}\n" for line in lines))
        return path

    return write


def test_a_ratio_is_a_share(written):
    (found,) = read(written("P,T,FedAvg,C,ratio,14/30,,5,s,dataset=D method=m,"))
    assert (found.printed, found.value, found.clients, found.spread) == ("14/30", 14 / 30, 30, None)
    assert found.command == "fedmpi sweep s --set dataset=D --set method=m"


def test_what_is_wrong_is_named_with_its_line(written):
    with pytest.raises(BadInput, match=r"published\.csv: line 2: could not convert string to float: 'x'"):
        read(written("P,T,FedAvg,C,average,x,,5,s,c,"))
    with pytest.raises(BadInput, match="line 3: metric best: there are average, min gain, ratio"):
        read(written("P,T,FedAvg,C,average,1,,5,s,c,", "P,T,FedAvg,C,best,1,,5,s,c,"))
    with pytest.raises(BadInput, match="the columns must be paper, table"):
        read(written(head="a,b\n"))
    with pytest.raises(BadInput, match=r"none\.csv: cannot read it"):
        read(Path("none.csv"))


def test_a_claim_is_of_a_known_kind(written):
    with pytest.raises(BadInput, match="kind best: there are lead, reread, level, improved"):
        read_claims(written("P,best,x,s,c,d", head="paper,kind,claim,suite,cases,against\n"))


def test_gcfl_has_every_cell_of_its_tables():
    figures = read(GCFL / "published.csv")
    assert Counter((each.table, each.metric) for each in figures) == {
        (table, metric): count
        for table in ("Table 3", "Table 4")
        for metric, count in (("average", 15), ("min gain", 12), ("ratio", 12))
    }
    printed = {(each.row, each.column, each.metric): each.printed for each in figures}
    assert printed["GCFL+", "NCI1 (30)", "average"] == "0.7422"
    assert printed["FedProx", "MIX (3)", "min gain"] == "-0.1367"
    assert printed["GCFL", "BIOCHEM (2)", "ratio"] == "7/10"


def test_gcfl_min_gains_are_multiples_of_a_test_graph():
    # Five seeds: a client's mean moves in steps of 1 / (5 x its test graphs); all have between 9 and 600.
    for each in read(GCFL / "published.csv"):
        if each.metric == "min gain":
            steps = [round(each.value * 5 * graphs) / (5 * graphs) for graphs in range(9, 601)]
            assert min(abs(each.value - step) for step in steps) < 0.5e-4, each

"""The papers, the suites that compute them, and the rules that their figures and claims are judged under."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fedmpi.config import locations
from fedmpi.reproduction.cells import AS_PUBLISHED, BY_VALIDATION, HEADLINE
from fedmpi.reproduction.published import Claim, Published, read, read_claims


@dataclass(frozen=True)
class Paper:
    """A paper and the suites that compute it.

    Attributes
    ----------
    name : str
        As in the column `paper` of its CSV files, which lie beside its suites.
    title : str
    tables : tuple of str
        Suites of its tables; what the splits and the ablation are compared with is in the first.
    splits, ablation : str
        Suites; papers whose runs are scored as a whole have no other splits, and may have no ablation.
    scored : str
        What a whole run is scored by: "clusters", "scores", or "clients" where clients are.
    others : tuple of str
        Suites of other settings of a paper scored by clusters.
    rules : tuple of str
        Where clients are scored: the selection rules that figures and claims are judged under, the paper's
        own first.
    """

    name: str
    title: str
    tables: tuple[str, ...]
    splits: str = ""
    ablation: str = ""
    scored: str = "clients"
    others: tuple[str, ...] = ()
    rules: tuple[str, ...] = (AS_PUBLISHED, HEADLINE)

    @cached_property
    def figures(self) -> list[Published]:
        """What it prints."""
        return read(locations.find(self.tables[0]).with_name("published.csv"))

    @cached_property
    def claims(self) -> list[Claim]:
        """What it claims."""
        return read_claims(locations.find(self.tables[0]).with_name("claims.csv"))

    @property
    def queue(self) -> tuple[str, ...]:
        """Suites whose missing cases its page lists."""
        further = (self.splits, self.ablation) if self.scored == "clients" else ()
        return (*self.tables, *filter(None, further))


PAPERS = (
    Paper(
        "GCFL",
        "Xie, Ma, Xiong, Yang: Federated graph classification over non-IID graphs, NeurIPS 2021",
        ("gcfl/table3", "gcfl/table4"),
        "gcfl/splits",
        "gcfl/ablation",
    ),
    Paper(
        "FCLG",
        "Li, Agrawal, Ramnath, Jin: Federated contrastive learning of graph-level representations, "
        "IEEE BigData 2024",
        ("fclg/table2", "fclg/table3"),
        scored="clusters",
        rules=(HEADLINE,),
        others=("fclg/sweep", "fclg/causes"),
    ),
    Paper(
        "FedCCH",
        "Jiao et al.: FedCCH, IJCAI 2025, doi 10.24963/ijcai.2025/333",
        ("fedcch/table1",),
        rules=(HEADLINE, BY_VALIDATION),
    ),
    Paper(
        "FedGraphNN",
        "He et al.: FedGraphNN, a federated learning system and benchmark for graph neural networks, 2021",
        ("fedgraphnn/table2", "fedgraphnn/table20", "fedgraphnn/table3", "fedgraphnn/table4"),
        ablation="fedgraphnn/freesolv",
        scored="scores",
        rules=(AS_PUBLISHED, BY_VALIDATION),
    ),
)

"""What a suite may say about the partition: one class per kind, told apart by `name`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from fedmpi.config.options import Options
from fedmpi.errors import BadInput
from fedmpi.kinds import Kind, file_of, imported

if TYPE_CHECKING:
    from fedmpi.datasets.raw import Int, RawGraphs

SPLIT_SEED = 123
"""GCFL's released code draws every partition and split with this seed, whatever the run's seed."""


class PartitionOptions(Options):
    """Base of all partitions' options; a suite finds a partition under the default of `name`."""

    name: str
    seed: int = Field(default=SPLIT_SEED, ge=0, lt=2**32)
    """Of the partition and the split, apart from the run's seed."""

    several: ClassVar[bool] = False
    """Whether it takes several datasets; else it deals out one."""
    holds_out: ClassVar[bool] = True
    """Whether clients have validation and test graphs."""
    maker: ClassVar[str] = "fedmpi.partition.partition:divided"
    """Function that makes the clients, ``module:function``, which `make` calls with options and datasets."""

    def num_clients(self, datasets: int) -> int:
        """Return the number of clients, known before any data is read."""
        return datasets

    def make(self, raws: Sequence[RawGraphs]) -> Any:
        """Return the clients, a `fedmpi.partition.partition.Partition`."""
        return imported(self.maker)(self, raws)


class OneDataset(PartitionOptions):
    """Base of partitions that deal out one dataset; each client's graphs are then split 80/10/10."""

    clients: int = Field(default=10, ge=1)
    """Number of clients."""

    dealer: ClassVar[str] = ""
    """Function that deals, ``module:function``, which `deal` calls with options and classes."""

    def num_clients(self, datasets: int) -> int:
        """Return the number of clients."""
        return self.clients

    def overlaps(self) -> bool:
        """Return whether `deal` may give a graph several times, to one client or to several."""
        return False

    def deal(self, raw: RawGraphs, classes: Int) -> Sequence[Int]:
        """Return the graphs of each client, a pure function of options and arguments.

        Parameters
        ----------
        raw : RawGraphs
        classes : int64 [G]
            Class of each graph, by which its split is stratified.

        Returns
        -------
        sequence of int64 arrays
            Graph numbers, one array for each client.
        """
        found: Sequence[Int] = imported(self.dealer)(self, classes)
        return found


class Parts(OneDataset):
    """Base of partitions that say how each client's examples are split."""

    parts: str = "80/10/10"
    """Percent of training, validation and test examples, or "dataset": those that it fixes (Planetoid's 20
    training nodes of each class and 1,500 held-out ones; a knowledge graph's files)."""

    added: ClassVar[frozenset[str]] = frozenset({"parts"})

    @field_validator("parts")
    @classmethod
    def _add_up(cls, value: str) -> str:
        """Refuse what are no three whole percents."""
        percents = [int(part) for part in re.findall(r"[1-9][0-9]?", value)]
        if value != "dataset" and (
            value != "/".join(map(str, percents)) or len(percents) != 3 or sum(percents) != 100
        ):
            raise ValueError('three whole percents such as "60/20/20", 100 together, or "dataset"')
        return value

    @property
    def shares(self) -> tuple[float, float, float] | None:
        """Shares of the three parts; None for those of the dataset."""
        if self.parts == "dataset":
            return None
        train, val, test = (int(part) / 100 for part in self.parts.split("/"))
        return train, val, test


class Chunks(OneDataset):
    """GCFL's one-dataset setting: a block of 50 graphs per client, the rest at random."""

    dealer: ClassVar[str] = "fedmpi.partition.draws:chunks"

    paper: ClassVar[str] = "Xie et al., GCFL, NeurIPS 2021"
    name: Literal["chunks"] = "chunks"
    overlap: bool = False
    """Whether each client draws 50 to 149 graphs with replacement instead."""

    def overlaps(self) -> bool:
        """Return whether graphs are drawn with replacement."""
        return self.overlap


class PerDataset(PartitionOptions):
    """One client per dataset."""

    several: ClassVar[bool] = True
    maker: ClassVar[str] = "fedmpi.partition.partition:per_dataset"

    paper: ClassVar[str] = "Xie et al., GCFL, NeurIPS 2021"
    name: Literal["per-dataset"] = "per-dataset"
    tiny: bool = False
    """Whether a client has only 150 graphs of its dataset, stratified by class."""


class Iid(Parts):
    """One dataset dealt out at random in equal shares."""

    dealer: ClassVar[str] = "fedmpi.partition.draws:iid"

    name: Literal["iid"] = "iid"


class _Dirichlet(Parts):
    alpha: float = Field(default=0.5, gt=0, allow_inf_nan=False)
    """Of the symmetric Dirichlet distribution; the smaller, the more uneven are the shares."""
    min_graphs: int = Field(default=10, ge=6)
    """Shares are drawn anew until every client has so many graphs."""


class DirichletLabel(_Dirichlet):
    """Each class is dealt out in shares drawn from a symmetric Dirichlet distribution."""

    dealer: ClassVar[str] = "fedmpi.partition.draws:dirichlet_label"

    name: Literal["dirichlet-label"] = "dirichlet-label"


class DirichletQuantity(_Dirichlet):
    """The whole dataset is dealt out in shares drawn from a symmetric Dirichlet distribution."""

    dealer: ClassVar[str] = "fedmpi.partition.draws:dirichlet_quantity"

    name: Literal["dirichlet-quantity"] = "dirichlet-quantity"


class _Cut(Parts):
    """Base of cuts of one large graph, whose nodes or edges are the examples."""

    cutter: ClassVar[str]
    """Function that returns each client's nodes, ``module:function``, called with options and topology."""

    def deal(self, raw: RawGraphs, classes: Int) -> Sequence[Int]:
        """Return the examples of each client: nodes of its part, or edges with both ends in it."""
        if raw.graph_classes is not None or raw.places is None or raw.num_graphs != 1:
            instead = 'use "iid"' if raw.graph_classes is None else 'remove dataset.egos, or use "iid"'
            raise BadInput(
                f"partition '{self.name}' cuts one large graph whose nodes or edges have labels, "
                f"{raw.name} is none here: {instead}"
            )
        import numpy as np

        from fedmpi.datasets.networks import undirected

        places, topology = np.asarray(raw.places), raw.topology
        if raw.examples == "edge":
            topology = undirected(places[:, 0], places[:, 1], topology.graph_ptr)
        owner = np.full(topology.num_nodes, -1)
        for client, part in enumerate(imported(self.cutter)(self, topology)):
            owner[part] = client
        ends = owner[places].reshape(len(places), -1)
        held = np.where((ends == ends[:, :1]).all(axis=1), ends[:, 0], -1)
        return [np.flatnonzero(held == client) for client in range(self.clients)]


class Louvain(_Cut):
    """One large graph cut by communities, which are joined to clients of about one size."""

    cutter: ClassVar[str] = "fedmpi.partition.cuts:louvain"

    paper: ClassVar[str] = "Blondel et al. 2008"
    name: Literal["louvain"] = "louvain"
    resolution: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Of the communities: the larger it is, the smaller they are."""


class Metis(_Cut):
    """One large graph cut into parts of about one size with few edges between them; needs pymetis."""

    cutter: ClassVar[str] = "fedmpi.partition.cuts:metis"

    paper: ClassVar[str] = "Karypis and Kumar 1998"
    name: Literal["metis"] = "metis"


class Metadata(Parts):
    """Examples of one value of what the dataset says of them stay together.

    The values, in a random order, are dealt out to the clients in runs of about one length.
    """

    dealer: ClassVar[str] = "fedmpi.partition.draws:metadata"

    name: Literal["metadata"] = "metadata"
    by: Literal["category", "class", "scaffold"] = "class"
    """"category": the graph that an edge is of, as items of one category; "class": the class of a graph or
    node, the relation of an edge; "scaffold": that of a molecule."""

    def deal(self, raw: RawGraphs, classes: Int) -> Sequence[Int]:
        """Return the examples of each client."""
        found: Sequence[Int] = imported(self.dealer)(self, raw, classes)
        return found


class Given(Parts):
    """The clients that the dataset states: `client` of one's own graphs, nodes or molecules."""

    maker: ClassVar[str] = "fedmpi.partition.partition:as_given"

    name: Literal["given"] = "given"


class DominantShare(OneDataset):
    """FCLG's setting: each class has `share` of its graphs on its own clients, the rest on the others.

    With C classes every run of ``clients / C`` clients is home to one class. All graphs are training graphs.
    """

    holds_out: ClassVar[bool] = False
    dealer: ClassVar[str] = "fedmpi.partition.draws:dominant_share"

    paper: ClassVar[str] = "FCLG"
    name: Literal["dominant-share"] = "dominant-share"
    clients: int = Field(default=6, ge=2)
    """Number of clients, a multiple of the classes."""
    share: Annotated[float, Field(gt=0, le=1)] | Literal["uniform"] = 0.8
    """Of a class on its own clients; "uniform" is 1 / C, the paper's IID setting, 0.8 its non-IID one."""

    @field_validator("share", mode="before")
    @classmethod
    def _known(cls, share: object) -> object:
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if share != "uniform" and not (number and 0 < share <= 1):  # type: ignore[operator]
            raise ValueError('a share is above 0 and at most 1, or "uniform"')
        return share


class FedGraphNN(OneDataset):
    """FedGraphNN's setting: the dataset is split once, then each part is dealt out to all clients."""

    maker: ClassVar[str] = "fedmpi.partition.partition:split_then_dealt"

    paper: ClassVar[str] = "He et al., FedGraphNN, 2021"
    name: Literal["fedgraphnn"] = "fedgraphnn"
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Of the partition and the split, apart from the run's seed; 0 as published."""
    clients: int = Field(default=4, ge=1)
    """Number of clients."""
    alpha: float = Field(default=0.5, gt=0, allow_inf_nan=False)
    """Of the symmetric Dirichlet distribution; the smaller, the more uneven are the shares."""
    allocation: Literal["quantity", "label", "uniform"] = "quantity"
    """One Dirichlet draw per part, as the released code ("quantity"); one per class, as the paper's text
    ("label"); or equal shares."""
    split: Literal["random", "stratified", "scaffold"] = "random"
    """"random" 80/10/10 as for molecules, "stratified" 81/9/10 as for TU datasets, or by "scaffold"."""


class PopulationOptions(OneDataset):
    """Cross-device setting: each round samples clients of a population, whose graphs are drawn when sampled.

    The dataset is split 80/10/10 once. A client's training graphs are a function of its number. Held-out
    graphs score the server's model; they belong to nobody. Clients keep nothing from round to round.
    """

    maker: ClassVar[str] = "fedmpi.partition.partition:of_population"

    name: Literal["population"] = "population"
    clients: int = Field(default=100, ge=1)
    """Clients sampled in each round."""
    population: int = Field(default=1_000_000, ge=1, lt=2**53)
    """Number of clients."""
    graphs: int = Field(default=12, ge=1)
    """Training graphs of a client, drawn with replacement."""
    alpha: Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["iid"] = "iid"
    """"iid": classes as in the dataset; a number: shares drawn from a Dirichlet distribution of alpha times
    the dataset's, the smaller the more uneven (Hsu et al. 2019)."""

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if self.clients > self.population:
            raise ValueError(f"clients = {self.clients} of a population of {self.population}: use fewer")
        return self


def _refuse(kind: type[PartitionOptions]) -> None:
    """Raise BadInput for a partition that says nowhere who gets what."""
    usual = OneDataset if issubclass(kind, OneDataset) else PartitionOptions
    own = ("maker", "make", "dealer", "deal")
    if all(getattr(kind, part, None) == getattr(usual, part, None) for part in own):
        place = f"{file_of(kind)}: class {kind.__name__}"
        raise BadInput(f"{place}: it must define `deal`, as OneDataset says, or `make`")


PARTITIONS: Kind[PartitionOptions] = Kind(
    "partition", PartitionOptions, "fedmpi.partition.options", "fedmpi.partitions", refuse_misfit=_refuse
)
"""Options of every partition by name."""

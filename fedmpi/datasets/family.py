"""A family of datasets: names, what is known of each, where its files are and how they are read."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from fedmpi.datasets.raw import ExampleKind, LabelKind, RawGraphs
from fedmpi.datasets.tables import CELLS, DatasetFacts
from fedmpi.errors import BadInput
from fedmpi.kinds import Kind, file_of

if TYPE_CHECKING:
    from fedmpi.datasets.options import DatasetOptions

DATASET_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")
"""Names a folder and an archive: short enough for both."""


class Family:
    """Base of all families: a subclass has a `name`, `names` of datasets, and `read` or `generate`."""

    name: ClassVar[str]
    title: ClassVar[str] = ""
    """What `fedmpi data list` writes above its table."""
    names: ClassVar[Collection[str]] = ()
    """Datasets that are known."""
    facts: ClassVar[Mapping[str, DatasetFacts]] = {}
    """Sizes of those of which they are known."""
    digests: ClassVar[Mapping[str, str]] = {}
    """Digest that all copies of a dataset have, where it is known."""
    groups: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Several datasets under one name, one client each."""
    folder: ClassVar[str] = ""
    """Of the files in a mirror and of the prepared sets in the cache; by default the family's name."""
    upstream: ClassVar[str] = ""
    """Address that files of a dataset are appended to; empty where nothing can be downloaded."""
    prepared: ClassVar[bool] = True
    """Whether sets are kept in the cache; else they are made of the options at every start."""
    examples: ClassVar[ExampleKind] = "graph"
    """What the labels of its datasets are of."""
    labels: ClassVar[LabelKind] = "classification"
    """What kind of labels these are, where `task` says nothing else."""
    scaffolds: ClassVar[bool] = False
    """Whether its graphs are molecules read from SMILES, which have scaffolds."""
    edge_attributes: ClassVar[bool] = True
    """Whether edges of its datasets may have attributes; False: none of them has."""
    columns: ClassVar[tuple[str, ...]] = ("name", "task")
    """Headings of `row`."""
    Options: ClassVar[type[Any] | None] = None
    """Options of its datasets in a suite: a subclass of `fedmpi.datasets.options.DatasetOptions`."""

    def takes(self, name: str) -> bool:
        """Return whether a name that no family knows can be one of its datasets."""
        return False

    def task(self, name: str) -> LabelKind:
        """Return the task of a dataset's labels."""
        return self.labels

    def weighted(self, name: str) -> bool:
        """Return whether a dataset states what each graph counts in the training loss."""
        return False

    def row(self, name: str) -> tuple[str | int, ...]:
        """Return the cells of a dataset under `columns`."""
        if name not in self.facts:
            return name, self.task(name)
        return tuple(getattr(self.facts[name], CELLS.get(column, column)) for column in self.columns)

    def sizes(self, options: DatasetOptions) -> list[DatasetFacts]:
        """Return the sizes of the options' dataset, one entry for each that is generated; none if unknown."""
        return [self.facts[options.name]] if options.name in self.facts else []

    def count(self, options: DatasetOptions) -> int:
        """Return how many datasets `generate` makes of the options."""
        return 1

    def degree_max(self, name: str) -> int | None:
        """Return the largest degree of any node, None where it is not known."""
        return self.facts[name].degree_max if name in self.facts else None

    def digest(self, name: str) -> str:
        """Return the digest that all copies of a dataset have, empty where none is known."""
        return self.digests.get(name, "")

    def rows(self, name: str) -> int:
        """Return how many rows a dataset's file has, 0 where that is not known."""
        return 0

    def generate(self, options: DatasetOptions) -> tuple[RawGraphs, ...]:
        """Return the datasets of the options, where nothing is prepared."""
        raise NotImplementedError

    def file(self, name: str) -> str:
        """Return the name of a dataset's file, empty where it needs none or several."""
        return ""

    def files(self, name: str) -> tuple[str, ...]:
        """Return the names of a dataset's files, none where it needs none; folders are separated by ``/``."""
        file = self.file(name)
        return (file,) if file else ()

    def locate(self, name: str, mirror: Path | None) -> Path | None:
        """Return the file of a dataset at hand, or the folder of all its `files`; None without."""
        files = self.files(name)
        if mirror is None or not files:
            return None
        folder = mirror / self.place
        return path_to_read(folder, files) if all((folder / file).is_file() for file in files) else None

    def refuse_missing(self, name: str) -> None:
        """Raise BadInput for a dataset whose file is not at hand, if it is not worth a download."""
        if not self.upstream:
            raise BadInput(
                f"dataset {name} needs {', '.join(self.files(name))}: "
                f"set FEDMPI_MIRROR=DIR, with it in DIR/{self.place}"
            )

    def require(self) -> None:
        """Raise BadInput where a package is missing that reads the files."""

    def check(self, path: Path, name: str) -> None:
        """Raise BadInput for a file that cannot be the dataset's, without reading all of it."""

    def read(self, path: Any, name: str) -> RawGraphs:
        """Return a dataset, read from its file, or the folder of several (None where it needs none).

        Raises
        ------
        BadInput
            The file is damaged, larger than the dataset's can be, or not consistent.
        """
        raise NotImplementedError

    def remarks(self, raw: RawGraphs) -> Sequence[str]:
        """Return lines about a dataset that a run and `fedmpi data fetch` print."""
        return ()

    @property
    def place(self) -> str:
        """Folder below mirror and cache."""
        return self.folder or self.name

    def prepared_in(self, name: str) -> str:
        """Return the folder of a prepared set below the cache; an edited plug-in has another one."""
        versions = [digest[:12] for digest in FAMILIES.sources(type(self)).values()]
        return f"{'-'.join([self.place, *versions])}/{name}"


def path_to_read(folder: Path, files: tuple[str, ...]) -> Path:
    """Return what a family reads: the one file in a folder, or the folder of several."""
    return folder / files[0] if len(files) == 1 else folder


def _refuse_misfit(kind: type[Family]) -> None:
    """Raise BadInput for a family whose datasets cannot be named so."""
    wrong = [name for name in kind.names if not isinstance(name, str) or not DATASET_NAME.fullmatch(name)]
    if isinstance(kind.names, str) or wrong:
        place = f"{file_of(kind)}: class {kind.__name__}: names"
        raise BadInput(f"{place}: must be a tuple of names of letters, digits, _ and -, not {kind.names!r}")


FAMILIES: Kind[Family] = Kind(
    "dataset family",
    Family,
    "fedmpi.datasets.families",
    "fedmpi.families",
    refuse_misfit=_refuse_misfit,
    required=(("read", "generate"),),
)
"""All families by name."""

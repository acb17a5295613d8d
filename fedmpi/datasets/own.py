"""Datasets of one's own: a path in place of a name."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qsl

import numpy as np
import numpy.typing as npt

from fedmpi.config.documents import short
from fedmpi.datasets import names
from fedmpi.datasets.family import FAMILIES, Family
from fedmpi.datasets.labels import KINDS, Labels, numbered
from fedmpi.datasets.names import ASK
from fedmpi.datasets.raw import Int, LabelKind, RawGraphs
from fedmpi.datasets.remarks import remarks
from fedmpi.errors import BadInput
from fedmpi.visible import visible

FILES = (".csv", ".csv.gz", ".parquet", ".sdf", ".sdf.gz", ".pt")
"""Endings of the names of files; any other path is a folder's."""

_LARGEST_WEIGHT = 1e12
"""Of an example: sums of products with losses stay finite."""

PARTS = {"": -1, "train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}
"""What files may say of the part of an example, in the numbers of `RawGraphs.parts`."""


class OwnData(Family):
    """Base of families whose datasets are paths; an edited file is prepared anew."""

    folder = "own"
    endings: ClassVar[tuple[str, ...]] = ()
    """Of the names of its files."""

    def takes(self, name: str) -> bool:
        """Return whether a name is the path of such a file."""
        return names.is_path(name) and name.partition(ASK)[0].endswith(self.endings)

    def file(self, name: str) -> str:
        """Return the last part of the path, which the root of all folders has not."""
        return self.path(name).name or "/"

    def path(self, name: str) -> Path:
        """Return the absolute path that a name states."""
        return absolute(name.partition(ASK)[0])

    def sources(self, name: str) -> Sequence[Path]:
        """Return the files that are read, where they are there."""
        return [self.path(name)]

    def locate(self, name: str, mirror: Path | None) -> Path | None:
        """Return the file, if it is there."""
        path = self.path(name)
        return path if path.is_file() else None

    def refuse_missing(self, name: str) -> None:
        """Say that there is no such file."""
        raise BadInput(f"no file {self.path(name)}")

    def labels_in(self, path: Path, name: str) -> Labels:
        """Return the labels of a dataset, without reading more than these."""
        raise NotImplementedError

    def task(self, name: str) -> LabelKind:
        """Return what the labels are for."""
        return _kind(self.name, self.path(name), name, self.state(name))

    def state(self, name: str) -> tuple[tuple[int, int], ...]:
        """Return size and time of the files, which change with their content.

        Raises
        ------
        BadInput
            They are not there.
        """
        if self.locate(name, None) is None:
            self.refuse_missing(name)
        found = [source.stat() for source in self.sources(name) if source.is_file()]
        return tuple((status.st_size, status.st_mtime_ns) for status in found)

    def remarks(self, raw: RawGraphs) -> Sequence[str]:
        """Return what is worth a look; see `fedmpi.datasets.remarks`."""
        return list(remarks(raw))

    def prepared_in(self, name: str) -> str:
        """Return a folder for this state of the files: edited ones ask for a new preparation."""
        path, said = self.path(name), name.partition(ASK)[2]
        state = hashlib.blake2b(str(path.resolve()).encode(errors="surrogatepass"), digest_size=8)
        state.update(said.encode(errors="surrogatepass"))
        for source in self.sources(name):
            if source.is_file():
                part = source.stem.removeprefix(f"{path.name}_")
                status = source.stat()
                state.update(f"{part} {status.st_size} {status.st_mtime_ns}\n".encode())
        return f"{self.place}/{path.name}-{state.hexdigest()}"


@lru_cache(maxsize=64)
def _kind(family: str, path: Path, name: str, state: tuple[tuple[int, int], ...]) -> LabelKind:
    """Return the kind of a dataset's labels; the state is of its content."""
    reader = FAMILIES[family]()
    assert isinstance(reader, OwnData)
    return reader.labels_in(path, name).kind


def clients_of(texts: Sequence[str], where: str) -> tuple[Int, tuple[str, ...]]:
    """Return the client that each row states, and their names.

    Raises
    ------
    BadInput
        A row has none.
    """
    numbers, client_names = numbered([text.strip() for text in texts], where)
    if len(without := np.flatnonzero(numbers < 0)):
        raise BadInput(f"{where}: row {without[0] + 1} has no client: every row needs one")
    return numbers, client_names


def parts_of(texts: Sequence[str], where: str) -> npt.NDArray[np.int8]:
    """Return the part that each row states, as in `RawGraphs.parts`.

    Raises
    ------
    BadInput
        There is no such part.
    """
    said = [text.strip().lower() for text in texts]
    for number, text in enumerate(said):
        if text not in PARTS:
            valid = ", ".join(filter(None, PARTS))
            raise BadInput(f"{where}: row {number + 1}: '{short(visible(text))}' is none of {valid}")
    return np.array([PARTS[text] for text in said], np.int8)


def weights_of(texts: Sequence[str], where: str) -> npt.NDArray[np.float32]:
    """Return what each row counts, float32 [n].

    Raises
    ------
    BadInput
        A row has no finite number of 0 or more, or none has more than 0.
    """
    found = np.zeros(len(texts), np.float32)
    for number, text in enumerate(texts):
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value <= _LARGEST_WEIGHT:
            said = short(visible(text.strip()))
            raise BadInput(f"{where}: row {number + 1}: '{said}' is no weight: each row needs one, 0 or more")
        found[number] = value
    if not found.any():
        raise BadInput(f"{where}: no row has a weight above 0")
    return found


def task_of(name: str) -> str:
    """Return the task that stands behind a path of which no more can be said, or nothing."""
    return dict(said_of(name, ("task",))).get("task", "")


def said_of(name: str, known: Sequence[str]) -> list[tuple[str, str]]:
    """Return the keys and values behind a path, as in ``./mine.csv?smiles=mol&label=toxic``.

    Raises
    ------
    BadInput
        They are not written so, a key is not known or there twice (but ``label``), or no such task.
    """
    path, _, said = name.partition(ASK)
    try:
        pairs = parse_qsl(said.replace("+", "%2B"), strict_parsing=True) if said else []
    except ValueError as error:
        raise BadInput(f'{path}: "{said}": say it as in ./mine.csv?smiles=mol&label=toxic') from error
    for key, value in pairs:
        if key not in known:
            raise BadInput(f'{path}: there is no "{key}" (valid: {", ".join(known)})')
        if key == "task" and value not in KINDS:
            raise BadInput(f'{path}: there is no task "{value}" (valid: {", ".join(KINDS)})')
    once = [key for key, _ in pairs if key != "label"]
    if len(set(once)) < len(once):
        raise BadInput(f"{path}: only label may be said several times")
    return pairs


def absolute(name: str) -> Path:
    """Return the absolute path of a file or folder, which need not be there.

    Raises
    ------
    BadInput
        Nothing can have this path.
    """
    try:
        path = Path(name).expanduser().absolute()
        path.exists()
    except (OSError, ValueError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"'{short(name)}' cannot be the path of a dataset: {reason}") from error
    return path

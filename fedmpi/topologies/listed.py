"""A graph of a file of edges."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import PrivateAttr, model_validator

from fedmpi.errors import BadInput
from fedmpi.topologies.base import Ints, TopologyOptions, both_ways

_EDGE = re.compile(r"\s*([0-9]{1,18})\s+([0-9]{1,18})\s*")


class FileOptions(TopologyOptions):
    """The edges of a text file: two numbers of clients a line, from 0; # begins a comment."""

    name: Literal["file"] = "file"
    path: str
    """The file; below the folder where the command runs, unless the path is absolute."""
    sha256: str = ""
    """Of the file; filled in, so that a run goes on with the graph that it began with."""
    _text: bytes = PrivateAttr(b"")  # a sweep begins its cases long after it read them

    @model_validator(mode="before")
    @classmethod
    def _fill_digest(cls, values: Any) -> Any:
        if not isinstance(values, dict) or not isinstance(path := values.get("path"), str):
            return values
        found = hashlib.sha256(_content(path)).hexdigest()
        if values.get("sha256", "") not in ("", found):
            raise ValueError(f"{path} is not the file that the run began with: give that one")
        return {**values, "sha256": found}

    def model_post_init(self, context: Any) -> None:
        """Keep what the file says."""
        self._text = _content(self.path)

    def links(self, num_clients: int, turn: int, seed: int) -> Ints:
        """See `TopologyOptions`."""
        edges = []
        for number, line in enumerate(self._text.decode("utf-8", "replace").splitlines(), 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            words = _EDGE.fullmatch(line)
            if words is None:
                raise BadInput(f"{self.path}, line {number}: use two numbers of clients, from 0")
            edge = [int(word) for word in words.groups()]
            if max(edge) >= num_clients:
                raise BadInput(f"{self.path}, line {number}: use clients 0 to {num_clients - 1}")
            edges.append(edge)
        return both_ways(edges)


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"{path} cannot be read ({reason}): give a file of edges") from None

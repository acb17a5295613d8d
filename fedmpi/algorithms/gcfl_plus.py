"""GCFL+: groups divided by dynamic time warping of their clients' gradient-norm sequences.

Xie, Ma, Xiong and Yang, NeurIPS 2021, section 5.2. The paper's text speaks of
the norms of the updates; the released ``gcflplus`` takes the norm of the last
batch's gradient, its ``gcflplusdWs`` that of the update.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedmpi.algorithms.base import Floats, Ints, Rows
from fedmpi.algorithms.clustered import _PAPER, _RELEASED, Clustered, ClusteredOptions
from fedmpi.algorithms.program import Conversation, Server


class GcflPlusOptions(ClusteredOptions):
    """What `ClusteredOptions` has, and the sequences."""

    name: Literal["gcfl-plus", "gcfl-plus-dws"] = "gcfl-plus"
    sequence: Literal["gradient", "delta"] = "gradient"
    """Norms of the last batch's gradient (released code), or of the update ("delta", paper)."""
    length: int = Field(10, ge=2)
    """Values of a sequence that are compared; no group splits before every client has so many."""
    after_split: Literal["cleared", "kept"] = "cleared"
    """All sequences start anew ("cleared", released code), or the window slides on ("kept", paper)."""
    standardise: bool = False
    """Whether each sequence is divided by its standard deviation (Eq. 20); a constant one stays as it is."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "released-code": {**_RELEASED, "sequence": "gradient", "after_split": "cleared"},
        "paper": {**_PAPER, "sequence": "delta", "after_split": "kept"},
    }


class GcflPlus(Clustered):
    """GCFL+: groups split by their clients' sequences of norms, compared by dynamic time warping.

    Edge weight of two clients: largest distance of the group minus theirs.
    """

    name = "gcfl-plus"
    paper = "Xie et al., NeurIPS 2021, section 5.2"
    Options = GcflPlusOptions
    options: GcflPlusOptions

    def server_memory(self, trained: int, num_clients: int) -> Mapping[str, Floats]:
        """Return the clients' sequences, NaN for values that are not there yet."""
        return {"sequences": np.full((num_clients, self.options.length), np.nan)}

    def warm_up(self) -> None:
        """Have tslearn compile its dynamic time warping: seconds, of which the cache saves most."""
        from tslearn.metrics import _dtw, _masks

        from fedmpi.graphs import jit

        jit.keep(_dtw, _masks)
        _warped_distances(np.zeros((2, self.options.length)))

    def decide(self, server: Server) -> Conversation:
        """Append the round's value of each participant, and cut; forget all sequences then if asked to."""
        column = "gradient_norm" if self.options.sequence == "gradient" else "delta_norm"
        for client in server.participants:
            row = self.server["sequences"][client]
            known = np.append(row[~np.isnan(row)], server.reports[column][client])[-self.options.length :]
            row[: len(known)] = known
        groups = server.group.max()
        yield from super().decide(server)
        if server.group.max() > groups and self.options.after_split == "cleared":
            self.server["sequences"].fill(np.nan)

    def candidates(self, server: Server, longest: Floats) -> list[int]:
        """Return the groups that meet Eq. 5, once every client has a whole sequence."""
        if np.isnan(self.server["sequences"]).any():
            return []
        return super().candidates(server, longest)

    def edges(self, members: Ints, rows: Rows) -> Floats:
        """Return the warped closeness."""
        series = self.server["sequences"][members]
        if self.options.standardise:
            deviation = series.std(axis=1, keepdims=True)
            series = series / np.where(deviation > 0, deviation, 1.0)
        distances = _warped_distances(series)
        closeness: Floats = distances.max() - distances
        return closeness


def _warped_distances(series: Floats) -> Floats:
    """Return the dynamic time warping distance of every two sequences [k, length], float64 [k, k]."""
    from tslearn.metrics import cdist_dtw

    distances: Floats = cdist_dtw(series)
    return distances


class GcflPlusDws(GcflPlus):
    """GCFL+ on the norms of the updates, whatever the protocol: the released ``gcflplusdWs``."""

    name = "gcfl-plus-dws"
    paper = "Xie et al., NeurIPS 2021, section 5.2"

    class Options(GcflPlusOptions):
        """See `GcflPlusOptions`; only the sequence's default differs."""

        name: Literal["gcfl-plus-dws"] = "gcfl-plus-dws"

        presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
            name: {**preset, "sequence": "delta"} for name, preset in GcflPlusOptions.presets.items()
        }

"""What the scripts of simulators share: arguments, times of rounds, the score of the last model."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from reference import GIN, Splits, hits_of
from torch import Tensor
from torch_geometric.data import Batch, Data


def arguments(description: str) -> argparse.ArgumentParser:
    """Return the arguments that every simulator takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("graphs", type=Path, help="file of the clients' graphs")
    parser.add_argument("--rounds", type=int, default=10, help="the first does not count")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=10)
    return parser


def collate(graphs: Iterable[Data]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return features, edges, the graph of each node, and labels of a batch."""
    batch = Batch.from_data_list(list(graphs))
    return batch.x, batch.edge_index, batch.batch, batch.y


class Rounds:
    """Clocks after each round, and what was trained and evaluated until then."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, ...]] = []

    def note(self, cpu: float, trained: float, loss_sum: float, evaluated: float) -> None:
        """Note what is so far: CPU seconds, graphs trained, sum of their losses, graphs evaluated."""
        self.rows.append((time.perf_counter(), cpu, trained, loss_sum, evaluated))


def report(rows: Sequence[Sequence[float]], model: GIN, clients: Sequence[Splits]) -> None:
    """Print one JSON object: means and losses of the rounds after the first, and the last accuracy."""
    steps = np.diff(np.array(rows), axis=0)
    wall, cpu, trained, losses, evaluated = steps.T
    found = {
        "round_seconds": wall.mean(),
        "round_cpu_seconds": cpu.mean(),
        "trained": sorted(set(trained.tolist())),
        "evaluated": sorted(set(evaluated.tolist())),
        "train_loss": (losses / trained).tolist(),
        "test_accuracy": score(model, clients),
    }
    print(json.dumps(found), flush=True)


@torch.no_grad()
def score(model: GIN, clients: Sequence[Splits]) -> float:
    """Return the mean over clients of the test accuracy."""
    model.eval()
    shares = []
    for _, _, test in clients:
        *inputs, labels = collate(test)
        shares.append(hits_of(model(*inputs), labels) / len(test))
    return float(np.mean(shares))

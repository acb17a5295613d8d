"""Prepared molecule sets of random graphs, so that neither files nor RDKit are needed."""

from itertools import pairwise

import numpy as np

from fedmpi.datasets import cache
from fedmpi.datasets.atoms import ATOM_COLUMNS
from fedmpi.datasets.families.moleculenet import MOLECULES
from fedmpi.datasets.raw import RawGraphs
from tests.making import packed


def prepare(data):
    """Write 60 graphs each as SIDER and ESOL into a data cache; labels follow from size and atoms."""
    for name, tasks in (("SIDER", 3), ("ESOL", 1)):
        cache.save(_random(name, tasks), data / "moleculenet" / name, "test")
    return data


def _random(name, tasks):
    rng = np.random.default_rng(tasks)
    sizes = rng.integers(4, 9, 60)
    atoms = rng.integers(0, 4, (int(sizes.sum()), 8)).astype(np.float32)
    atoms[:, 0] += 5
    topology = packed(*((size, [(node, node + 1) for node in range(size - 1)]) for size in sizes.tolist()))
    means = np.array([atoms[a:b].mean(axis=0) for a, b in pairwise(topology.graph_ptr)])
    labels = means[:, :tasks] + rng.normal(size=(60, tasks)) / 4
    if MOLECULES[name].kind == "multi-task":
        labels = (labels > np.median(labels, axis=0)).astype(float)
        labels[rng.random(labels.shape) < 0.2] = np.nan
        labels[np.isnan(labels).all(axis=1), 0] = 1.0
    return RawGraphs(
        name,
        topology,
        atoms[:, :1].astype(np.int64),
        (119,),
        atoms,
        labels,
        tuple(f"task-{task}" for task in range(tasks)),
        task=MOLECULES[name].kind,
        attribute_names=ATOM_COLUMNS,
        edge_attributes=rng.integers(0, 2, (topology.num_edges, 6)).astype(np.uint8),
        scaffolds=np.arange(60),
    )

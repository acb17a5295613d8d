"""Folders in the raw format of the Open Graph Benchmark."""

import gzip

import numpy as np


def drawn(num_graphs=12, seed=1):
    """Return the files of small graphs without self-loops and duplicates, each edge in one direction."""
    draws = np.random.default_rng(seed)
    sizes = draws.integers(3, 6, size=num_graphs)
    edges = [
        [(a, b) if draws.integers(2) else (b, a) for a in range(size) for b in range(a) if draws.integers(4)]
        for size in sizes
    ]
    counts = [len(each) for each in edges]
    return {
        "raw/num-node-list": sizes[:, None],
        "raw/num-edge-list": np.array(counts)[:, None],
        "raw/edge": np.array([pair for each in edges for pair in each]),
        "raw/node-feat": draws.integers(0, 9, size=(sum(sizes), 3)),
        "raw/edge-feat": draws.integers(-8, 8, size=(sum(counts), 2)) / 4,
        "raw/graph-label": np.arange(num_graphs)[:, None] % 2,
        "split/scaffold/train": np.arange(0, num_graphs - 6)[:, None],
        "split/scaffold/valid": np.arange(num_graphs - 6, num_graphs - 3)[:, None],
        "split/scaffold/test": np.arange(num_graphs - 3, num_graphs)[:, None],
    }


def write(folder, files):
    """Write files, each an array or text, and return the folder."""
    for name, content in files.items():
        path = folder / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = (
            content
            if isinstance(content, str)
            else "".join(f"{','.join(map(str, row))}\n" for row in content.tolist())
        )
        with gzip.open(path, "wt") as stream:
            stream.write(rows)
    return folder

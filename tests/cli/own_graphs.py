"""Graphs of a user's own in the format of TU Dortmund."""


def write_graphs(place, name, labels):
    """Write the dataset ``own/NAME`` in a folder, for each label a graph of two nodes; return where."""
    folder, numbers = place / "own" / name, range(len(labels))
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "A": (f"{2 * g + 1}, {2 * g + 2}\n{2 * g + 2}, {2 * g + 1}\n" for g in numbers),
        "graph_indicator": (f"{g + 1}\n{g + 1}\n" for g in numbers),
        "graph_labels": (f"{label}\n" for label in labels),
    }
    for ending, lines in files.items():
        (folder / f"{name}_{ending}.txt").write_text("".join(lines))
    return folder

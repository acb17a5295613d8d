"""Vectors of graphs in the plane by t-SNE, a panel per kept round, a colour per class (FCLG, Figure 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from pydantic import Field

from fedmpi.analysis.figures import KindOptions, style
from fedmpi.analysis.names import COLOURS, dataset_name, unsupervised_name
from fedmpi.analysis.scores import curve
from fedmpi.analysis.summary import setting
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.store import embeddings
from fedmpi.store.reader import Run


class Options(KindOptions):
    """Options of ``t-sne``.

    Attributes
    ----------
    perplexity : float
        As scikit-learn's; the neighbours that count.
    seed : int
        Of t-SNE.
    """

    perplexity: float = Field(30.0, gt=0)
    seed: int = Field(0, ge=0, lt=2**32)


def draw(runs: Sequence[Run], options: Options, source: DataSource | None = None) -> Figure:
    """Return a row of panels per run, one for each round whose vectors are kept."""
    kept = [(run, _kept(run)) for run in runs]
    width = max(len(rounds) for _, rounds in kept)
    shown = [(run, number, found) for run, rounds in kept for number, found in rounds.items()]
    figure, axes = style.panels(len(shown), columns=width, height=2.5)
    for axis, (run, number, found) in zip(axes, shown, strict=True):
        places = _placed(found["vectors"], options)
        for label in np.unique(found["labels"]):
            across, up = places[found["labels"] == label].T
            colour = COLOURS[int(label) % len(COLOURS)]
            axis.scatter(across, up, s=4, linewidth=0, alpha=0.7, color=colour, label=f"class {int(label)}")
        metric = run.headline
        value = metric.scale * curve(run.results, metric)[number - 1]
        title = f"round {number}, {metric.title} {value:.1f}{' %' * metric.percent}"
        axis.set(title=title, xticks=[], yticks=[])
    style.add_legend(figure, axes)
    names = "; ".join(dict.fromkeys(map(_named, runs)))
    settings = f"perplexity {options.perplexity:g} and seed {options.seed}"
    return style.add_caption(figure, f"{names}: a dot per graph, coloured by class, t-SNE with {settings}.")


def _kept(run: Run) -> dict[int, dict[str, np.ndarray]]:
    """Return the vectors of the rounds that a run was asked to keep.

    Raises
    ------
    BadInput
        It was asked for none, or some are not there.
    """
    asked = run.config.get("evaluation", {}).get("embeddings") or []
    wanted = [number for number in asked if number <= run.rounds_completed]
    if not wanted:
        raise BadInput(
            f"{run.folder} keeps no vectors: run it with evaluation.embeddings = [1, 10, 20], for example"
        )
    found = embeddings.load(run.folder)
    missing = ", ".join(str(number) for number in wanted if number not in found)
    if missing:
        raise BadInput(
            f"{run.folder}: the vectors of round {missing} are gone: remove the folder and run the case again"
        )
    return {number: found[number] for number in wanted}


def _named(run: Run) -> str:
    """Return dataset, method and seed."""
    dataset, objective, algorithm = (
        str(setting(run.config, axis)) for axis in ("dataset", "objective", "algorithm")
    )
    return f"{dataset_name(dataset)}, {unsupervised_name(objective, algorithm)}, seed {run.config['seed']}"


def _placed(vectors: np.ndarray, options: Options) -> np.ndarray:
    """Return a place in the plane for each graph, [G, 2]; on one thread, so the same every time."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    perplexity = min(options.perplexity, (len(vectors) - 1) / 3)
    if (vectors == vectors[0]).all():
        return np.zeros((len(vectors), 2))  # nothing to tell apart, which t-SNE cannot take
    with threadpool_limits(1):
        start = "pca" if vectors.shape[1] > 1 else "random"
        found = TSNE(2, perplexity=perplexity, init=start, random_state=options.seed, n_jobs=1)
        return np.asarray(found.fit_transform(vectors.astype(np.float64)))

"""Compiles every kernel of a case before its rounds are timed."""

from __future__ import annotations

from functools import cache
from pickle import UnpicklingError

import numpy as np
import torch

from fedmpi.case.schema import Case
from fedmpi.comm import reductions
from fedmpi.datasets.names import family_of, members
from fedmpi.graphs import jit, pairs, sparse
from fedmpi.graphs.csr import Csr
from fedmpi.kernels import losses, vectors
from fedmpi.kernels.feed_forward import FastFeedForward
from fedmpi.kernels.scratch import Scratch
from fedmpi.kernels.warm_up import warm_up as compile_passes
from fedmpi.models.flat import FlatModel
from fedmpi.models.options import GinEncoderOptions, Shape
from fedmpi.objectives.unsupervised import InfoGraphNetwork


def warm_up_anew(case: Case) -> None:
    """Warm up, once more from an empty cache where a file in it is cut short.

    Of several runs that need the same kernels on a new machine the first compiles them.
    """
    with jit.by_one_process(case.model.name):
        try:
            warm_up(case)
        except (EOFError, UnpicklingError):
            jit.forget()
            warm_up(case)


def warm_up(case: Case) -> None:
    """Call every compiled kernel of a round, so that none is compiled while a round is timed."""
    vectors.warm_up()
    reductions.Exact(1, 0, 1).encode(np.zeros(1, np.float32), 1)
    reductions.Fixed32(1, 1.0).encode(np.zeros(1, np.float32), 1)
    if case.kernels == "csr" and case.model.examples != {"graph"}:
        sparse.warm_up()
        pairs.warm_up()
    if case.kernels == "compiled":
        compile_passes(case.model, family_of(members(case.dataset.name)[0]).examples)
        if not case.objective.supervised:
            _compile_losses()


@cache
def _compile_losses() -> None:
    """Compile losses and heads, or take them from the cache, by two graphs of a node each."""
    options = GinEncoderOptions(hidden=8, layers=2)
    model = FlatModel(InfoGraphNetwork(options, Shape(1, 2)))
    head = FastFeedForward(model, "node_head", Scratch())
    vectors = head(torch.ones(2, options.dimension, requires_grad=True))
    numbers = np.arange(3, dtype=np.int32)
    members = Csr(numbers, numbers[:2], np.ones(2, np.float32), 2)
    losses.jensen_shannon(vectors, vectors, members).backward()  # type: ignore[no-untyped-call]
    losses.inter(torch.ones(2, 1), torch.ones(2, 1), torch.ones(2), 0.5)

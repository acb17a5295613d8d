"""Compiles every kernel of a case before its rounds are timed."""

from __future__ import annotations

from pickle import UnpicklingError

import numpy as np

from fedmpi.case.schema import Case
from fedmpi.comm import reductions
from fedmpi.graphs import jit, pairs, sparse
from fedmpi.kernels import vectors
from fedmpi.kernels.warm_up import warm_up as compile_passes
from fedmpi.objectives.warm_up import warm_up as compile_losses


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
        compile_passes(case.model)
        if not case.objective.supervised:
            compile_losses()

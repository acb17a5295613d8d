"""Losses against labels with gaps and against numbers: by hand, and as torch has them."""

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from fedmpi.kernels.targets import LABELS, NUMBERS, judge_rows
from tests.making import assert_close

NAN = float("nan")


def judged(kind, logits, targets):
    """Return losses and gradient; a column of padding stands behind the logits."""
    logits, targets = np.array(logits, np.float32), np.array(targets)
    padded = np.pad(logits, ((0, 0), (0, 1)), constant_values=7)
    losses, gradient = np.empty(len(logits)), np.zeros(padded.shape, np.float32)
    judge_rows(kind, targets, logits.shape[1], padded, gradient, losses)
    assert not gradient[:, -1].any()
    return losses, gradient[:, :-1]


def test_binary_cross_entropy_by_hand():
    """Three labels are there: at logits 0, ln 3 and -ln 3 the probabilities are 1/2, 3/4 and 1/4."""
    three = np.log(3)
    losses, gradient = judged(LABELS, [[0, three], [-three, 5]], [[1, 0], [1, NAN]])
    assert losses == pytest.approx([np.log(2) + np.log(4), np.log(4)])
    assert_close(gradient, [[-1 / 6, 1 / 4], [-1 / 4, 0]], 1e-6)


def test_squared_error_by_hand():
    losses, gradient = judged(NUMBERS, [[3, 1], [-1, 5]], [[1, 1.5], [NAN, NAN]])
    assert losses == pytest.approx([4.25, 0])
    assert_close(gradient, [[2, -0.5], [0, 0]], 1e-6)


@pytest.mark.parametrize("spread", [1, 50])
def test_binary_cross_entropy_is_torchs_with_missing_labels(spread):
    draws = np.random.default_rng(3)
    logits = (spread * draws.standard_normal((20, 27))).astype(np.float32)
    targets = draws.integers(0, 2, (20, 27)).astype(float)
    targets[draws.random((20, 27)) < 0.3], targets[4] = NAN, NAN
    rows, known = torch.from_numpy(logits).double().requires_grad_(), ~np.isnan(targets)
    binary_cross_entropy_with_logits(rows[known], torch.from_numpy(targets[known])).backward()
    losses, gradient = judged(LABELS, logits, targets)
    each = binary_cross_entropy_with_logits(
        rows.detach(), torch.from_numpy(targets).nan_to_num(), reduction="none"
    )
    assert_close(losses, (each.numpy() * known).sum(axis=1), 1e-12)
    assert_close(gradient, rows.grad, 1e-7)


@pytest.mark.parametrize("kind", [LABELS, NUMBERS])
def test_a_batch_without_labels_has_neither_loss_nor_gradient(kind):
    losses, gradient = judged(kind, [[2.0]], [[NAN]])
    assert losses.tolist() == [0.0]
    assert gradient.tolist() == [[0.0]]

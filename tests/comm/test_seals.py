"""What is gathered carries a checksum: an MPI may say that a dead rank's part is there when nothing came."""

import numpy as np
import pytest

from fedmpi.comm.seals import SEAL, sealed, unsealed
from fedmpi.errors import RankFailed


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64, np.int64])
@pytest.mark.parametrize("size", [0, 1, 1000])
def test_a_part_comes_out_as_it_went_in(dtype, size):
    part = np.arange(size).astype(dtype)
    whole = sealed(part)
    assert whole.nbytes == part.nbytes + SEAL
    assert np.array_equal(unsealed(whole, 1), part)


@pytest.mark.parametrize(
    "harm",
    [
        lambda whole: np.zeros_like(whole),
        lambda whole: np.full_like(whole, np.nan),
        lambda whole: np.where(np.arange(len(whole)) < 500, whole, 0),
        lambda whole: np.where(np.arange(len(whole)) == 7, 1, whole),
        lambda whole: np.where(np.arange(len(whole)) == len(whole) - 1, 1, whole),
    ],
    ids=["zeros", "never written", "half of it", "one number", "its seal"],
)
def test_anything_else_is_refused(harm):
    whole = sealed(np.arange(1000, dtype=np.float32))
    with pytest.raises(RankFailed, match="the message of rank 3 arrived damaged"):
        unsealed(harm(whole).astype(np.float32), 3)
    with pytest.raises(RankFailed):  # nothing sent is told from nothing written
        unsealed(np.zeros(SEAL, np.uint8), 1)

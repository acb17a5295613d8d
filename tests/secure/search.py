"""Search for vectors and secrets in a transcript's bytes, whatever their format and wherever they begin."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from fedmpi.secure.field import PRIME

WINDOW = 16
"""Bytes in a row by which something is recognised: four words, or two doubles."""


def windows(vector: np.ndarray) -> set[bytes]:
    """Return what a vector is recognised by: every run of elements that are not next to 0."""
    width = WINDOW // vector.itemsize
    if len(vector) < width:
        return set()
    whole = np.lib.stride_tricks.sliding_window_view(vector, width)
    telling = (np.abs(whole.astype(np.float64)) > (0 if vector.dtype.kind == "f" else 255)).all(axis=1)
    return {row.tobytes() for row in whole[telling]}


def formats_of_an_update(delta: np.ndarray, weight: int) -> list[np.ndarray]:
    """Return an update as it is, in double precision, and as the summand of "exact"."""
    return [delta, delta.astype(np.float64), delta.astype(np.float64) * weight]


def formats_of_words(words: np.ndarray) -> list[np.ndarray]:
    """Return a quantised update in 32 and 64 bits, and as elements of LightSecAgg's field."""
    elements = np.mod(words, PRIME, dtype=np.int64)
    return [words, words.astype(np.int64), elements.astype(np.uint32), elements.astype(np.uint64)]


def found(content: bytes, needles: Iterable[bytes]) -> set[bytes]:
    """Return the needles, of 16 bytes, that are anywhere in a content."""
    wanted = set(needles)
    assert all(len(needle) == WINDOW for needle in wanted)
    heads = np.unique(np.frombuffer(b"".join(needle[:8] for needle in wanted), np.uint64))
    seen = set()
    for start in range(8):
        words = np.frombuffer(content[start : start + (len(content) - start) // 8 * 8], np.uint64)
        places = np.minimum(np.searchsorted(heads, words), len(heads) - 1)
        for place in np.flatnonzero(heads[places] == words) if len(heads) else ():
            at = start + 8 * int(place)
            if content[at : at + WINDOW] in wanted:
                seen.add(content[at : at + WINDOW])
    return seen


def transcript(folder: Path) -> tuple[list[dict], list[bytes]]:
    """Return the messages of a run's audit and their contents; all must have been kept."""
    lines = [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]
    messages = [line for line in lines if "kind" in line and line["bytes"]]
    assert all(message["kept"] for message in messages)
    whole = (folder / "audit.bin").read_bytes()
    contents = [whole[message["offset"] : message["offset"] + message["bytes"]] for message in messages]
    return messages, contents

"""What the machine can do with the operations of a round: dense products and streaming, measured."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from fedmpi.benchmarks.samples import Measurement, Turns, rates
from fedmpi.clock import Stopwatch

_SQUARES = {"cpu": (512, 1024, 2048), "cuda": (2048, 4096, 8192)}
_ROWS = (1024, 4096, 16384)
_SAMPLE_FLOPS = {"cpu": 5e8, "cuda": 5e11}
"""A sample repeats a small product until it has done so many, so that the clock's grain does not count."""

_SMALLEST_ARRAY = {"cpu": 64 << 20, "cuda": 1 << 30}
_CACHES_PER_ARRAY = 4
"""Times the last-level cache, the size of each array of the triad (STREAM's rule)."""

_WARMUP = 2


def synchronise(device: torch.device) -> None:
    """Wait until a GPU has done what it was given; nothing on a CPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def times(action: Callable[[], object], device: torch.device) -> dict[str, float]:
    """Return the seconds of an action until the device has done what it was given."""
    synchronise(device)
    watch = Stopwatch()
    action()
    synchronise(device)
    return {"wall_seconds": watch.wall, "cpu_seconds": watch.cpu}


def dense_sweep(device: torch.device, hidden: int, rows: int, repetitions: int) -> list[Measurement]:
    """Measure single-precision products in GFLOP/s.

    Parameters
    ----------
    device : torch.device
    hidden : int
        Width of the models' layers.
    rows : int
        Nodes of one of their batches; measured beside the sweep's own numbers of rows.
    repetitions : int

    Returns
    -------
    list of Measurement
        Products ``[k x k] x [k x k]`` (square), ``[n x hidden] x [hidden x hidden]`` (layer: the forward and
        the input gradient's product) and ``[hidden x n] x [n x hidden]`` (weight gradient), each by every
        library that torch has for it.
    """
    heights = sorted({*_ROWS, rows})
    shapes = [("square", (k, k, k)) for k in _SQUARES[device.type]]
    shapes += [("layer", (n, hidden, hidden)) for n in heights]
    shapes += [("weight gradient", (hidden, n, hidden)) for n in heights]
    return [
        _product(device, library, shape, sizes, repetitions)
        for shape, sizes in shapes
        for library in _libraries(device)
    ]


def _libraries(device: torch.device) -> dict[str, Callable[[Tensor, Tensor], Tensor]]:
    """Return torch's products by library: BLAS, and on a CPU oneDNN, which may know the processor better."""
    libraries: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"blas": torch.mm}
    if device.type == "cpu" and torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        linear = torch.ops.mkldnn._linear_pointwise
        libraries["onednn"] = lambda left, right: linear(left, right.T, None, "none", [], "")
    return libraries


def _product(
    device: torch.device, library: str, shape: str, sizes: tuple[int, int, int], repetitions: int
) -> Measurement:
    """Measure one product of row-major matrices; that of a weight gradient has its left one transposed."""
    m, k, n = sizes
    transposed = shape == "weight gradient"
    left = torch.rand((k, m), device=device).T if transposed else torch.rand((m, k), device=device)
    right, multiply = torch.rand((k, n), device=device), _libraries(device)[library]
    flops = 2 * m * k * n
    calls = max(1, math.ceil(_SAMPLE_FLOPS[device.type] / flops))

    def sample() -> None:
        for _ in range(calls):
            multiply(left, right)
        synchronise(device)

    seconds = Turns(repetitions, _WARMUP).seconds(sample)
    work = [calls * flops / 1e9] * repetitions
    labels: dict[str, str | int] = {"operation": "product", "library": library, "shape": shape}
    return Measurement({**labels, "size": f"{m}x{k}x{n}"}, {"rate": rates("GFLOP/s", work, seconds)})


def streaming(device: torch.device, repetitions: int) -> Measurement:
    """Measure the triad a = b + s c (McCalpin's STREAM) in GB/s: 12 bytes per element of float32 arrays.

    Each array is at least four times the last-level cache; the read of a cache line that is about to be
    written is not counted, as in STREAM.
    """
    size = max(_SMALLEST_ARRAY[device.type], _CACHES_PER_ARRAY * last_level_cache_bytes())
    a, b, c = (torch.ones(size // 4, device=device) for _ in range(3))

    def triad(target: Tensor = a) -> None:
        torch.add(b, c, alpha=3.0, out=target)
        synchronise(device)

    seconds = Turns(repetitions, _WARMUP).seconds(triad)
    moved = [3 * size / 1e9] * repetitions
    labels: dict[str, str | int] = {"operation": "triad", "shape": "array", "size": f"{size} B"}
    return Measurement(labels, {"rate": rates("GB/s", moved, seconds)})


def last_level_cache_bytes() -> int:
    """Return the size of the processor's largest cache as Linux tells it, 0 where it does not."""
    sizes = [0]
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text().strip()
        scale = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:], 1)
        sizes.append(int(text.rstrip("KM")) * scale)
    return max(sizes)


def fastest(measurements: list[Measurement], shape: str, rows: int | None = None) -> float:
    """Return the highest rate seen in products of a shape, or of a layer with so many rows.

    The best repetition, not the median: it says what can be reached, and whatever else the machine did can
    only have slowed the others (STREAM and Linpack do the same).
    """
    return max(
        each.figures["rate"].maximum
        for each in measurements
        if each.labels["shape"] == shape and (rows is None or str(each.labels["size"]).startswith(f"{rows}x"))
    )

"""Checks of the values that hooks return; a check returns the value as the engine uses it, or raises.

Plain functions of values, a few microseconds each; `fedmpi.programs.hooks` calls them where hooks are called.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from fedmpi.algorithms.program import Floats, Ints, Memory, Message, Size, Tensors
from fedmpi.store.schema import MEASUREMENTS, RESULTS, Field, axis_sizes
from fedmpi.store.stored import StoredField, in_words

LARGEST_WEIGHT = 2**29 - 1
"""A float32 times a weight up to it is exact in float64."""

_WEIGHT_BITS = 29
"""Significant bits of a weight that need not be whole, for the same reason."""

_SMALLEST_WEIGHT = 2.0**-500
"""Share of the largest weight below which a weight becomes 0, so that exponents stay in range."""

LARGEST_REPORT = 2**31 - 1
"""Bytes of a client's messages: what one message holds with any MPI."""

_SERVER_ARRAYS = ("group",)
"""Names in the server's file of a checkpoint that are the engine's."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")
"""Of an array in a checkpoint: a file in an archive."""


class Breach(Exception):
    """What a hook returned is not what it must return; the text says what it is and what it must be."""


def participants(value: Any, num_clients: int) -> Ints:
    """Return who takes part, int64, ascending: at least one, each at most once."""
    chosen = np.sort(integers(value, "clients"))
    if not len(chosen):
        raise Breach("returned nobody: at least one client must train")
    _within(chosen, num_clients, "client")
    twice = chosen[1:][chosen[1:] == chosen[:-1]]
    if len(twice):
        raise Breach(f"returned client {twice[0]} twice")
    return chosen


def groups(value: Any, num_clients: int) -> Ints:
    """Return the group of each client, int64 [clients], numbers from 0 to the number of clients less 1."""
    numbers = integers(value, "groups", num_clients)
    _within(numbers, num_clients, "group")
    return numbers


def weights(value: Any, num_clients: int) -> Ints:
    """Return the clients' weights as whole numbers, int64 [clients]; only their ratios count.

    Others than whole numbers are scaled so that the largest has 29 bits, and rounded: sums of whole numbers
    are exact.
    """
    given = _array(value, "weights")
    of_floats = given.dtype.kind == "f" and given.shape == (num_clients,)
    if of_floats and not np.array_equal(given, np.rint(given)):
        return _scaled(given.astype(np.float64))
    whole = integers(given, "weights", num_clients)
    if whole.min() < 0 or whole.max() > LARGEST_WEIGHT:
        wrong = int(np.flatnonzero((whole < 0) | (whole > LARGEST_WEIGHT))[0])
        raise Breach(f"returned {whole[wrong]} for client {wrong}: a whole weight is 0 to {LARGEST_WEIGHT}")
    if not whole.any():
        raise Breach("returned 0 for every client")
    return whole


def _scaled(given: Floats) -> Ints:
    """Return weights whose largest is `LARGEST_WEIGHT`; one above 0 stays above 0."""
    if not np.isfinite(given).all() or given.min() < 0:
        wrong = int(np.flatnonzero(~np.isfinite(given) | (given < 0))[0])
        raise Breach(f"returned {given[wrong]} for client {wrong}: a weight is finite, and 0 or more")
    scaled: Ints = np.maximum(np.rint(given / given.max() * LARGEST_WEIGHT), given > 0).astype(np.int64)
    return scaled


def averages(group: Ints, weights: Ints, chosen: Ints) -> None:
    """Refuse weights that leave a group of this round's participants without any."""
    active = group[chosen]
    total = np.bincount(active, weights[chosen])[active]
    if not total.all():
        raise Breach(f"returned 0 for every participant of group {active[total == 0][0]}: it has no mean")


def round_weights(found: Any, divisor: Any, num_clients: int) -> tuple[Floats, float]:
    """Return a group's weights, rounded, and their divisor; both scaled so that the largest is about 1."""
    if found.shape != (num_clients,) or found.dtype.kind not in "iuf":
        raise Breach(f"gave weights {_described(found)}: they must be float64 [{num_clients}]")
    if not np.isfinite(found).all() or found.min() < 0 or not found.any():
        raise Breach(f"gave weights {found.tolist()}: they are finite, none below 0, and not all 0")
    fraction, exponent = np.frexp(found.astype(np.float64))
    largest = exponent[found > 0].max()
    rounded = np.ldexp(np.rint(np.ldexp(fraction, _WEIGHT_BITS)), exponent - _WEIGHT_BITS - largest)
    try:
        scaled = float(np.ldexp(float(divisor), -largest))
    except (TypeError, ValueError, OverflowError):
        raise Breach(f"gave the divisor {_described(divisor)}: it must be a number") from None
    if not 0 < scaled < np.inf:
        raise Breach(f"gave the divisor {divisor!r}: it is above 0, finite, and in reach of the weights")
    return np.where(rounded < _SMALLEST_WEIGHT, 0.0, rounded), scaled


def client_weights(value: Any, count: int) -> Floats:
    """Return weights of clients' models in each other's means, float64 [k, k]; the sum of each row is 1."""
    if not isinstance(value, np.ndarray) or value.shape != (count, count) or value.dtype.kind not in "iuf":
        raise Breach(f"returned {_described(value)}: it must be float64 [{count}, {count}]")
    found = value.astype(np.float64)
    if not np.isfinite(found).all() or found.min() < 0:
        raise Breach("returned weights that are not finite, or below 0")
    totals = found.sum(axis=1, keepdims=True)
    if not np.isfinite(totals).all() or not totals.all():
        raise Breach("returned a row without a weight above 0, or too large to be summed")
    shares: Floats = found / totals
    return shares


def length(value: Any) -> int:
    """Return a whole number, 0 or more."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not 0 <= value < 2**53:
        raise Breach(f"gave {_described(value)}: it must be a whole number, 0 or more")
    return int(value)


def text(value: Any) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise Breach(f"returned {value!r}: it must be a text")
    return value


def yes_or_no(value: Any) -> bool:
    """Return an answer as bool."""
    if not isinstance(value, bool | np.bool_):
        raise Breach(f"returned {value!r}: the answer is True or False")
    return bool(value)


def array(value: Any, dtype: str, shape: tuple[int, ...], verb: str = "returned", more: str = "") -> Any:
    """Return an array of this type and shape."""
    if not isinstance(value, np.ndarray) or (value.dtype, value.shape) != (dtype, shape):
        raise Breach(f"{verb} {_described(value)}: it must be {dtype} {list(shape)}{more}")
    return value


def memory(value: Any, tensors: Tensors) -> dict[str, Memory]:
    """Return what clients keep, by name."""
    if not isinstance(value, Mapping):
        raise Breach(f"returned {_described(value)}: it must be a table of Memory by name")
    for name, each in value.items():
        if not isinstance(each, Memory):
            hint = 'write Memory("model"), from fedmpi.algorithms.program'
            raise Breach(f"returned {_described(each)} as memory {name}: {hint}")
        if each.size == "model" and each.judged and each.start == 0.0:
            hint = 'start = "model", the client\'s first one, or None'
            raise Breach(f"returned memory {name} with a model of zeros, which would be evaluated: {hint}")
        _size(each.size, f"memory {name}", tensors)
        whole = each.start is None or (each.start == "model" and each.size == "model")
        if not (whole or (isinstance(each.start, int | float) and math.isfinite(each.start))):
            valid = 'a number, None, or "model" for a model'
            raise Breach(f"returned memory {name} with start = {each.start!r}: {valid}")
    return dict(value)


def messages(value: Any) -> dict[str, Message]:
    """Return declared messages, by name."""
    if not isinstance(value, Mapping) or not all(isinstance(each, Message) for each in value.values()):
        raise Breach(f"returned {_described(value)}: it must be a table of Message by name")
    for name, each in value.items():
        if not isinstance(each.shape, tuple) or not all(map(_is_length, each.shape)):
            raise Breach(
                f"returned {name} of the shape {each.shape!r}: it is a tuple of whole numbers above 0"
            )
        try:
            kind = np.dtype(each.dtype).kind
        except TypeError:
            kind = "?"
        if kind not in "fiu":
            raise Breach(f'returned {name} of the type {each.dtype!r}: it is one of NumPy, such as "f4"')
    known = (math.prod(each.sized(1, 1, 1)) * np.dtype(each.dtype).itemsize for each in value.values())
    if sum(known) > LARGEST_REPORT:
        raise Breach(f"returned more than {LARGEST_REPORT} bytes")
    return dict(value)


def told(value: Any) -> dict[str, Message]:
    """Return what the server tells, by name."""
    found = messages(value)
    if other := [name for name, each in found.items() if each.dtype != "f4"]:
        raise Breach(f'returned {other[0]} of the type {found[other[0]].dtype!r}: what is told is "f4"')
    return found


def _is_length(size: Any) -> bool:
    return (type(size) is int and size > 0) or size in ("shared", "clients", "public")


def moments(value: Any, tensors: Tensors) -> dict[str, Size]:
    """Return the sizes of further moments, by name."""
    if not isinstance(value, Mapping):
        raise Breach(f"returned {_described(value)}: it must be a table of sizes by name")
    for name, size in value.items():
        _size(size, f"moments {name}", tensors)
    return dict(value)


def _size(size: Any, what: str, tensors: Tensors) -> None:
    if isinstance(size, tuple):
        if strangers := [name for name in size if name not in tensors.names]:
            raise Breach(f"returned {what} for {strangers[0]!r}, which is none of the model's tensors")
        if not size:
            raise Breach(f"returned {what} for no tensors: it must be one at least")
    elif size not in ("model", "shared") and not (type(size) is int and size > 0):
        raise Breach(f'returned {what} of the size {size!r}: it is "model", "shared", names, or a number')


def like(value: Any, other: Any) -> Any:
    """Return a vector of the type and shape of another; of torch."""
    if type(value) is not type(other) or (value.shape, value.dtype) != (other.shape, other.dtype):
        kind = f"{other.dtype} {list(other.shape)}, as client.model"
        raise Breach(f"returned {_described(value)}: it must be a tensor {kind}")
    return value


def predicted(value: Any, count: int) -> Any:
    """Return what is predicted of held-out graphs: classes int64 [count], outputs as they are, or None."""
    if value is None:
        return None
    floats, shape = getattr(value, "is_floating_point", None), list(getattr(value, "shape", ()))
    if floats is not None and floats() and len(shape) == 2 and shape[0] == count:
        return value
    if floats is None or floats() or shape != [count] or value.is_complex():
        kinds = f"a tensor of {count} classes, one of outputs, float32 [{count}, C], or None"
        raise Breach(f"returned {_described(value)}: it must be {kinds}")
    found: Ints = value.cpu().numpy().astype(np.int64)
    return found


def scalar_like(value: Any, other: Any) -> Any:
    """Return a scalar of the type of a tensor, or None."""
    fits = value is None or (type(value) is type(other) and value.shape == () and value.dtype == other.dtype)
    if not fits:
        raise Breach(f"returned {_described(value)}: it must be a scalar of {other.dtype}, or None")
    return value


def some(value: Any, known: Ints, what: str) -> Ints:
    """Return some of the groups or clients of a round, int64, ascending, each once."""
    chosen = np.unique(integers(value, f"{what}s"))
    if len(strangers := np.setdiff1d(chosen, known)):
        raise Breach(f"named {what} {strangers[0]}: " + _ABSENT[what])
    return chosen


_ABSENT = {"group": "no client of it took part", "client": "it took no part", "node": "there is none"}


def one_of(value: Any, groups: Sequence[Ints]) -> Ints:
    """Return the participants of a group, as `Server.groups` gives them."""
    members = integers(value, "clients")
    if not any(np.array_equal(members, each) for each in groups):
        raise Breach(f"gave clients {members.tolist()[:8]}: they must be one of server.groups()")
    return members


def parts(value: Any, groups: Sequence[Ints]) -> list[Ints]:
    """Return a group's parts; every participant is in exactly one, and none is empty."""
    if not isinstance(value, Sequence) or not len(value):
        raise Breach(f"split into {_described(value)}: it must be a list of parts, int64 each")
    found = [integers(part, "clients") for part in value]
    together = np.sort(np.concatenate(found))
    if not all(map(len, found)) or not any(np.array_equal(together, each) for each in groups):
        raise Breach("split into parts in which not every participant of one group is exactly once")
    return found


def fields(value: Any) -> tuple[Field, ...]:
    """Return the record's further fields, named apart from the common ones."""
    if not isinstance(value, tuple) or not all(isinstance(field, Field) for field in value):
        raise Breach(f"returned {_described(value)}: it must be a tuple of record fields")
    taken = [field.name for field in (*RESULTS, *MEASUREMENTS)]
    for field in value:
        try:
            StoredField.model_validate({**asdict(field), "axes": list(field.axes)})
        except (ValidationError, TypeError) as error:
            why = in_words(error) if isinstance(error, ValidationError) else str(error)
            raise Breach(f"names a field that no record holds ({why})") from None
        if field.name in taken:
            raise Breach(f'names a field "{field.name}", which exists already')
        taken.append(field.name)
    return value


def field_values(value: Any, known: Sequence[Field], num_clients: int) -> dict[str, npt.NDArray[Any]]:
    """Return a round's values of the algorithm's own fields, by the fields' names, shapes and types."""
    by_name = {field.name: field for field in known}
    if not isinstance(value, Mapping):
        raise Breach(f"returned {_described(value)}: it must be a dict of arrays by the names of its fields")
    for name, array in value.items():
        if name not in by_name:
            raise Breach(f'returned "{name}", which fields() does not name')
        shape = by_name[name].shape(axis_sizes(num_clients))
        if not isinstance(array, np.ndarray) or array.shape != shape:
            raise Breach(f'returned "{name}" as {_described(array)}: its shape must be {list(shape)}')
        cast = array.astype(by_name[name].dtype)
        if not np.array_equal(array, cast, equal_nan=array.dtype.kind == "f"):
            raise Breach(f'returned "{name}" as {array.dtype}, which {by_name[name].dtype} cannot hold')
    return dict(value)


def state(value: Any) -> dict[str, npt.NDArray[Any]]:
    """Return what a checkpoint keeps of the server's state: arrays of numbers by name."""
    if not isinstance(value, Mapping):
        raise Breach(f"returned {_described(value)}: it must be a dict of arrays")
    for name, array in value.items():
        if not isinstance(name, str) or name in _SERVER_ARRAYS or not _NAME.fullmatch(name):
            raise Breach(f"returned {name!r}, a name that is not free: choose another of letters and digits")
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
            raise Breach(f'returned "{name}" as {_described(array)}: it must be an array of numbers')
    return dict(value)


def server_arrays(value: Any, declared: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Return what the server keeps now: arrays as they were declared."""
    names = ", ".join(declared) or "nothing"
    if not isinstance(value, Mapping):
        raise Breach(f"declares {names}, and self.server is {_described(value)}: it stays a dict of arrays")
    if value.keys() != declared.keys():
        raise Breach(f"declares {names}, and self.server has {', '.join(map(str, value)) or 'nothing'}")
    for name, array in value.items():
        first = declared[name]
        if not isinstance(array, np.ndarray) or (array.dtype, array.shape) != (first.dtype, first.shape):
            wanted = _described(first)
            raise Breach(f"declares {name} as {wanted}, and self.server has it as {_described(array)}")
        odd = array.dtype.kind == "f" and (np.isinf(array) | (np.isnan(array) & ~np.isnan(first))).any()
        if odd:
            raise Breach(f"has NaN or infinity in self.server[{name!r}], which no checkpoint can hold")
    return dict(value)


def digest(*values: Any) -> float:
    """Return a hash of what a rank computed on its own; 52 bits, exact in float64."""
    state_of = hashlib.blake2b(digest_size=8)
    for value in values:
        state_of.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
    return float(int.from_bytes(state_of.digest(), "little") >> 12)


def _array(value: Any, what: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(value)
    except (ValueError, TypeError):
        raise Breach(f"returned {type(value).__name__}: it must be a vector of {what}") from None


def integers(value: Any, what: str, length: int | None = None) -> Ints:
    """Return a vector of whole numbers, int64; floats that are whole count."""
    given = _array(value, what)
    if given.size == 0 and length is None and given.ndim == 1:
        return np.zeros(0, np.int64)
    if given.ndim != 1 or (length is not None and len(given) != length) or given.dtype.kind not in "iuf":
        size = "k" if length is None else length
        raise Breach(f"returned {_described(given)}: it must be int64 [{size}]")
    if given.dtype.kind == "f" and not (
        np.isfinite(given).all() and (given == np.rint(given)).all() and np.abs(given).max() < 2**53
    ):
        raise Breach(f"returned {what} that are not whole numbers, such as {_fractional(given)}")
    return given.astype(np.int64)


def _fractional(values: npt.NDArray[Any]) -> float:
    return float(values[~np.isfinite(values) | (values != np.rint(values)) | (np.abs(values) >= 2**53)][0])


def _within(values: Ints, count: int, what: str) -> None:
    if values.min() < 0 or values.max() >= count:
        wrong = int(values[(values < 0) | (values >= count)][0])
        raise Breach(f"returned {what} {wrong}: they are numbered 0 to {count - 1}")


def _described(value: Any) -> str:
    """Return type and shape of a value in a few words."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype} {list(value.shape)}"
    return f"{value!r}"[:60] if value is None or isinstance(value, int | float) else type(value).__name__

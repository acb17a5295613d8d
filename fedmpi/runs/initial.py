"""The tensors that models start from, which must fit every client's model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from torch import Tensor, isfinite, nn

from fedmpi.case.initial import InitialOptions
from fedmpi.case.schema import Case
from fedmpi.client.federation import Federation
from fedmpi.config.tables import toml_text
from fedmpi.errors import BadInput
from fedmpi.models.flat import statistics_of
from fedmpi.models.state_files import unpacked
from fedmpi.objectives.unsupervised import network_of

Tensors = Mapping[str, Tensor]

_MOST = 4
"""Tensors that a message names."""


def read_initial(case: Case, federation: Federation) -> Tensors:
    """Return what tensors of all models start from, by name; nothing where the case names no file.

    Raises
    ------
    BadInput
        The file is damaged or has changed, or does not fit the model of a client.
    """
    options = case.initial
    if not options.name:
        return {}
    found, taken = _read(options), dict[str, Tensor]()
    for shape in dict.fromkeys(federation.shapes):
        client = federation.partition.clients[federation.shapes.index(shape)].name
        module = network_of(case.objective, case.model, shape)
        try:
            taken = _fitting(found, module, options)
        except BadInput as error:
            raise BadInput(f"initial: {options.name} and the model of {client}: {error}") from None
    return taken


def _read(options: InitialOptions) -> dict[str, Tensor]:
    """Return all tensors of the file; those of floating-point numbers as float32."""
    content = options.content()
    try:
        found = unpacked(content, Path(options.name).suffix)
    except BadInput as error:
        raise BadInput(f"initial: {options.name}: {error}") from None
    except Exception as error:  # whatever torch or safetensors say of bytes that are not theirs
        text = " ".join(str(error).split())
        raise BadInput(f"initial: {options.name}: damaged ({text[:120]})") from error
    return {name: each.float() if each.is_floating_point() else each for name, each in found.items()}


def _fitting(found: Tensors, module: nn.Module, options: InitialOptions) -> dict[str, Tensor]:
    """Return the tensors that are taken: every parameter and statistic that `options` ask for."""
    known = {**dict(module.named_parameters()), **statistics_of(module)}
    constants = module.state_dict().keys() - known.keys()
    parts = list(dict.fromkeys(map(_part, known)))
    for begin in options.tensors:
        if not any(name.startswith(begin) for name in known):
            raise BadInput(f'no tensor has a name that begins with "{begin}" (there are {", ".join(parts)})')
    wanted = {name: each for name, each in known.items() if options.takes(name)}
    given = {name: each for name, each in found.items() if options.takes(name) and name not in constants}
    wrong = dict(_misfits(given, wanted))
    if not wrong:
        return given
    more = f"; and {len(wrong) - _MOST} more" if len(wrong) > _MOST else ""
    text = "; ".join(f"{name} {what}" for name, what in list(wrong.items())[:_MOST])
    fit = [part for part in parts if options.takes(part) and part not in map(_part, wrong)]
    hint = f"; the rest fits: initial.tensors = {toml_text(fit)}" if fit else ""
    raise BadInput(f"{text}{more}{hint}")


def _part(name: str) -> str:
    """Return the begin of a tensor's name up to its first dot."""
    first, dot, _ = name.partition(".")
    return first + dot


def _misfits(given: Tensors, wanted: Tensors) -> Iterator[tuple[str, str]]:
    """Yield tensors that cannot be taken, each with what is wrong."""
    for name in dict.fromkeys([*wanted, *given]):
        if name not in given:
            yield name, "is not in the file"
        elif name not in wanted:
            yield name, "is not in the model"
        elif given[name].shape != wanted[name].shape:
            yield name, f"is {_size(given[name])} in the file, {_size(wanted[name])} in the model"
        elif not given[name].is_floating_point() or not isfinite(given[name]).all():
            yield name, "has values in the file that are no finite numbers"


def _size(tensor: Tensor) -> str:
    return " x ".join(map(str, tensor.shape)) or "a number"

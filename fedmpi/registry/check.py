"""From the settings of a suite to checked, frozen cases (imports without torch)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fedmpi.algorithms.base import Algorithm
from fedmpi.algorithms.row_aggregate import RowAggregate
from fedmpi.case.schema import OPTIMIZERS, REDUCTIONS, Case
from fedmpi.config.modes import Ranks
from fedmpi.config.suite import CaseSettings, Suite
from fedmpi.config.tables import closest
from fedmpi.datasets.moleculenet import MOLECULES
from fedmpi.datasets.names import members
from fedmpi.datasets.options import DatasetOptions
from fedmpi.datasets.synthetic import SyntheticOptions
from fedmpi.datasets.tables import SYNTHETIC
from fedmpi.errors import BadInput
from fedmpi.exits import exits_raised
from fedmpi.models.options import MODELS
from fedmpi.objectives.options import OBJECTIVES
from fedmpi.partition.options import PartitionOptions
from fedmpi.registry import algorithms
from fedmpi.registry.objectives import misfit
from fedmpi.registry.tasks import task_misfit
from fedmpi.registry.twins import distinct

PARTITIONS: dict[str, type[BaseModel]] = {
    kind.model_fields["name"].default: kind for kind in get_args(get_args(PartitionOptions)[0])
}
"""Option classes of the partitions by name."""

AXES: dict[str, tuple[Mapping[str, type[BaseModel]], str]] = {
    "partition": (PARTITIONS, "per-dataset"),
    "model": (MODELS, "gin"),
    "objective": (OBJECTIVES, "supervised"),
    "optimizer": (OPTIMIZERS, "adam"),
    "reduction": (REDUCTIONS, "exact"),
}
"""Option classes by name, and the default's name, of each axis but dataset and algorithm."""


@dataclass(frozen=True)
class Checked:
    """A case that can be run.

    Attributes
    ----------
    case : Case
    algorithm : Algorithm
    number : int
        Its place in its suite, from 0.
    ranks : tuple of int
        In a suite with a mode, the ranks to run it on.
    """

    case: Case
    algorithm: Algorithm
    number: int = 0
    ranks: Ranks = ()


def check_suite(suite: Suite) -> list[Checked]:
    """Check every case of a suite; return those that differ, cases that overrides made equal once.

    Raises
    ------
    BadInput
        An unknown name, key or value; the message names file, key and closest match. Or two cases of the
        file that are the same but for their names, because one axis takes back what another sets.
    """
    found = [_check(suite, settings) for settings in suite.cases]
    places = distinct(suite, [each.case for each in found])
    return [replace(found[place], number=place, ranks=suite.cases[place].ranks) for place in places]


def _check(suite: Suite, settings: CaseSettings) -> Checked:
    try:
        return build(suite.name, settings)
    except _Refused as refused:
        key, text = refused.key, refused.text
        given = any(key == name or key.startswith(name + ".") for name in suite.overridden)
        place = "--set" if given else f"{suite.path}: case"
        joint = " " if given else "."
        raise BadInput(f"{place}{joint}{key}: {text}") from None


def check_stored(config: Mapping[str, Any], folder: Path) -> Checked:
    """Check the configuration that a run folder holds.

    Raises
    ------
    BadInput
        This fedmpi cannot run it.
    """
    settings = {key: value for key, value in config.items() if key not in ("suite", "name", "plugin")}
    suite, name = (str(config.get(key, "")) for key in ("suite", "name"))
    reduction = settings.get("reduction")
    if isinstance(reduction, Mapping) and reduction.get("name") in REDUCTIONS:
        settings["reduction"] = REDUCTIONS[reduction["name"]].recorded(reduction)
    try:
        return build(suite, CaseSettings(name, settings))
    except _Refused as refused:
        raise BadInput(f"{folder}: its stored configuration: {refused.key}: {refused.text}") from None


class _Refused(Exception):
    """A setting that cannot be; `key` is dotted."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(key, text)
        self.key, self.text = key, text


def build(suite: str, settings: CaseSettings) -> Checked:
    """Build one case from its settings."""
    try:
        with exits_raised():
            return _build(suite, settings)
    except SystemExit as error:
        raise _Refused("algorithm", f"ended the process with exit code {error.code!r}") from None
    except KeyboardInterrupt:  # no Ctrl-C, which raises another
        raise _Refused("algorithm", "raised KeyboardInterrupt") from None


def _build(suite: str, settings: CaseSettings) -> Checked:
    values: dict[str, Any] = {"suite": suite, "name": settings.name}
    values["dataset"] = DatasetOptions()
    for axis, (classes, default) in AXES.items():
        values[axis] = _options(axis, {}, classes, default)
    algorithm = _algorithm(settings.settings.get("algorithm", "fedavg"))
    values["algorithm"] = algorithm.options
    values["plugin"] = algorithms.sources(type(algorithm))
    for key, value in settings.settings.items():
        if key in AXES:
            classes, default = AXES[key]
            values[key] = _options(key, value, classes, default)
        elif key == "dataset":
            values[key] = _validated(DatasetOptions, _as_table(key, value), key)
        elif key != "algorithm":
            values[key] = value
    for forbidden in ("suite", "name", "plugin"):
        if forbidden in settings.settings:
            raise _Refused(forbidden, "unknown key")
    case = _validated(Case, values, "")
    _fits(case)
    with _in_words(type(algorithm)):
        _suits(algorithm, case)
    return Checked(case, algorithm)


def _as_table(key: str, value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"name": value}
    if not isinstance(value, Mapping):
        raise _Refused(key, f"must be a name or a table, not {value!r}")
    return dict(value)


def _options(key: str, value: Any, classes: Mapping[str, type[BaseModel]], default: str) -> BaseModel:
    table = {"name": default, **_as_table(key, value)}
    name = table["name"]
    if not isinstance(name, str) or name not in classes:
        hint = closest(str(name), classes)
        raise _Refused(key, f'there is no "{name}"{hint} (valid: {", ".join(classes)})')
    options: BaseModel = _validated(classes[name], table, key)
    return options


def _algorithm(value: Any) -> Algorithm:
    table = {"name": "fedavg", **_as_table("algorithm", value)}
    try:
        chosen = algorithms.find(str(table["name"]))
    except BadInput as error:
        raise _Refused("algorithm", str(error).removeprefix("algorithm: ")) from None
    with _in_words(chosen):
        return chosen(_validated(chosen.Options, table, "algorithm"))


@contextmanager
def _in_words(algorithm: type[Algorithm]) -> Iterator[None]:
    """Turn what a plug-in's own code raises while its case is checked into one line that names its file."""
    try:
        yield
    except (_Refused, BadInput):
        raise
    except Exception as error:
        files = ", ".join(algorithms.sources(algorithm))
        if not files:
            raise  # of fedmpi: a defect
        text = " ".join(str(error).split())
        raise _Refused(
            "algorithm", f"{algorithm.name}: {files} raised {type(error).__name__}: {text}"
        ) from error


def _validated(kind: type[BaseModel], values: Mapping[str, Any], prefix: str) -> Any:
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        detail = error.errors()[0]
        key = ".".join([*([prefix] if prefix else []), *(str(part) for part in detail["loc"])])
        raise _Refused(key, _explain(kind, detail)) from None


def _explain(kind: type[BaseModel], detail: ErrorDetails) -> str:
    if detail["type"] != "extra_forbidden":
        shown = "" if isinstance(detail["input"], Mapping) else f" (got {detail['input']!r})"
        message = detail["msg"].removeprefix("Value error, ")
        return message[0].lower() + message[1:] + shown
    fields: Mapping[str, Any] = kind.model_fields
    for part in detail["loc"][:-1]:
        inner = fields[str(part)].annotation
        fields = inner.model_fields if isinstance(inner, type) and issubclass(inner, BaseModel) else {}
    known = [
        name for name in fields if name not in ("suite", "plugin") and not (kind is Case and name == "name")
    ]
    return f"unknown key{closest(str(detail['loc'][-1]), known)} (known: {', '.join(known)})"


def _suits(algorithm: Algorithm, case: Case) -> None:
    """Refuse settings that the algorithm cannot honour."""
    if algorithm.controls and case.optimizer.name != "sgd":
        raise _Refused("optimizer", f'{algorithm.name} has plain SGD on the clients: use optimizer = "sgd"')
    if not algorithm.reads_share and case.share != "conv":
        raise _Refused("share", f"{algorithm.name} says itself what is shared: leave share out")
    if algorithm.report_size(case.model) and not case.objective.supervised:
        raise _Refused("objective", f'{algorithm.name} embeds graphs by a classifier: use "supervised"')
    objection = algorithm.objection(case.model)
    if objection:
        raise _Refused("algorithm", f"{algorithm.name} {objection}")
    if algorithm.regroups and case.participation < 1:
        raise _Refused("participation", f"{algorithm.name} groups all clients in every round: it must be 1")
    if algorithm.regroups and case.reduction.name == "fixed32":
        raise _Refused(
            "reduction",
            f'{algorithm.name} averages models, which "fixed32" would clip, not updates: use "exact"',
        )
    if isinstance(algorithm, RowAggregate) and case.reduction.name != "exact":
        raise _Refused("reduction", f"{algorithm.name} sums nothing, it takes every row: leave reduction out")
    if case.algorithm.pf == "shared" and "graph" not in case.model.norms:
        raise _Refused("algorithm.pf", 'is read for a model with GraphNorm only: model.norm = "graph"')


def _fits(case: Case) -> None:
    """Refuse settings that are each right and together wrong."""
    kind = case.partition.name
    domains = case.dataset.synthetic.domains if case.dataset.name == SYNTHETIC else 0
    if domains > 1 and kind != "per-dataset":
        raise _Refused(
            "partition",
            f'"{kind}" deals out one dataset, here are {domains} synthetic domains: '
            'use "per-dataset" or dataset.synthetic.domains = 1',
        )
    if len(members(case.dataset.name)) > 1 and kind != "per-dataset":
        name = case.dataset.name
        raise _Refused("partition", f'"{kind}" deals out one dataset, {name} is several: use "per-dataset"')
    if not domains and case.dataset.synthetic != SyntheticOptions():
        raise _Refused("dataset.synthetic", f'is read for dataset "{SYNTHETIC}" only')
    plain = case.kernels in ("csr", "reference") or case.model.any_task
    if not plain and case.dataset.name in MOLECULES:
        raise _Refused("kernels", f'"{case.kernels}" is for graphs with one class each: use "csr"')
    if (wrong := task_misfit(case) or misfit(case)) is not None:
        raise _Refused(*wrong)
    _fits_kernels(case)
    if case.kernels == "compiled" and (case.device != "cpu" or case.threads > 1):
        raise _Refused("kernels", '"compiled" is one thread of a CPU: add ranks, or use kernels = "csr"')
    if case.subnormals == "flushed" and (case.device != "cpu" or case.threads > 1):
        raise _Refused("subnormals", '"flushed" is for one thread of a CPU: use "kept"')
    if case.kernels != "grouped" and case.group_size != Case.model_fields["group_size"].default:
        raise _Refused("group_size", 'is read by kernels = "grouped" only')


def _fits_kernels(case: Case) -> None:
    """Refuse kernels that cannot run the model, the objective, the algorithm or the optimizer."""
    parts = (case.model, case.objective, case.algorithm, case.optimizer)
    for part in parts:
        if case.kernels not in part.kernels:
            able = frozenset.intersection(*(each.kernels for each in parts))
            names = ", ".join(f'"{name}"' for name in sorted(able))
            raise _Refused("kernels", f'"{case.kernels}" cannot run {part.name} as it is here: use {names}')

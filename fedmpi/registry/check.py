"""From the settings of a suite to checked, frozen cases (imports without torch)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fedmpi.algorithms.base import Algorithm
from fedmpi.algorithms.declared import KERNELS
from fedmpi.case.attacks import ATTACKS
from fedmpi.case.initial import InitialOptions
from fedmpi.case.optimizers import OPTIMIZERS
from fedmpi.case.privacy import PRIVACY
from fedmpi.case.reductions import REDUCTIONS
from fedmpi.case.schema import Case, Misfits
from fedmpi.compression.options import COMPRESSIONS
from fedmpi.config.modes import Ranks
from fedmpi.config.suite import CaseSettings, Suite
from fedmpi.config.tables import closest
from fedmpi.datasets.family import FAMILIES
from fedmpi.datasets.loading import options_class
from fedmpi.datasets.names import family_of, members, weighted
from fedmpi.datasets.options import DatasetOptions
from fedmpi.devices.options import DEVICES
from fedmpi.errors import BadInput
from fedmpi.exits import exits_raised
from fedmpi.kinds import Kind, UnknownName, settled
from fedmpi.models.options import MODELS
from fedmpi.objectives.options import OBJECTIVES
from fedmpi.partition.options import PARTITIONS
from fedmpi.registry import checks, tasks
from fedmpi.registry.algorithms import ALGORITHMS
from fedmpi.registry.checks import settings as rules
from fedmpi.registry.checks.algorithm import able_kernels
from fedmpi.registry.duplicates import Choose, distinct
from fedmpi.schedules.options import SCHEDULES
from fedmpi.tasks.base import TORCH_KERNELS
from fedmpi.tasks.base import kernels_of as kernels_of_task
from fedmpi.tasks.known import TASKS
from fedmpi.topologies.options import TOPOLOGIES

AXES: dict[str, tuple[Mapping[str, type[BaseModel]], str]] = {
    "partition": (PARTITIONS, "per-dataset"),
    "model": (MODELS, "gin"),
    "objective": (OBJECTIVES, "supervised"),
    "optimizer": (OPTIMIZERS, "adam"),
    "reduction": (REDUCTIONS, "exact"),
    "compression": (COMPRESSIONS, "none"),
    "down_compression": (COMPRESSIONS, "none"),
    "topology": (TOPOLOGIES, "server"),
    "schedule": (SCHEDULES, "synchronous"),
    "devices": (DEVICES, "none"),
    "attack": (ATTACKS, "none"),
    "privacy": (PRIVACY, "none"),
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


def check_suite(suite: Suite, choose: Choose = list) -> list[Checked]:
    """Check the chosen cases of a suite; return those that differ, cases that overrides made equal once.

    Parameters
    ----------
    suite : Suite
    choose : callable, optional
        Gets the places of the cases that differ and returns those that are meant; what is wrong with others
        is nobody's trouble.

    Raises
    ------
    BadInput
        An unknown name, key or value; the message names file, key and closest match. Or two cases of the
        file that are the same but for their names, because one axis takes back what another sets.
    """
    with settled():
        found = [_checked(suite, settings) for settings in suite.cases]
        cases = [each.case if isinstance(each, Checked) else None for each in found]
        places = distinct(suite, cases, choose)
    return [_chosen(suite, found[place], place) for place in places]


def _chosen(suite: Suite, found: Checked | BadInput, place: int) -> Checked:
    if isinstance(found, BadInput):
        raise found
    return replace(found, number=place, ranks=suite.cases[place].ranks)


def _checked(suite: Suite, settings: CaseSettings) -> Checked | BadInput:
    """Return a case, or what is wrong with it."""
    try:
        return build(suite.name, settings)
    except BadInput as error:
        return error
    except _Refused as refused:
        key, text = refused.key, refused.text
        given = any(key == name or key.startswith(name + ".") for name in suite.overridden)
        place = "--set " if given else f"{suite.path}: case."
        if given and "." in key and len(suite.cases) > 1:  # other cases may well have it
            text = text.replace("unknown key", f"unknown key in the case {settings.name}", 1)
        return BadInput(f"{place}{key}: {text}")


def check_stored(config: Mapping[str, Any], folder: Path) -> Checked:
    """Check the configuration that a run folder holds.

    Raises
    ------
    BadInput
        This fedmpi cannot run it.
    """
    suite, name = (str(config.get(key, "")) for key in ("suite", "name"))
    try:
        return build(suite, CaseSettings(name, stated(config)))
    except _Refused as refused:
        raise BadInput(f"{folder}: its stored configuration: {refused.key}: {refused.text}") from None


def stated(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a stored configuration as a suite states them, without suite and name."""
    settings = {key: value for key, value in config.items() if key not in ("suite", "name", "plugin")}
    reduction = settings.get("reduction")
    if isinstance(reduction, Mapping) and reduction.get("name") in REDUCTIONS:
        settings["reduction"] = REDUCTIONS[reduction["name"]].recorded(reduction)
    return settings


class _Refused(Exception):
    """A setting that cannot be; `key` is dotted."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(key, text)
        self.key, self.text = key, text


@exits_raised()
def build(suite: str, settings: CaseSettings) -> Checked:
    """Build one case from its settings."""
    given = settings.settings
    algorithm = _algorithm(given.get("algorithm", {}))
    values: dict[str, Any] = {
        "suite": suite,
        "name": settings.name,
        "dataset": _dataset(given.get("dataset", {})),
        "algorithm": algorithm.options,
        **{axis: _options(axis, given.get(axis, {}), *choice) for axis, choice in AXES.items()},
    }
    if "initial" in given:
        values["initial"] = _initial(given["initial"])
    for key, value in given.items():
        if key in ("suite", "name", "plugin"):
            raise _Refused(key, "unknown key")
        values.setdefault(key, value)
    values["plugin"] = _sources(values, algorithm)
    with _in_words("plugin", "", values["plugin"]):
        able = {"kernels": able_kernels(type(algorithm), values["model"]) & _defaults_of_task(values)}
        case: Case = _validated(Case, values, "", able)
        for wrong in _misfits(case):
            raise _Refused(*wrong)
    with _in_words("algorithm", algorithm.name, ALGORITHMS.sources(type(algorithm))):
        for wrong in checks.misfits(algorithm, case):
            raise _Refused(*wrong)
    return Checked(case, algorithm)


def _defaults_of_task(values: Mapping[str, Any]) -> frozenset[str]:
    """Return the kernels that may be the default of a case's task: the one it names, or the dataset's own.

    On nodes compiled and grouped ones are chosen by name.
    """
    name = values.get("task", "")
    if not isinstance(name, str):
        raise _Refused("task", "must be the name of a task")
    try:
        task = tasks.task_named(name, values["dataset"].name)
        if task is not None and task.of == "node":
            return TORCH_KERNELS
        return (kernels_of_task(task) if task else KERNELS) - _unweighted_kernels(values["dataset"].name)
    except UnknownName as unknown:
        raise _Refused("task", unknown.text) from None


def _unweighted_kernels(dataset: str) -> frozenset[str]:
    """Return the kernels that cannot train on a dataset, because its graphs have weights."""
    return KERNELS - TORCH_KERNELS if weighted(dataset) else frozenset()


def _sources(values: Mapping[str, Any], algorithm: Algorithm) -> dict[str, str]:
    """Return the SHA-256 of every plug-in file that defines a part of a case, by name."""
    found = ALGORITHMS.sources(type(algorithm))
    for name in members(values["dataset"].name):
        found |= FAMILIES.sources(type(family_of(name)))
    for axis, (classes, _) in AXES.items():
        if isinstance(classes, Kind):
            found |= classes.sources(type(values[axis]))
    task = values.get("task", "")
    if isinstance(task, str) and task in TASKS:
        found |= TASKS.sources(TASKS[task])
    return found


def _as_table(key: str, value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"name": value}
    if not isinstance(value, Mapping):
        raise _Refused(key, f"must be a name or a table, not {value!r}")
    return dict(value)


def _options(key: str, value: Any, classes: Mapping[str, type[BaseModel]], default: str) -> Any:
    table = {"name": default, **_as_table(key, value)}
    name = table["name"]
    if isinstance(classes, Kind):
        chosen: type[BaseModel] = _found(classes, name)
        files = classes.sources(chosen)
    elif isinstance(name, str) and name in classes:
        chosen, files = classes[name], {}
    else:
        raise _Refused(
            key, f'there is no "{name}"{closest(str(name), classes)} (valid: {", ".join(classes)})'
        )
    with _in_words(key, str(name), files):
        return _validated(chosen, table, key)


def _dataset(value: Any) -> Any:
    table = _as_table("dataset", value)
    kind, name = options_class(table), table.get("name")
    own = {} if kind is DatasetOptions else FAMILIES.sources(type(family_of(members(str(name))[0])))
    with _in_words("dataset", str(name), own):
        return _validated(kind, table, "dataset")


def _initial(value: Any) -> InitialOptions:
    options: InitialOptions = _validated(InitialOptions, _as_table("initial", value), "initial")
    return options.pinned()


def _found(kind: Kind[Any], name: Any) -> type[Any]:
    try:
        return kind.find(name if isinstance(name, str) else repr(name))
    except UnknownName as error:
        raise _Refused(kind.title, error.text) from None


def _algorithm(value: Any) -> Algorithm:
    table = {"name": "fedavg", **_as_table("algorithm", value)}
    chosen: type[Algorithm] = _found(ALGORITHMS, table["name"])
    with _in_words("algorithm", chosen.name, ALGORITHMS.sources(chosen)):
        return chosen(_validated(chosen.Options, table, "algorithm"))


@contextmanager
def _in_words(key: str, name: str, files: Mapping[str, str]) -> Iterator[None]:
    """Turn what a plug-in's own code does while its case is checked into one line that names its file."""
    try:
        yield
    except (_Refused, BadInput):
        raise
    except SystemExit as error:
        raise _Refused(key, f"ended the process with exit code {error.code!r}") from None
    except KeyboardInterrupt:  # no Ctrl-C, which raises another
        raise _Refused(key, "raised KeyboardInterrupt") from None
    except Exception as error:
        if not files:
            raise  # of fedmpi: a defect
        text, who = " ".join(str(error).split()), f"{name}: " if name else ""
        raise _Refused(key, f"{who}{', '.join(files)} raised {type(error).__name__}: {text}") from error


def _validated(
    kind: type[BaseModel], values: Mapping[str, Any], prefix: str, context: Mapping[str, Any] | None = None
) -> Any:
    try:
        return kind.model_validate(dict(values), context=context)
    except ValidationError as error:
        detail = error.errors()[0]
        key = ".".join([*([prefix] if prefix else []), *(str(part) for part in detail["loc"])])
        raise _Refused(key, explain(kind, detail, key)) from None


def explain(kind: type[BaseModel], detail: ErrorDetails, key: str) -> str:
    """Return what is wrong with a value, or which keys there are beside an unknown one."""
    if detail["type"] != "extra_forbidden":
        shown = "" if isinstance(detail["input"], Mapping) else f" (got {detail['input']!r})"
        message = detail["msg"].removeprefix("Value error, ")
        several = detail["type"].startswith(("int_", "float_")) and _is_list(detail["input"])
        hint = "; give one value (0.5, not 0,5): several are an axis of a suite's [matrix]" if several else ""
        return message[0].lower() + message[1:] + shown + hint
    fields: Mapping[str, Any] = kind.model_fields
    for part in detail["loc"][:-1]:
        inner = fields[str(part)].annotation
        fields = inner.model_fields if isinstance(inner, type) and issubclass(inner, BaseModel) else {}
    known = [
        name for name in fields if name not in ("suite", "plugin") and not (kind is Case and name == "name")
    ]
    from fedmpi.registry import reference  # it lists what this file checks

    hint = reference.hint(key) or closest(str(detail["loc"][-1]), known)
    return f"unknown key{hint} (known: {', '.join(known)})"


def _is_list(value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, str) and "," in value)


def _misfits(case: Case) -> Misfits:
    """Yield settings that are each right and together wrong, whatever the algorithm."""
    if case.kernels in _unweighted_kernels(case.dataset.name):
        yield "kernels", f'"{case.kernels}" counts all examples alike, and these have weights: use "csr"'
    yield from tasks.misfits(case)
    yield from rules.objective(case)
    if case.kernels == "compiled" and (case.device != "cpu" or case.threads > 1):
        yield "kernels", '"compiled" is one thread of a CPU: add ranks, or use kernels = "csr"'
    if case.subnormals == "flushed" and (case.device != "cpu" or case.threads > 1):
        yield "subnormals", '"flushed" is for one thread of a CPU: use "kept"'
    if case.kernels != "grouped" and case.group_size != Case.model_fields["group_size"].default:
        yield "group_size", 'is read by kernels = "grouped" only'

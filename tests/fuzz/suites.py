"""Suites from the real schema, and what may be wrong with them."""

from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from fedmpi.case.schema import Case
from fedmpi.registry.kinds import KINDS
from fedmpi.tasks.known import TASKS
from tests.fuzz import damage, nasty

Schema = Mapping[str, Any]
_BARE = re.compile(r"[A-Za-z0-9_-]+")


class Raw(str):
    """Text that stands in the file as it is."""


_FEW = ("rounds", "local_epochs", "batch_size", "clients", "graphs", "domains", "layers", "hidden")
"""Settings whose largest values are legal and would only cost memory."""


@functools.cache
def case_schema() -> Schema:
    """Return the JSON schema of a case; of what is found by name, every one's."""
    schema: dict[str, Any] = copy.deepcopy(Case.model_json_schema(mode="validation"))
    for kind in KINDS:
        if kind.title not in schema["properties"]:
            continue
        if kind is TASKS:  # named by text, without options
            schema["properties"][kind.title] = {"enum": ["", *kind]}
            continue
        options: list[Any] = []
        for name, each in kind.known().items():
            inner = getattr(each, "Options", each).model_json_schema()
            schema["$defs"] |= inner.pop("$defs", {})
            inner["properties"]["name"] = {"const": name}
            options.append(inner)
        schema["properties"][kind.title] = {"anyOf": options}
    for key in ("suite", "name"):
        schema["properties"].pop(key)
    return schema


def fitting(schema: Schema, name: str = "") -> SearchStrategy[Any]:
    """Return values that a JSON schema allows."""
    schema = _resolved(schema)
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return st.one_of([fitting(each, name) for each in schema[choice]])
    match schema.get("type"):
        case "boolean":
            return st.booleans()
        case "integer":
            low = schema.get("minimum", 0)
            most = low + (5 if name in _FEW else 1000)
            return st.integers(low, min(schema.get("maximum", most), most))
        case "number":
            low = schema.get("minimum", schema.get("exclusiveMinimum", 0.0))
            high = schema.get("maximum", schema.get("exclusiveMaximum", low + 10.0))
            return st.floats(low, high, exclude_min="exclusiveMinimum" in schema)
        case "array":
            return st.lists(fitting(schema.get("items", {"type": "integer"})), max_size=3)
        case "object":
            return _table(schema)
    return st.sampled_from(("synthetic", "PROTEINS", "gcfl/molecules", "ESOL"))


def _resolved(schema: Schema) -> Schema:
    reference = schema.get("$ref")
    return case_schema()["$defs"][reference.rpartition("/")[2]] if reference else schema


@st.composite
def _table(draw: DrawFn, schema: Schema) -> dict[str, Any]:
    """Return a table with its name, if it has one, and a few more of its keys."""
    properties: Mapping[str, Schema] = schema.get("properties", {})
    others = [key for key in properties if key != "name"]
    chosen = draw(st.lists(st.sampled_from(others), max_size=3, unique=True)) if others else []
    if "name" in properties:
        chosen = ["name", *chosen]
    return {key: draw(fitting(properties[key], key)) for key in chosen}


_AXES: dict[str, SearchStrategy[Any]] = {
    "seed": st.integers(0, 9),
    "algorithm": st.sampled_from(("fedavg", "fedprox", "gcfl", "fedadam")),
    "participation": st.sampled_from((0.5, 1.0)),
    "label": st.fixed_dictionaries({"label": nasty.texts, "rounds": st.integers(1, 9)}),
}


@st.composite
def fitting_suites(draw: DrawFn) -> dict[str, Any]:
    """Return suites that the grammar allows; not all that they say goes together."""
    case = draw(_table(case_schema()))
    case.setdefault("algorithm", draw(st.sampled_from(("fedavg", "fedprox", "self-train"))))
    suite: dict[str, Any] = {"name": draw(st.sampled_from(("fuzz", "a/b", "x-1"))), "case": case}
    axes = draw(st.lists(st.sampled_from(sorted(_AXES)), max_size=3, unique=True))
    if axes:
        suite["matrix"] = {axis: draw(st.lists(_AXES[axis], min_size=1, max_size=3)) for axis in axes}
        if draw(st.booleans()):
            suite["priority"] = draw(st.permutations(axes))
    if draw(st.booleans()):
        suite["description"] = draw(nasty.texts)
    if draw(st.integers(0, 4)) == 0:
        suite["where"] = [{"when": {"seed": 1}, "set": {"rounds": 2}}]
    if draw(st.integers(0, 4)) == 0:
        suite |= {"mode": draw(st.sampled_from(("strong", "throughput", "weak"))), "ranks": [1]}
    return suite


_RAW = (
    nasty.LONG_INTEGER, "0x" + "f" * 5000, "1979-05-27T07:32:00Z", "07:32:00", "[" * 3000 + "]" * 3000,
    "[" * 200 + "]" * 200, "{a=" * 300 + "1" + "}" * 300, '"\\u0000"', '"""new\nline"""', "'\x1b[31m'", "-nan", "1_000", "",
)  # fmt: skip
_WRONG = st.one_of(
    nasty.plain,
    nasty.numbers,
    st.sampled_from(([], {}, [[]], [{}], {"name": 5}, {"name": ["x"]}, [1, "a"], "1979-05-27")),
    st.sampled_from(tuple(map(Raw, _RAW))),
)
"""Values that do not belong where they stand."""

_KEYS = st.one_of(
    nasty.texts,
    st.sampled_from(("rounds", "seed", "name", "set", "when", "label", "algorithm.name", "dataset.name")),
    st.sampled_from((Raw("a." * 2000 + "b"), Raw("case"), Raw('"".x'), Raw("rounds.x"), Raw('"\\u0000"'))),
)
"""Names that may be none of the schema's."""

_BIG_MATRIX = {
    f"axis{number}": [{"label": str(value), "seed": value} for value in range(10)] for number in range(12)
}
_BIG_SEEDS = {"seed": list(range(3000)), "rounds": list(range(1, 3000)), "batch_size": list(range(1, 3000))}


@st.composite
def suites(draw: DrawFn) -> str:
    """Return a suite file: one of the grammar with nothing, or one to three things, wrong with it."""
    suite = draw(fitting_suites())
    for _ in range(draw(st.integers(0, 3))):
        _spoil(draw, suite)
    text = dumps(suite)
    if draw(st.integers(0, 4)) == 0:
        return draw(damage.of_text).apply(text.encode(errors="surrogatepass")).decode(errors="replace")
    return text


def _spoil(draw: DrawFn, suite: dict[str, Any]) -> None:
    """Change a suite somewhere, at any depth."""
    table = suite
    while inner := [value for value in table.values() if isinstance(value, dict) and value]:
        if draw(st.integers(0, 2)) == 0:
            break
        table = draw(st.sampled_from(inner))
    key = draw(st.sampled_from(list(table)))
    match draw(st.integers(0, 6)):
        case 0 | 1 | 2:
            table[key] = draw(_WRONG)
        case 3:
            table[draw(_KEYS)] = draw(_WRONG)
        case 4:
            table[draw(_KEYS)] = table.pop(key)
        case 5:
            table[key] = [table[key]] * draw(st.sampled_from((1, 2, 50)))
        case 6:
            suite["matrix"] = copy.deepcopy(draw(st.sampled_from((_BIG_MATRIX, _BIG_SEEDS))))


_SETTINGS = (
    "rounds=3", "seed=1", "algorithm=fedprox", "rounds=" + nasty.LONG_INTEGER, "a." * 2000 + "b=1", "x=" + "[" * 3000,
    "dataset.synthetic.domains=100000", "model.hidden=1000000000",
)  # fmt: skip
settings = st.lists(
    st.one_of(st.builds("{}={}".format, _KEYS, nasty.texts | nasty.numbers), st.sampled_from(_SETTINGS)),
    max_size=3,
)
"""What stands behind ``--set``."""


def dumps(table: Mapping[str, object]) -> str:
    """Return a table as a file: plain values, then tables under their headings."""
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if isinstance(value, dict):
            lines.append(f"[{_key(key)}]")
            lines += [f"{_key(inner)} = {_value(each)}" for inner, each in value.items()]
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    return key if isinstance(key, Raw) or _BARE.fullmatch(key) else _text(key)


def _text(value: str | bool) -> str:
    """Return a truth value or basic string: JSON's escapes are TOML's, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: object) -> str:
    match value:
        case Raw():
            return str(value)
        case bool() | str():
            return _text(value)
        case int() | float():
            return str(value)
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case dict():
            return f"{{ {', '.join(f'{_key(key)} = {_value(each)}' for key, each in value.items())} }}"
    return '"?"'

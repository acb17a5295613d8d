"""The base of all option tables of a case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer


class Options(BaseModel):
    """Frozen options that refuse unknown keys.

    Fields named in `added` came after runs had been recorded: they are left out of the dump while
    they have their default, so that a case that could be stated before still has the configuration
    of those runs. `removed` names options that there are no more, and the value that the dump goes on
    to hold for the same reason.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)

    added: ClassVar[frozenset[str]] = frozenset()
    removed: ClassVar[Mapping[str, Any]] = {}
    paper: ClassVar[str] = ""
    """Where it was published, for the reference of settings."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        dumped: dict[str, Any] = handler(self)
        for name in self.added:
            if name in dumped and getattr(self, name) == type(self).model_fields[name].default:
                del dumped[name]
        return {**dumped, **self.removed}

    @classmethod
    def recorded(cls, table: Mapping[str, Any]) -> dict[str, Any]:
        """Return a dumped table without what it holds for `removed` options."""
        return {key: value for key, value in table.items() if (key, value) not in cls.removed.items()}


def by_name(union: Any) -> dict[str, type[Options]]:
    """Return the option classes of a union by the defaults of their field `name`."""
    return {kind.model_fields["name"].default: kind for kind in get_args(union)}

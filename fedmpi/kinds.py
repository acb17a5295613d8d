"""Things that a suite names: fedmpi's own, those of installed packages, those of plug-in files."""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
import re
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from fedmpi.config.tables import closest
from fedmpi.errors import BadInput, FedmpiError

T = TypeVar("T")

DIGEST = "__fedmpi_sha256__"
"""Attribute of a plug-in's module: the SHA-256 of the text that was executed."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}(/[A-Za-z0-9][A-Za-z0-9._+-]{0,99})?")


_looked_up: dict[Hashable, Any] | None = None
"""What was looked up in the present block of `settled`; None outside of one."""


@contextmanager
def settled() -> Iterator[None]:
    """Look classes up once: nobody defines any in this block."""
    global _looked_up
    before = _looked_up
    _looked_up = {} if before is None else before
    try:
        yield
    finally:
        _looked_up = before


def looked_up(key: Hashable, look: Callable[[], T]) -> T:
    """Return what `look` returns; in a block of `settled` what it returned there for this key before."""
    if _looked_up is None:
        return look()
    if key not in _looked_up:
        found = look()
        _looked_up[key] = found
    value: T = _looked_up[key]
    return value


def imported(place: str) -> Any:
    """Return what a place names, ``module:name``: options name code that a login node must not import."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


class UnknownName(BadInput):
    """Nothing of a kind has this name; `text` is the message without the kind."""

    def __init__(self, title: str, name: str, known: Iterable[str]) -> None:
        valid, own = ", ".join(known), "own ones need --plugin, in Python plugins"
        self.text = f'there is no "{name}"{closest(name, known)} (valid: {valid}; {own})'
        super().__init__(f"{title}: {self.text}")


class Kind(Mapping[str, type[T]], Generic[T]):
    """All classes of one kind by name, in the order of their names.

    A class is found when it is a subclass of the base and has a name: the class variable `name`, or the
    default of a field of that name.

    Parameters
    ----------
    title : str
        What one of them is called, such as "model".
    base : type
    home : str
        Module of fedmpi's own, or a package with one or more of them in each module.
    group : str
        Entry points of installed packages.
    refuse_misfit : callable, optional
        Raises BadInput for a class that is not made as the base asks for.
    required : tuple of tuples of str
        Names in the base: of each tuple a class must define one alone. The first is a method.
    """

    def __init__(
        self,
        title: str,
        base: type[T],
        home: str,
        group: str,
        *,
        refuse_misfit: Callable[[type[T]], None] | None = None,
        required: tuple[tuple[str, ...], ...] = (),
    ) -> None:
        self.title, self.base = title, base
        self._home, self._group = home, group
        self._refuse_misfit, self._required = refuse_misfit, required
        self._loaded = False
        self._checked: WeakSet[type[T]] = WeakSet()

    def __getitem__(self, name: str) -> type[T]:
        return self.known()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.known())

    def __len__(self) -> int:
        return len(self.known())

    def known(self) -> dict[str, type[T]]:
        """Return all classes by name.

        Raises
        ------
        BadInput
            Two share a name, or one is not made as the base asks for.
        """
        self._load_installed()
        return looked_up(id(self), self._named)

    def _named(self) -> dict[str, type[T]]:
        found: dict[str, type[T]] = {}
        for each in self.classes():
            self.check(each)
            name = str(name_of(each))
            if name in found:
                first = found[name].__module__
                raise BadInput(
                    f'two {_plural(self.title)} are named "{name}": in {first} and in {each.__module__}'
                )
            found[name] = each
        return dict(sorted(found.items()))

    def find(self, name: str) -> type[T]:
        """Return the class of this name.

        Raises
        ------
        UnknownName
            There is none; the message lists those there are.
        """
        known = self.known()
        if name not in known:
            raise UnknownName(self.title, name, known)
        return known[name]

    def classes(self) -> list[type[T]]:
        """Return the classes that have a name, of the modules that are imported."""
        return [each for each in dict.fromkeys(_subclasses(self.base)) if name_of(each) is not None]

    def check(self, kind: type[T]) -> None:
        """Raise BadInput for a class that is not made as the base asks for; it is looked at once."""
        if kind in self._checked:
            return
        place, name = f"{file_of(kind)}: class {kind.__name__}", name_of(kind)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise BadInput(f"{place}: name = {name!r}: a name is text of letters, digits and . _ + -")
        for choice in self._required:
            own = {part: getattr(kind, part) for part in choice}
            new = [part for part in choice if own[part] != getattr(self.base, part)]
            if not new:
                raise BadInput(f"{place}: it must define `{choice[0]}`, as {self.base.__name__} says")
            if not callable(own[choice[0]]):
                raise BadInput(f"{place}: {choice[0]} = {own[choice[0]]!r}: it must be a method")
            if len(new) > 1:
                raise BadInput(
                    f"{place}: it has `{new[0]}` and also `{new[1]}` ({own[new[1]]}): "
                    f"derive it from a class without `{new[1]}`"
                )
        if self._refuse_misfit is not None:
            self._refuse_misfit(kind)
        self._checked.add(kind)

    def sources(self, kind: type[Any]) -> dict[str, str]:
        """Return the SHA-256 of the files that define a class and its bases, by file name.

        Those of fedmpi are left out, which its version and its numerics stand for.
        """
        found: dict[str, str] = {}
        for each in kind.__mro__:
            module = sys.modules.get(each.__module__)
            file = getattr(module, "__file__", None)
            if file is None or not issubclass(each, self.base) or each.__module__.startswith("fedmpi."):
                continue
            loaded: str | None = getattr(module, DIGEST, None)
            found[Path(file).name] = loaded or hashlib.sha256(Path(file).read_bytes()).hexdigest()
        return found

    @contextmanager
    def guarded(self, kind: type[Any]) -> Iterator[None]:
        """Turn what a plug-in's own code raises into one line that names its file.

        Raises
        ------
        BadInput
        """
        try:
            yield
        except FedmpiError:
            raise
        except Exception as error:
            files = ", ".join(self.sources(kind))
            if not files:
                raise  # of fedmpi: a defect
            text = " ".join(str(error).split())
            raise BadInput(
                f"{self.title} {name_of(kind)}: {files} raised {type(error).__name__}: {text}"
            ) from error

    def _load_installed(self) -> None:
        """Import all that are installed, once: to look for entry points takes milliseconds."""
        if self._loaded:
            return
        home = importlib.import_module(self._home)
        for module in pkgutil.iter_modules(getattr(home, "__path__", ())):
            importlib.import_module(f"{self._home}.{module.name}")
        for point in entry_points(group=self._group):
            try:
                point.load()
            except Exception as error:
                text = " ".join(str(error).split())
                raise BadInput(f"entry point {point.value} raised {type(error).__name__}: {text}") from error
        self._loaded = True
        if _looked_up is not None:
            _looked_up.clear()  # a module may define classes of several kinds


def name_of(kind: type[Any]) -> Any:
    """Return the name of a class; None for one that has none, such as a common base."""
    if "name" in getattr(kind, "model_fields", {}):
        field = kind.model_fields["name"]
        return None if field.is_required() else field.default
    return getattr(kind, "name", None)


def file_of(kind: type[Any]) -> str:
    """Return the file that defines a class, its module's name where there is none."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return str(file or kind.__module__)


def _subclasses(parent: type[T]) -> list[type[T]]:
    direct = parent.__subclasses__()
    return direct + [deeper for child in direct for deeper in _subclasses(child)]


def _plural(title: str) -> str:
    return f"{title[:-1]}ies" if title.endswith("y") else f"{title}s"

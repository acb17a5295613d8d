"""Calls of hooks: the name is noted while a hook runs, and errors name algorithm, hook and file."""

from __future__ import annotations

import random
import sys
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch

from fedmpi.algorithms.base import Algorithm
from fedmpi.errors import RankFailed
from fedmpi.programs.alike import alike, copied, is_comparable
from fedmpi.programs.hook_checks import Breach
from fedmpi.programs.position import Position

T = TypeVar("T")

REPEATED = frozenset(
    {"participants", "update", "observe", "split_candidates", "should_split", "split", "after_splits"}
    | {"aggregate", "decide", "change"}
)
"""Hooks that take and give plain values: while they are watched, each is called twice."""

PROGRAMS = frozenset({"train", "trained", "evaluated", "predict"})
"""Hooks that are a client's program."""


class HookCalls:
    """Calls the hooks of an algorithm on this rank.

    Parameters
    ----------
    algorithm : Algorithm
    num_clients : int
        Of the federation.
    where : Position
        Of this rank.

    Attributes
    ----------
    watching : bool
        Whether calls are watched: in one round of a plug-in.

    Raises
    ------
    RankFailed
        By any method: the hook returned what it must not, or ended the process. The text names
        algorithm, hook and, of a plug-in, its file.
    """

    def __init__(self, algorithm: Algorithm, num_clients: int, where: Position) -> None:
        self.algorithm, self.num_clients, self.where = algorithm, num_clients, where
        self._answers: dict[tuple[Any, ...], Any] = {}
        self.watching = False

    def call(self, hook: str, *arguments: Any) -> Any:
        """Call a hook and note that it runs; while `watching`, hold it against what it must not do."""
        return self._watched(hook, arguments) if self.watching else self._call(hook, arguments)

    def _watched(self, hook: str, arguments: tuple[Any, ...]) -> Any:
        """Call a hook, which must change nothing but the server's memory, and do the same when called again.

        What no checkpoint holds would be lost in a resumed run.
        """
        copies = _copies(arguments) if hook in REPEATED else None
        before = {name: copied(each) for name, each in vars(self.algorithm).items() if is_comparable(each)}
        drawn = _global_generators()
        value = self._call(hook, arguments)
        if not alike(drawn, _global_generators()):
            raise self.failed(hook, "drew from a global generator: take random numbers from fedmpi.seeds")
        after = vars(self.algorithm)
        known = (name for name, each in after.items() if name != "server" and is_comparable(each))
        if changed := [name for name in known if not alike(after[name], before.get(name))]:
            names = ", ".join(f"self.{name}" for name in changed)
            place = "memory()" if hook in PROGRAMS else "server_memory(), and keep it in self.server"
            raise self.failed(hook, f"changed {names}, which no checkpoint holds: declare it in {place}")
        if copies is not None:
            kept, self.algorithm.server = self.algorithm.server, before["server"]
            again = self._call(hook, copies)
            self.algorithm.server = kept
            if not (alike(value, again) and alike(arguments, copies)):
                text = "it must depend on its arguments alone, random numbers on fedmpi.seeds"
                raise self.failed(hook, f"does otherwise when it is called again: {text}")
        return value

    def _call(self, hook: str, arguments: tuple[Any, ...]) -> Any:
        outer, self.where.hook = self.where.hook, (f"{self.algorithm.name}.{hook}",)
        try:
            called = getattr(self.algorithm, hook)
            return called(*arguments) if callable(called) else called
        except SystemExit as error:
            raise self.failed(hook, f"ended the process with exit code {error.code!r}") from None
        except KeyboardInterrupt:  # no Ctrl-C, which raises nothing in a run
            raise self.failed(hook, "raised KeyboardInterrupt") from None
        except Breach as breach:
            raise self.failed(hook, str(breach), _line_of(breach, self.file)) from None
        except Exception as error:
            error.add_note(str(self.failed(hook, f"raised {type(error).__name__}")))
            raise
        finally:
            self.where.hook = outer if outer is None else (outer[0],)

    def ask(self, hook: str, arguments: tuple[Any, ...], check: Callable[..., T], *bounds: Any) -> T:
        """Call a hook and return its value as the engine uses it.

        Parameters
        ----------
        hook : str
        arguments : tuple
            Of the hook.
        check : callable
            Of `fedmpi.programs.hook_checks`.
        *bounds
            What the check takes beside the value.
        """
        return self.checked(hook, check, self.call(hook, *arguments), *bounds)

    def checked(self, hook: str, check: Callable[..., T], *arguments: Any) -> T:
        """Return what a check makes of a hook's value."""
        try:
            return check(*arguments)
        except Breach as breach:
            raise self.failed(hook, str(breach)) from None

    def ask_once(
        self, hook: str, arguments: tuple[Any, ...], check: Callable[..., T], *bounds: Any, key: Any = None
    ) -> T:
        """Call a hook once and return its checked value again in later calls.

        Parameters
        ----------
        hook, arguments, check, *bounds
            As for `ask`.
        key
            Distinguishes calls of one hook with different arguments.
        """
        if (hook, key) not in self._answers:
            self._answers[hook, key] = self.ask(hook, arguments, check, *bounds)
        answer: T = self._answers[hook, key]
        return answer

    def warm_up(self) -> None:
        """Call `warm_up`."""
        self.call("warm_up")

    @property
    def is_own(self) -> bool:
        """Whether the algorithm is one of fedmpi's own."""
        return type(self.algorithm).__module__.startswith("fedmpi.")

    @property
    def file(self) -> str | None:
        """The file of a plug-in's class."""
        return getattr(sys.modules.get(type(self.algorithm).__module__), "__file__", None)

    def failed(self, hook: str, text: str, line: int = 0) -> RankFailed:
        """Return the error that a hook ends the run with; `line` is that of its file, if it is known."""
        place = "" if self.is_own or self.file is None else f" in {self.file}{f':{line}' if line else ''}"
        return RankFailed(f"algorithm {self.algorithm.name}: hook {hook}{place} {text}")


def _global_generators() -> tuple[Any, ...]:
    """Return the states of the generators that a process has one of."""
    return random.getstate(), np.random.get_state(), torch.random.get_rng_state()


def _line_of(error: BaseException, file: str | None) -> int:
    """Return the last line of a file that an error went through; 0 if it did not."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno or 0 for frame in reversed(frames) if frame.filename == file), 0)


def _copies(arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return copies of arguments; None where there can be none, such as of a tensor within a graph."""
    try:
        found: tuple[Any, ...] = copied(arguments)
    except Exception:
        return None
    return found

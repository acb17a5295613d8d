"""Calls of hooks: the name is noted while a hook runs, and errors name algorithm, hook and file."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from fedmpi.algorithms.base import Algorithm
from fedmpi.errors import RankFailed
from fedmpi.programs.hook_checks import Breach
from fedmpi.programs.position import Position
from fedmpi.programs.rehearsal import Call, Rehearsal, alike, copied, is_comparable

T = TypeVar("T")

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

    Raises
    ------
    RankFailed
        By any method: the hook returned what it must not, or ended the process. The text names
        algorithm, hook and, of a plug-in, its file.
    """

    def __init__(self, algorithm: Algorithm, num_clients: int, where: Position) -> None:
        self.algorithm, self.num_clients, self.where = algorithm, num_clients, where
        self._answers: dict[tuple[Any, ...], Any] = {}
        self._begun: list[Call] = []
        self._warmed = False
        self._rehearsal: Rehearsal | None = None

    def call(self, hook: str, *arguments: Any) -> Any:
        """Call a hook and note that it runs."""
        if self._rehearsal is None:
            return self._call(hook, arguments)
        if hook in PROGRAMS:
            return self._watched(hook, arguments)
        copies = self._rehearsal.copies(hook, arguments)
        value = self._call(hook, arguments)
        if copies is not None and (breach := self._rehearsal.breach(hook, copies, arguments, value)):
            raise self.failed(hook, breach)
        return value

    def _watched(self, hook: str, arguments: tuple[Any, ...]) -> Any:
        """Call a client's program, which must leave the algorithm as it is: no checkpoint would hold it."""
        before = {name: each for name, each in vars(self.algorithm).items() if is_comparable(each)}
        before = copied(before)
        value = self._call(hook, arguments)
        after = vars(self.algorithm)
        known = (name for name, each in after.items() if is_comparable(each))
        if changed := [name for name in known if not alike(after[name], before.get(name))]:
            names = ", ".join(f"self.{name}" for name in changed)
            raise self.failed(hook, f"changed {names}, which no checkpoint holds: declare it in memory()")
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
            self._begun.append((hook, arguments))
            self._answers[hook, key] = self.ask(hook, arguments, check, *bounds)
        answer: T = self._answers[hook, key]
        return answer

    def begin(self, trained: int, num_clients: int) -> None:
        """Call `begin`."""
        self._begun.append(("begin", (trained, num_clients)))
        self.call("begin", trained, num_clients)

    def warm_up(self) -> None:
        """Call `warm_up`."""
        self._warmed = True
        self.call("warm_up")

    def rehearse(self, state: Mapping[str, Any] | None) -> None:
        """Have a new instance take part in what is called from here on, until `end_rehearsal`.

        Parameters
        ----------
        state : mapping or None
            What a checkpoint would hold of the server.
        """
        playing = "__init__"
        try:
            rehearsal = Rehearsal(self.algorithm)
            try:
                rehearsal.prepare(self._begun, state, warmed=self._warmed)
            finally:
                playing = rehearsal.playing
        except Exception as error:
            text = f"raised {type(error).__name__} in a new instance, as in a resumed run: {error}"
            raise self.failed(playing, text) from None
        self._rehearsal = rehearsal

    def end_rehearsal(self) -> None:
        """Let the new instance go."""
        self._rehearsal = None

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


def _line_of(error: BaseException, file: str | None) -> int:
    """Return the last line of a file that an error went through; 0 if it did not."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno or 0 for frame in reversed(frames) if frame.filename == file), 0)

"""Calls of hooks: the name is noted while a hook runs, and errors name algorithm, hook and file."""

from __future__ import annotations

import random
import sys
import traceback
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import cached_property, partial
from inspect import isgenerator
from typing import Any, TypeVar

import numpy as np
import torch

from fedmpi.algorithms.base import Algorithm
from fedmpi.algorithms.program import Offer, Request
from fedmpi.errors import RankFailed
from fedmpi.programs.alike import alike, copied, is_comparable
from fedmpi.programs.hook_checks import Breach
from fedmpi.programs.position import Position

T = TypeVar("T")

Check = Callable[[Any], object]
"""Raises Breach for what a program must not yield."""

_REPEATED = frozenset({"participants", "update", "decide", "change"})
"""Hooks that take and give plain values: while they are watched, each is called twice."""

_TALKS = {"prepare": (Offer, "client.count(3)"), "decide": (Request, "server.rows(server.participants)")}
"""Hooks that may ask for something by a `yield`, what they yield, and the call of such a verb."""

_MOST_ASKED = 10_000
"""Requests of a program in a round; more come from a loop without an end."""

_PROGRAMS = frozenset({"train", "trained", "evaluated", "predict"})
"""Hooks that are a client's program."""

_OTHERWISE = "asks otherwise"
"""What a program that asks for other things when it is called again comes to."""


class HookCalls:
    """Calls the hooks of an algorithm on this rank.

    Parameters
    ----------
    algorithm : Algorithm
    where : Position
        Of this rank.

    Attributes
    ----------
    watching : bool
        Whether calls are watched: in one round of a plug-in, and where it is tried out.
    last : str
        Hook that raised an exception.

    Raises
    ------
    RankFailed
        By any method: the hook returned what it must not, or ended the process. The text names
        algorithm, hook and, of a plug-in, its file.
    """

    def __init__(self, algorithm: Algorithm, where: Position) -> None:
        self.algorithm, self.where = algorithm, where
        self._answers: dict[tuple[Any, ...], Any] = {}
        self.last = ""
        self.watching = False

    def call(self, hook: str, *arguments: Any) -> Any:
        """Call a hook and note that it runs; while `watching`, hold it against what it must not do."""
        talk = self.talk(hook, *arguments) if self.watching else self._run(hook, arguments)
        try:
            next(talk)
        except StopIteration as ended:
            return ended.value
        raise self.failed(hook, "has a yield, which only prepare and decide may have")

    def talk(self, hook: str, *arguments: Any, check: Check | None = None) -> Generator[Any, Any, Any]:
        """Call a hook as `call` does; yield what it yields, which passes `check`, and send it the answers."""
        if not self.watching:
            return (yield from self._run(hook, arguments, check))
        if not is_comparable(vars(self.algorithm).get("server")):
            raise self.failed("server_memory", "declares arrays, and self.server holds something else")
        copies, asked = None, list[tuple[Any, Any]]()
        if hook in _REPEATED:
            with suppress(Exception):  # there can be no copies, such as of a tensor within a graph
                copies = copied(arguments)
        before = {name: copied(each) for name, each in vars(self.algorithm).items() if is_comparable(each)}
        drawn = _global_generators()
        value = yield from self._run(hook, arguments, check, asked)
        self._refuse_changes(hook, before, drawn)
        if copies is not None:
            kept: Any = getattr(self.algorithm, "server", None)
            self.algorithm.server = before.get("server", {})
            again = self._replay(hook, copies, asked)
            self.algorithm.server = kept
            if not (alike(value, again) and alike(arguments, copies)):
                text = "it must depend on its arguments alone, random numbers on fedmpi.seeds"
                raise self.failed(hook, f"does otherwise when it is called again: {text}")
        return value

    def _refuse_changes(self, hook: str, before: dict[str, Any], drawn: tuple[Any, ...]) -> None:
        """Refuse what no checkpoint holds: it would be lost in a resumed run."""
        if not alike(drawn, _global_generators()):
            raise self.failed(hook, "drew from a global generator: take random numbers from fedmpi.seeds")
        after = vars(self.algorithm)
        known = (name for name, each in after.items() if name != "server" and is_comparable(each))
        if changed := [name for name in known if not alike(after[name], before.get(name))]:
            names = ", ".join(f"self.{name}" for name in changed)
            place = "memory()" if hook in _PROGRAMS else "server_memory(), and keep it in self.server"
            raise self.failed(hook, f"changed {names}, which no checkpoint holds: declare it in {place}")

    def _replay(self, hook: str, arguments: tuple[Any, ...], asked: list[tuple[Any, Any]]) -> Any:
        """Call a hook again with the same answers, and return its value; a text if it asks otherwise."""
        run, answer, left = self._run(hook, arguments), None, list(asked)
        try:
            while True:
                request = run.send(answer)
                if not left or not alike(request, left[0][0]):
                    return _OTHERWISE
                _, answer = left.pop(0)
        except StopIteration as ended:
            return _OTHERWISE if left else ended.value

    def _run(
        self,
        hook: str,
        arguments: tuple[Any, ...],
        check: Check | None = None,
        asked: list[tuple[Any, Any]] | None = None,
    ) -> Generator[Any, Any, Any]:
        """Call a hook, yield what it yields, and return its value; `asked` gets the requests and answers."""
        with _Noted(self, hook):
            try:
                value = getattr(self.algorithm, hook)(*arguments)
            except StopIteration as error:  # it would end this generator
                raise RuntimeError("StopIteration") from error
        if not isgenerator(value):
            return value
        talk: Generator[Any, Any, Any] = value
        answer = None
        for _ in range(_MOST_ASKED + 1):
            with _Noted(self, hook):
                try:
                    request = talk.send(answer)
                except StopIteration as ended:
                    return ended.value
                kind, such = _TALKS.get(hook, (object, ""))
                if not isinstance(request, kind):
                    raise Breach(f"yielded {request!r}"[:80] + f": yield what a verb returns, such as {such}")
                if check is not None:
                    check(request)
            answer = yield request
            if asked is not None:
                asked.append((request, copied(answer)))
        raise self.failed(hook, f"yielded more than {_MOST_ASKED:,} times: it must come to an end")

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

    @cached_property
    def is_plugin(self) -> bool:
        """Whether the algorithm is none of fedmpi's own."""
        return not type(self.algorithm).__module__.startswith("fedmpi.")

    @property
    def file(self) -> str | None:
        """The file of a plug-in's class."""
        return getattr(sys.modules.get(type(self.algorithm).__module__), "__file__", None)

    def raised(self, error: Exception) -> RankFailed:
        """Return one line for an exception that a hook raised, which was the last to raise one."""
        text = f"raised {type(error).__name__}: {' '.join(str(error).split())[:200]}"
        return self.failed(self.last, text, _line_of(error, self.file))

    def failed(self, hook: str, text: str, line: int = 0) -> RankFailed:
        """Return the error that a hook ends the run with; `line` is that of its file, if it is known."""
        place = f" in {self.file}{f':{line}' if line else ''}" if self.is_plugin and self.file else ""
        return RankFailed(f"algorithm {self.algorithm.name}: hook {hook}{place} {text}")


class _Noted:
    """Notes that a hook runs, and has its errors name it."""

    def __init__(self, calls: HookCalls, hook: str) -> None:
        self._calls, self._hook, self._where = calls, hook, calls.where

    def __enter__(self) -> None:
        self._outer, self._where.hook = self._where.hook, (f"{self._calls.algorithm.name}.{self._hook}",)

    def __exit__(self, kind: Any, error: BaseException | None, _: object) -> None:
        self._where.hook = self._outer and (self._outer[0],)
        failed = partial(self._calls.failed, self._hook)
        if isinstance(error, SystemExit):
            raise failed(f"ended the process with exit code {error.code!r}") from None
        if isinstance(error, KeyboardInterrupt):  # no Ctrl-C, which raises nothing in a run
            raise failed("raised KeyboardInterrupt") from None
        if isinstance(error, Breach):
            raise failed(str(error), _line_of(error, self._calls.file)) from None
        if isinstance(error, Exception):
            error.add_note(str(failed(f"raised {kind.__name__}")))
            self._calls.last = self._hook


def _global_generators() -> tuple[Any, ...]:
    """Return the states of the generators that a process has one of."""
    return random.getstate(), np.random.get_state(), torch.random.get_rng_state()


def _line_of(error: BaseException, file: str | None) -> int:
    """Return the last line of a file that an error went through; 0 if it did not."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno or 0 for frame in reversed(frames) if frame.filename == file), 0)

"""Compilation of kernels by numba, cached on disk by the content of their sources."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import llvmlite.binding as llvm
import numba
from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.dispatcher import Dispatcher
from numba.core.types import unliteral

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

_FAST = {"contract", "nsz"}
"""Products may be contracted with sums (FMA); nothing is reordered, so the sources decide the results."""

_CALLED = (
    "graphs/*.py",
    *(f"kernels/{name}.py" for name in ("dropout_loops", "gin_loops", "gin_packing", "gin_passes")),
    *(f"kernels/{name}.py" for name in ("head_loops", "linear_map", "targets", "vectors")),
    "kernels/molecules/*.py",
)
"""Modules whose kernels those of other files may call."""

_ROOM_BYTES = 1 << 25
"""More than twice what the kernels of one kind of processor take."""

_SAVED: list[str] = []
"""Functions that this process compiled and put into the cache."""


def compiled(function: Kernel) -> Kernel:
    """Compile a kernel when it is first called, or take it from the cache.

    Numba notices only changes of a kernel's own file, not of what it calls; the
    cache's folder therefore bears a digest of the sources that `_CALLED` names. A kernel
    may call compiled functions of its own file and of these only.
    """
    decorate: Any = njit(fastmath=_FAST, error_model="numpy")
    kernel = _cached(decorate(function))
    kernel.get_call_template = partial(_for_any_value, kernel.get_call_template)
    return kernel  # type: ignore[no-any-return]


def _for_any_value(template: Callable[..., Any], args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
    """Resolve a call of one kernel by another without its constants, of which numba has a type each.

    So a kernel is compiled once for all values of an argument.
    """
    value: Callable[[Any], Any] = unliteral
    return template(tuple(map(value, args)), {name: value(each) for name, each in kws.items()})


def keep(*modules: ModuleType) -> None:
    """Have the compiled functions of another package's modules kept in the cache, as far as numba can.

    It cannot keep a function whose closure holds another compiled one.
    """
    for kernel in {id(value): value for module in modules for value in vars(module).values()}.values():
        if isinstance(kernel, Dispatcher) and not any(
            isinstance(cell.cell_contents, Dispatcher) for cell in kernel.py_func.__closure__ or ()
        ):
            _cached(kernel)


def _cached(kernel: Any) -> Any:
    kernel._cache = _KernelCache(kernel.py_func)  # type: ignore[no-untyped-call] # the one place where numba saves
    return kernel


class _ByContent(_CacheLocator):
    """Finds a kernel's machine code by the content of its source, so that all copies of fedmpi share it."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._line = function.__code__.co_firstlineno
        package = sys.modules.get(function.__module__.partition(".")[0])
        about = getattr(package, "__version__", "")  # of another package, whose kernels may call other files'
        self._stamp = hashlib.blake2b(Path(file).read_bytes() + about.encode(), digest_size=8).hexdigest()
        self._path = _folder() / f"{Path(file).stem}-{self._stamp}"

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> _ByContent:
        return cls(function, file)

    def get_cache_path(self) -> str:
        return str(self._path)

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return str(self._line)


class _OurFiles(CompileResultCacheImpl):
    _locator_classes = [_ByContent]  # noqa: RUF012


class _KernelCache(FunctionCache):
    """Lets a kernel that cannot be saved stay in memory alone, where numba would end the program."""

    _impl_class = _OurFiles

    def save_overload(self, signature: Any, data: Any) -> None:
        with contextlib.suppress(OSError):
            super().save_overload(signature, data)  # type: ignore[no-untyped-call]
            _SAVED.append(self._py_func.__name__)


def num_saved() -> int:
    """Return how many functions this process has compiled and put into the cache."""
    return len(_SAVED)


def forget() -> None:
    """Empty the cache, whose files a crash or a full disk may have cut short."""
    for file in _folder().glob("*/*.nb?"):
        file.unlink(missing_ok=True)


@contextlib.contextmanager
def by_one_process(name: str) -> Iterator[None]:
    """Have one process at a time compile what bears this name; those after it find it in the cache.

    A file system without locks lets all of them compile.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            place = _folder() / "locks"
            place.mkdir(exist_ok=True)
            lock = stack.enter_context((place / name.replace("/", "-")).open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@cache
def _folder() -> Path:
    """Return the cache's folder: in the user's cache, or a temporary one where that cannot hold it."""
    package = Path(__file__).parent.parent
    sources = sorted(file for pattern in _CALLED for file in package.glob(pattern))
    text = b"".join(source.read_bytes() for source in sources)
    about = f"{numba.__version__} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    name = hashlib.blake2b(text + about.encode(), digest_size=8).hexdigest()
    for place in (_users_cache(), _users_temporary_folder()):
        if place is not None and _can_hold_kernels(place / name):
            return place / name
    alone = Path(tempfile.mkdtemp(prefix="fedmpi-kernels-"))
    atexit.register(shutil.rmtree, alone, ignore_errors=True)
    return alone


def _users_cache() -> Path | None:
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(home) if home else Path.home() / ".cache") / "fedmpi" / "kernels"
    except RuntimeError:  # no HOME, and a user without an entry in the password file, as in some containers
        return None


def _users_temporary_folder() -> Path | None:
    """Return a folder that nobody else can write: what lies in a cache is executed."""
    folder = Path(tempfile.gettempdir()) / f"fedmpi-kernels-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    alone = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
    return folder if alone else None


def _can_hold_kernels(folder: Path) -> bool:
    """Return whether the folder can be written and, where it is empty, has room for all kernels.

    Numba lets a failed write end the program, so a full home must be noticed before.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        room = 0 if any(folder.glob("*/*.nbc")) else _ROOM_BYTES
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(room))
            probe.flush()
    except OSError:
        return False
    return True

"""Where compiled kernels are kept: a folder of the user's own that can hold them."""

import os
import resource
import tempfile
import threading

import pytest
from numba import types

from fedmpi.graphs import jit


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Take a folder of the test's for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def folder_with(monkeypatch, cache):
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    return jit._folder.__wrapped__()


def test_kernels_are_kept_in_the_users_cache(tmp_path, temporary, monkeypatch):
    first = folder_with(monkeypatch, tmp_path)
    assert first.parent == tmp_path / "fedmpi" / "kernels"
    assert folder_with(monkeypatch, tmp_path) == first


def test_a_cache_that_cannot_be_written_is_not_used(tmp_path, temporary, monkeypatch):
    (tmp_path / "file").touch()
    folder = folder_with(monkeypatch, tmp_path / "file")
    assert folder.parent == temporary / f"fedmpi-kernels-{os.getuid()}"
    assert folder.parent.stat().st_mode & 0o777 == 0o700


def test_a_cache_without_room_is_not_used(tmp_path, temporary, monkeypatch):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))  # as on a full disk: writes fail
    try:
        folder = folder_with(monkeypatch, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert tmp_path / "fedmpi" not in folder.parents


def _twice(number):
    return 2 * number


def test_a_kernel_that_finds_no_room_stays_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "_folder", lambda: tmp_path)
    before, saved = resource.getrlimit(resource.RLIMIT_FSIZE), jit.num_saved()
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        assert jit.compiled(_twice)(21) == 42
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert jit.num_saved() == saved
    assert not list(tmp_path.glob("*/*.nbc"))
    assert jit.compiled(_twice)(21) == 42
    assert jit.num_saved() == saved + 1
    assert len(list(tmp_path.glob("*/*.nbc"))) == 1


def test_a_kernel_that_others_call_is_compiled_once_for_all_constants(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "_folder", lambda: tmp_path)
    kernel = jit.compiled(_twice)
    for constant in (0, 1):
        kernel.get_call_template((types.literal(constant),), {})
    assert kernel.signatures == [(types.int64,)]


def test_a_temporary_folder_that_others_can_write_is_not_used(tmp_path, temporary, monkeypatch):
    (tmp_path / "file").touch()
    shared = temporary / f"fedmpi-kernels-{os.getuid()}"
    shared.mkdir()
    shared.chmod(0o777)
    folder = folder_with(monkeypatch, tmp_path / "file")
    assert shared not in folder.parents
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_user_without_a_home_has_a_temporary_cache(temporary, monkeypatch):
    def nobody():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(jit.Path, "home", nobody)
    assert temporary in folder_with(monkeypatch, "").parents


def test_one_process_at_a_time_compiles_what_bears_a_name(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "_folder", lambda: tmp_path)
    entered = threading.Event()

    def enter(name):
        with jit.by_one_process(name):
            entered.set()

    with jit.by_one_process("fedgraphnn/gcn"):
        other = threading.Thread(target=enter, args=["gin"])
        other.start()
        assert entered.wait(60)
        other.join()
        entered.clear()
        same = threading.Thread(target=enter, args=["fedgraphnn/gcn"])
        same.start()
        assert not entered.wait(0.1)
    assert entered.wait(60)
    same.join()

"""Runs of a suite in this process, and their records."""

from fedmpi.store.reader import load_run


def sets(*settings):
    """Return the options of a command line for these settings."""
    return [part for each in settings for part in ("--set", each)]


def runs_of(fedmpi, folder, suite, *settings):
    """Run a suite's text, or the file that there is, in a folder; return the runs by name."""
    path = folder / "suite.toml" if isinstance(suite, str) else suite
    path.write_text(suite if isinstance(suite, str) else suite.read_text())
    out = folder / f"runs{len(list(folder.iterdir()))}"
    done = fedmpi("run", path, "--out", out, *sets(*settings))
    assert done.returncode == 0, done.stderr
    return {each.name: load_run(each) for each in sorted(out.iterdir()) if each.is_dir()}

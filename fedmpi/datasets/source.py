"""Where dataset files come from: the cache of prepared data, a local mirror, an own folder, upstream."""

from __future__ import annotations

import logging
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fedmpi.config.documents import short
from fedmpi.datasets import cache, names
from fedmpi.datasets.cache import Facts
from fedmpi.datasets.download import fetch_archive
from fedmpi.datasets.family import FAMILIES, Family, path_to_read
from fedmpi.datasets.names import family_of
from fedmpi.datasets.raw import RawGraphs, digest
from fedmpi.datasets.sealed import scratch_name
from fedmpi.errors import BadInput

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class DataSource:
    """Access to datasets by name.

    Attributes
    ----------
    cache : Path
        Folder of prepared data, below it a folder for each family: ``CACHE/tudataset/NAME/`` and so on.
    mirror : Path or None
        Folder that stands in for the upstream sites, likewise: ``MIRROR/tudataset/NAME.zip``.
    offline : bool
        Refuse every download.
    upstream : str
        Address that files are appended to, in place of that of each family.
    """

    cache: Path
    mirror: Path | None = None
    offline: bool = False
    upstream: str = ""

    @staticmethod
    def from_environment(
        cache: Path | str | None = None, mirror: Path | str | None = None, offline: bool | None = None
    ) -> DataSource:
        """Return the source that options and environment ask for; options win.

        FEDMPI_DATA is the cache (default ``~/.cache/fedmpi``), FEDMPI_MIRROR the mirror,
        FEDMPI_OFFLINE=1 refuses downloads.

        Raises
        ------
        BadInput
            FEDMPI_OFFLINE is neither 0 nor 1, the mirror is no folder, or no file can have the cache's path.
        """
        switch = os.environ.get("FEDMPI_OFFLINE", "")
        if switch not in ("", "0", "1"):
            raise BadInput(f"FEDMPI_OFFLINE is '{switch}': set it to 1 (no downloads) or 0")
        place = Path(cache or os.environ.get("FEDMPI_DATA") or "~/.cache/fedmpi").expanduser()
        try:
            place.exists()
        except OSError as error:
            raise BadInput(f"{short(str(place))}: {error.strerror}: correct FEDMPI_DATA or --data") from error
        stand_in = mirror or os.environ.get("FEDMPI_MIRROR")
        folder = Path(stand_in).expanduser() if stand_in else None
        if folder is not None and not folder.is_dir():
            raise BadInput(f"the mirror {folder} is no folder: correct FEDMPI_MIRROR or --mirror")
        return DataSource(place, folder, switch == "1" if offline is None else offline)

    def members(self, name: str) -> tuple[str, ...]:
        """Return the datasets behind a name that are prepared; see `fedmpi.datasets.names.files_behind`."""
        return names.files_behind(name)

    def check(self, name: str) -> None:
        """Check that every dataset behind a name can be had; reads little, writes nothing, downloads nothing.

        Raises
        ------
        BadInput
            Unknown name, damaged archive, incomplete own folder, or not there while offline;
            the message says what to do.
        """
        for member in self.members(name):
            family = family_of(member)
            if cache.intact(self._place(member)):
                continue
            family.require()
            if not family.files(member):
                continue
            if (path := family.locate(member, self.mirror)) is not None:
                family.check(path, member)
            else:
                self._refuse_absent(family, member)

    def prepare(self, name: str) -> None:
        """Bring every dataset behind a name into the cache, where it is not there already.

        Raises
        ------
        BadInput
            As `check`; or the download failed, the content is not consistent, or a known
            dataset's number of rows or digest is another one. Nothing partial stays in the cache.
        """
        for member in self.members(name):
            if cache.intact(self._place(member)):
                continue
            if self._place(member).exists():
                _LOG.warning("%s is damaged or of an older fedmpi: prepared anew", self._place(member))
            raw, origin = self._read(member)
            _refuse_other_digest(raw)
            cache.save(raw, self._place(member), origin, family_of(member).remarks(raw))

    def _read(self, name: str) -> tuple[RawGraphs, str]:
        """Return a dataset that is not prepared, and where it came from."""
        family = family_of(name)
        if not family.files(name):
            return _read_by(family, None, name), f"made by {family.name}"
        path = family.locate(name, self.mirror)
        if path is None:
            self._refuse_absent(family, name)
            base, files = self.upstream or family.upstream, family.files(name)
            return self._download(family, name), f"{base}/{files[0]}" if len(files) == 1 else base
        family.check(path, name)
        return _read_by(family, path, name), "own folder" if path.is_dir() else "mirror"

    def load(self, name: str) -> RawGraphs:
        """Return one prepared dataset, large arrays mapped from disk.

        Raises
        ------
        BadInput
            It is not prepared, or damaged.
        """
        try:
            return replace(cache.load(self._place(name)), name=name)
        except BadInput as error:
            self._facts(name)  # says so where it is not prepared at all
            raise BadInput(
                f"the prepared dataset in {self._place(name)} is damaged: run 'fedmpi data fetch {name}', "
                "which prepares it anew"
            ) from error

    def refused_of(self, name: str) -> tuple[str, ...]:
        """Return the rows of one prepared dataset's files that were left out; see `RawGraphs.refused`."""
        facts = cache.facts_of(self._place(name))
        return () if facts is None else facts.refused

    def remarks_of(self, name: str) -> tuple[str, ...]:
        """Return what was worth a look when one dataset was prepared; see `Family.remarks`."""
        facts = cache.facts_of(self._place(name))
        return () if facts is None else facts.remarks

    def digest_of(self, name: str) -> str:
        """Return the digest noted when one dataset was prepared."""
        return self._facts(name).digest

    def _facts(self, name: str) -> Facts:
        facts = cache.facts_of(self._place(name))
        if facts is None:
            raise BadInput(f"dataset {name} is not prepared: run 'fedmpi data fetch {name}'")
        return facts

    def verify(self, name: str) -> str:
        """Compute the digest of one prepared dataset anew and return it.

        Raises
        ------
        BadInput
            The set is damaged, its digest differs from the one noted or from the known one, or it
            was prepared from a file with another number of rows than is known.
        """
        found = digest(raw := self.load(name))
        if found != self.digest_of(name):
            raise BadInput(
                f"prepared dataset {name} has digest {found}, noted was {self.digest_of(name)}: "
                f"delete {self._place(name)} and run 'fedmpi data fetch {name}'"
            )
        _refuse_other_digest(raw)
        rows, expected = raw.num_graphs + len(raw.refused), family_of(name).rows(name)
        if expected and rows != expected:
            raise BadInput(
                f"dataset {raw.name} was prepared from {rows} rows, it has {expected}: "
                "delete it from the cache and prepare it from another file"
            )
        return found

    def status(self, name: str) -> str:
        """Return ``prepared``, ``mirror`` (local files are at hand) or ``missing``; of a group the worst."""
        order = ("prepared", "mirror", "missing")
        states = {self._status(member) for member in self.members(name)} or {"prepared"}
        return max(states, key=order.index)

    def _status(self, name: str) -> str:
        if cache.facts_of(self._place(name)) is not None:
            return "prepared"
        family = family_of(name)
        return "mirror" if not family.files(name) or family.locate(name, self.mirror) else "missing"

    def _place(self, name: str) -> Path:
        return self.cache / family_of(name).prepared_in(name)

    def _refuse_absent(self, family: Family, name: str) -> None:
        """Refuse what must not or cannot be downloaded."""
        family.refuse_missing(name)
        if name not in family.names and (self.offline or self.mirror is not None):
            where = "" if self.mirror is None else f" and not in the mirror {self.mirror}"
            raise BadInput(
                f"unknown dataset {name}{where}{names.meant(name)}; 'fedmpi data list' shows those known, "
                "any other TU name is downloaded when there is neither a mirror nor the offline flag"
            )
        if self.offline:
            state = "damaged" if self._place(name).exists() else "not"
            raise BadInput(
                f"dataset {name} is {state} in {self.cache} and downloads are off: "
                f"run 'fedmpi data fetch {name}' where there is internet (on a cluster: the login node)"
            )

    def _lacking(self, family: Family, files: tuple[str, ...]) -> str:
        """Return which of a dataset's files the mirror lacks, where it has others."""
        if self.mirror is None:
            return ""
        lacking = [file for file in files if not (self.mirror / family.place / file).is_file()]
        return f"; the mirror lacks {', '.join(lacking)}" if 0 < len(lacking) < len(files) else ""

    def _download(self, family: Family, name: str) -> RawGraphs:
        """Download a dataset's files into a folder of their own, read them and remove them."""
        files = family.files(name)
        folder = scratch_name(self._place(name))
        try:
            for file in files:
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                address = f"{self.upstream or family.upstream}/{file}"
                fetch_archive(address, folder / file, f"{family.place}/{file}".rpartition("/")[0])
            return _read_by(family, path_to_read(folder, files), name)
        except BadInput as error:
            meant = "" if name in family.names else names.meant(name)
            raise BadInput(f"{error}{self._lacking(family, files)}{meant}") from error
        except OSError as error:
            raise BadInput(f"cannot write the data cache {self.cache}: {error.strerror}") from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _read_by(family: Family, path: Path | None, name: str) -> RawGraphs:
    with FAMILIES.guarded(type(family)):
        raw = family.read(path, name)
        if raw.examples != family.examples:
            raise BadInput(
                f"dataset family {family.name}: its `examples` say {family.examples}s, "
                f"`places` of {name} are those of {raw.examples}s: correct one of them"
            )
        places = np.zeros(0, np.int64) if raw.places is None else np.asarray(raw.places)
        if places.size and not 0 <= places.min() <= places.max() < raw.topology.num_nodes:
            raise BadInput(f"dataset family {family.name}: `places` of {name} are no nodes of its graphs")
        return raw


def _refuse_other_digest(raw: RawGraphs) -> None:
    """Raise BadInput for a dataset that is known and has other content."""
    expected = family_of(raw.name).digest(raw.name)
    if expected and (found := digest(raw)) != expected:
        raise BadInput(
            f"dataset {raw.name} has content digest {found}, expected {expected}: "
            "these are other data under that name; get the archive from another place"
        )

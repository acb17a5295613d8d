"""Where dataset files come from: the cache of prepared data, a local mirror, an own folder, upstream."""

from __future__ import annotations

import hashlib
import logging
import os
from dataclasses import dataclass, replace
from pathlib import Path

from fedmpi.config.documents import short
from fedmpi.datasets import cache, names, smiles, tu
from fedmpi.datasets.cache import Facts
from fedmpi.datasets.download import UPSTREAM, fetch_archive
from fedmpi.datasets.moleculenet import ADDRESS, FOLDER, MOLECULES
from fedmpi.datasets.raw import RawGraphs, digest
from fedmpi.datasets.sealed import scratch_name
from fedmpi.datasets.tables import KNOWN
from fedmpi.errors import BadInput

_TU_FOLDER = "tudataset"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class DataSource:
    """Access to datasets by name.

    Attributes
    ----------
    cache : Path
        Folder of prepared data; ``CACHE/tudataset/NAME/`` or ``CACHE/moleculenet/NAME/`` each.
    mirror : Path or None
        Folder that stands in for the upstream sites: ``MIRROR/tudataset/NAME.zip`` and
        ``MIRROR/moleculenet/FILE``.
    offline : bool
        Refuse every download.
    upstream : str
        Address that ``/NAME.zip`` of a TU dataset is appended to.
    molecules : str
        Address that the file of a MoleculeNet set is appended to.
    """

    cache: Path
    mirror: Path | None = None
    offline: bool = False
    upstream: str = UPSTREAM
    molecules: str = ADDRESS

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
        """Return the datasets behind a name; see `fedmpi.datasets.names.members`."""
        return names.members(name)

    def check(self, name: str) -> None:
        """Check that every dataset behind a name can be had; reads little, writes nothing, downloads nothing.

        Raises
        ------
        BadInput
            Unknown name, damaged archive, incomplete own folder, or not there while offline;
            the message says what to do.
        """
        for member in names.members(name):
            if self._intact(member):
                continue
            if member in MOLECULES:
                smiles.require_rdkit()
            if names.is_folder(member):
                self._check_own(member)
            elif (path := self._mirrored(member)) is not None:
                _check_file(path, member)
            else:
                self._check_upstream(member)

    def prepare(self, name: str) -> None:
        """Bring every dataset behind a name into the cache, where it is not there already.

        Raises
        ------
        BadInput
            As `check`; or the download failed, the content is not consistent, or a known
            dataset's number of rows or digest is another one. Nothing partial stays in the cache.
        """
        for member in names.members(name):
            if self._intact(member):
                continue
            if self._place(member).exists():
                _LOG.warning("%s is damaged or of an older fedmpi: prepared anew", self._place(member))
            if names.is_folder(member):
                self._check_own(member)
                raw = tu.read_folder(*names.own_folder(member), member)
                origin = "own folder"
            elif (path := self._mirrored(member)) is not None:
                raw = _read(path, member)
                origin = "mirror"
            else:
                self._check_upstream(member)
                raw = self._download(member)
                origin = self._address(member)
            _check_digest(raw)
            cache.save(raw, self._place(member), origin)

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
        """Return what of one prepared dataset's files was left out; see `RawGraphs.refused`."""
        facts = cache.facts_of(self._place(name))
        return () if facts is None else facts.refused

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
        _check_digest(raw)
        _check_rows(raw)
        return found

    def status(self, name: str) -> str:
        """Return ``prepared``, ``mirror`` (local files are at hand) or ``missing``; of a group the worst."""
        order = ("prepared", "mirror", "missing")
        states = {self._status(member) for member in names.members(name)} or {"prepared"}
        return max(states, key=order.index)

    def _status(self, name: str) -> str:
        if self._prepared(name):
            return "prepared"
        if names.is_folder(name):
            return "mirror" if names.own_folder(name)[0].is_dir() else "missing"
        return "missing" if self._mirrored(name) is None else "mirror"

    def _place(self, name: str) -> Path:
        if not names.is_folder(name):
            return self.cache / (FOLDER if name in MOLECULES else _TU_FOLDER) / name
        folder, stem = names.own_folder(name)
        state = hashlib.blake2b(str(folder.resolve()).encode(), digest_size=8)
        for part in tu.PARTS:  # an edited file asks for a new preparation
            path = folder / f"{stem}_{part}.txt"
            if path.is_file():
                state.update(f"{part} {path.stat().st_size} {path.stat().st_mtime_ns}\n".encode())
        return self.cache / "own" / f"{stem}-{state.hexdigest()}"

    def _prepared(self, name: str) -> bool:
        return cache.facts_of(self._place(name)) is not None

    def _intact(self, name: str) -> bool:
        return cache.intact(self._place(name))

    def _mirrored(self, name: str) -> Path | None:
        if self.mirror is None:
            return None
        molecules = MOLECULES.get(name)
        path = (
            self.mirror / FOLDER / molecules.file if molecules else self.mirror / _TU_FOLDER / f"{name}.zip"
        )
        return path if path.is_file() else None

    def _address(self, name: str) -> str:
        molecules = MOLECULES.get(name)
        return f"{self.molecules}/{molecules.file}" if molecules else f"{self.upstream}/{name}.zip"

    def _check_own(self, name: str) -> None:
        folder, stem = names.own_folder(name)
        if not folder.is_dir():
            raise BadInput(f"no folder {name} and no group of that name{names.meant(name)}")
        tu.check_folder(folder, stem)

    def _check_upstream(self, name: str) -> None:
        """Refuse what must not or cannot be downloaded."""
        if name not in KNOWN and name not in MOLECULES and (self.offline or self.mirror is not None):
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

    def _download(self, name: str) -> RawGraphs:
        file = MOLECULES[name].file if name in MOLECULES else f"{name}.zip"
        target = scratch_name(self._place(name).parent / file)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"cannot write the data cache {self.cache}: {error.strerror}") from error
        try:
            fetch_archive(self._address(name), target)
            return _read(target, name)
        except BadInput as error:
            raise BadInput(
                f"{error}{'' if name in KNOWN or name in MOLECULES else names.meant(name)}"
            ) from error
        finally:
            target.unlink(missing_ok=True)


def _check_file(path: Path, name: str) -> None:
    if name in MOLECULES:
        smiles.check_table(path, MOLECULES[name])
    else:
        tu.check_archive(path, name)


def _read(path: Path, name: str) -> RawGraphs:
    if name in MOLECULES:
        return smiles.read_molecules(path, MOLECULES[name])
    return tu.read_archive(path, name, name)


def _check_digest(raw: RawGraphs) -> None:
    facts = KNOWN.get(raw.name)
    if facts is None:
        return
    found = digest(raw)
    if found != facts.digest:
        raise BadInput(
            f"dataset {raw.name} has content digest {found}, expected {facts.digest}: "
            "these are other data under that name; get the archive from another place"
        )


def _check_rows(raw: RawGraphs) -> None:
    facts = MOLECULES.get(raw.name)
    if facts is not None and (found := raw.num_graphs + len(raw.refused)) != facts.rows:
        raise BadInput(
            f"dataset {raw.name} was prepared from {found} rows, it has {facts.rows}: "
            "delete it from the cache and prepare it from another file"
        )

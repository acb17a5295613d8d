"""Molecules from a table of SMILES: atoms, bonds and scaffolds by RDKit (the extra ``molecules``)."""

from __future__ import annotations

import csv
import hashlib
import importlib
import importlib.util
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.atoms import ATOM_COLUMNS, HYBRIDISATIONS
from fedmpi.datasets.bounds import most_table, read_text
from fedmpi.datasets.raw import Int, LabelKind, RawGraphs
from fedmpi.errors import BadInput
from fedmpi.graphs.packed import Topology, pointers

_ELEMENTS = 119
"""Atomic numbers 0 (a wildcard) to 118."""

_BOND_TYPES = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")
EVERY_OTHER = ("*",)
"""Stands for all columns that hold no SMILES and no identifier."""

IDENTIFIERS = ("mol_id",)
"""Columns that are no labels where all others are."""

BOND_COLUMNS = ("single", "double", "triple", "aromatic", "conjugated", "in ring")
"""Columns of a bond, 0 or 1 each."""


@dataclass(frozen=True)
class MoleculeFacts:
    """A MoleculeNet set.

    Attributes
    ----------
    name, file : str
    smiles : str
        Column of the molecules.
    tasks : tuple of str
        Columns of the labels, or `EVERY_OTHER`.
    num_tasks, rows : int
        Label columns and rows of the file.
    published : (int, float, float)
        Graphs, mean nodes and mean edges of FedGraphNN's Table 1, whose edges are bonds for
        classification and non-zeros of A + I for regression; Tox21's 25.94 there is BBBP's.
    kind : "multi-task" or "regression"
        A single yes-or-no label is one task of a multi-task set.
    digest : str
        `table_digest` of the file's content; empty where nobody computed it.
    """

    name: str
    file: str
    smiles: str
    tasks: tuple[str, ...]
    num_tasks: int
    rows: int
    published: tuple[int, float, float]
    kind: LabelKind = "multi-task"
    digest: str = ""


Molecule = tuple[npt.NDArray[np.float32], Int, npt.NDArray[np.uint8], str]
"""Atoms float32 [n, 8], bonds by receiver and sender int64 [E, 2], their kinds uint8 [E, 6], scaffold."""


def require_rdkit() -> None:
    """Raise BadInput unless RDKit is installed."""
    if importlib.util.find_spec("rdkit") is None:
        raise BadInput("molecules are read with RDKit, which is missing: pip install 'fedmpi[molecules]'")


def check_table(path: Path, facts: MoleculeFacts) -> None:
    """Check that a file begins with the columns that are needed.

    Raises
    ------
    BadInput
        It cannot be read, or a column is missing.
    """
    _columns(path, next(iter(_rows(path, facts, 1)), {}), facts)


def read_molecules(path: Path, facts: MoleculeFacts) -> RawGraphs:
    """Read a MoleculeNet file, rows in its order.

    Edges are bonds in both directions, without self loops: models add theirs. A row that RDKit
    refuses, that has no atom or no label is left out and named in `RawGraphs.refused`.

    Parameters
    ----------
    path : Path
        CSV with a header, plain or gzip.
    facts : MoleculeFacts

    Returns
    -------
    RawGraphs
        Labels float64 [G, T], NaN where one is missing; node labels are atomic numbers, node
        attributes `ATOM_COLUMNS`, edge attributes `BOND_COLUMNS`; `scaffolds` numbers the
        Bemis-Murcko scaffolds in the order in which they appear.

    Raises
    ------
    BadInput
        RDKit is missing, the file is damaged, it has another number of rows or other content than
        is known of the set, or a label is no number.
    """
    require_rdkit()
    rows = _rows(path, facts, facts.rows + 1)
    tasks = _columns(path, rows[0] if rows else {}, facts)
    table = _labels(path, rows, tasks)
    _check_content(path, rows, table, facts)
    kept: list[Molecule] = []
    labels: list[npt.NDArray[np.float64]] = []
    refused: list[str] = []
    for number, (row, values) in enumerate(zip(rows, table, strict=True), start=1):
        parsed = molecule(row[facts.smiles])
        missing = bool(np.isnan(values).all())
        if parsed is None or missing:
            why = "no label" if missing else "no molecule"
            refused.append(f"row {number}: {why}: {row[facts.smiles]}")
            continue
        kept.append(parsed)
        labels.append(values)
    if not kept:
        raise BadInput(f"{path}: no row holds a molecule with a label")
    raw = packed(facts.name, kept, np.array(labels), tuple(tasks), facts.kind)
    return replace(raw, refused=tuple(refused))


def _rows(path: Path, facts: MoleculeFacts, most: int) -> list[dict[str, str]]:
    """Return the first rows of a table, at most so many; of its text no more is unpacked than it can have."""
    with read_text(path, most_table(facts.rows)) as text:
        return list(itertools.islice(csv.DictReader(text), most))


def _columns(path: Path, row: Mapping[str, Any], facts: MoleculeFacts) -> list[str]:
    """Return the label columns of a table whose first row is given."""
    tasks = facts.tasks
    if tasks == EVERY_OTHER:
        tasks = tuple(name for name in row if name not in (facts.smiles, *IDENTIFIERS))
    for name in (facts.smiles, *tasks):
        if name not in row:
            raise BadInput(f"{path} has no column '{name}': not the MoleculeNet file of {facts.name}")
    if len(tasks) != facts.num_tasks:
        raise BadInput(f"{path} has {len(tasks)} label columns, {facts.name} has {facts.num_tasks}")
    return list(tasks)


def _labels(path: Path, rows: Sequence[Mapping[str, str]], tasks: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return the labels of all rows, float64 [rows, tasks], NaN where one is missing."""
    values = [
        [_label(path, number, task, row[task]) for task in tasks] for number, row in enumerate(rows, start=1)
    ]
    return np.array(values, np.float64).reshape(len(rows), len(tasks))


def _check_content(
    path: Path, rows: Sequence[Mapping[str, str]], labels: npt.NDArray[np.float64], facts: MoleculeFacts
) -> None:
    """Refuse a file that is cut or holds other data than the set of that name."""
    if len(rows) != facts.rows:
        found = len(rows) if len(rows) < facts.rows else f"more than {facts.rows}"
        raise BadInput(
            f"{path} has {found} rows, {facts.name} has {facts.rows}: "
            "it is cut short or another file; get it anew"
        )
    digest = table_digest([row[facts.smiles] for row in rows], labels)
    if facts.digest and digest != facts.digest:
        raise BadInput(
            f"dataset {facts.name} has content digest {digest}, expected {facts.digest}: "
            "these are other data under that name; get the file from another place"
        )


def table_digest(smiles: Sequence[str], labels: npt.NDArray[np.float64]) -> str:
    """Return the SHA-256 (hex) of a table's content: SMILES and labels, row by row.

    Unlike `fedmpi.datasets.raw.digest` it does not depend on what RDKit makes of the SMILES, so it is
    the same under every version of RDKit; spelling of numbers, other columns and compression do not
    matter.

    Parameters
    ----------
    smiles : sequence of str, length n
    labels : float64 [n, T]
        NaN where one is missing.
    """
    state = hashlib.sha256(b"fedmpi molecules 1\n")
    state.update("\n".join(text.strip() for text in smiles).encode())
    state.update(f"\nlabels {labels.shape}\n".encode())
    canonical = np.where(np.isnan(labels), np.nan, labels) + 0.0  # one NaN, and -0.0 becomes 0.0
    state.update(np.ascontiguousarray(canonical, "<f8").data)
    return state.hexdigest()


def _label(path: Path, number: int, task: str, text: str | None) -> float:
    if not text:
        return np.nan
    try:
        return float(text)
    except ValueError as error:
        raise BadInput(f"{path}: row {number}, column '{task}': '{text}' is no number") from error


def molecule(text: str, *, block: bool = False) -> Molecule | None:
    """Return what RDKit makes of a SMILES, or an SDF file's block; None where it refuses or has no atom."""
    chemistry: Any = importlib.import_module("rdkit.Chem")
    murcko: Any = importlib.import_module("rdkit.Chem.Scaffolds.MurckoScaffold")
    log: Any = importlib.import_module("rdkit.RDLogger")
    log.DisableLog("rdApp.*")  # refusals are counted and named instead
    parsed = chemistry.MolFromMolBlock(text) if block else chemistry.MolFromSmiles(text.strip())
    if parsed is None or not parsed.GetNumAtoms():
        return None
    atoms = np.array([_atom(atom) for atom in parsed.GetAtoms()], np.float32)
    pairs = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in parsed.GetBonds()]
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    kinds = np.array([_bond(bond) for bond in parsed.GetBonds()], np.uint8).reshape(-1, len(BOND_COLUMNS))
    edges = np.concatenate([ends, ends[:, ::-1]])
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    bonds = np.concatenate([kinds, kinds])[order]
    return atoms, edges[order], bonds, murcko.MurckoScaffoldSmiles(mol=parsed)


def _atom(atom: Any) -> tuple[float, ...]:
    """Return an atom in the order of `ATOM_COLUMNS`."""
    hybridisation = str(atom.GetHybridization())
    return (
        atom.GetAtomicNum(),
        atom.GetFormalCharge(),
        atom.GetDegree(),
        int(atom.GetChiralTag()),
        atom.GetTotalNumHs(),
        atom.GetMass() / 100,
        atom.GetIsAromatic(),
        HYBRIDISATIONS.index(hybridisation) + 1 if hybridisation in HYBRIDISATIONS else 0,
    )


def _bond(bond: Any) -> list[bool]:
    kind = str(bond.GetBondType())
    return [*(kind == each for each in _BOND_TYPES), bond.GetIsConjugated(), bond.IsInRing()]


def packed(
    name: str,
    molecules: Sequence[Molecule],
    labels: npt.NDArray[Any],
    class_names: tuple[str, ...],
    task: LabelKind,
) -> RawGraphs:
    """Return molecules as a dataset; see `read_molecules`."""
    atoms_of, edges_of, bonds_of, scaffold_of = zip(*molecules, strict=True)
    graph_ptr, atoms = pointers([len(each) for each in atoms_of]), np.concatenate(atoms_of)
    edges = np.concatenate([each + start for each, start in zip(edges_of, graph_ptr[:-1], strict=True)])
    row_ptr = pointers(np.bincount(edges[:, 0], minlength=int(graph_ptr[-1])))
    numbers: dict[str, int] = {}
    scaffolds = [numbers.setdefault(each, len(numbers)) for each in scaffold_of]
    return RawGraphs(
        name,
        Topology(graph_ptr, row_ptr, edges[:, 1].copy()),
        atoms[:, :1].astype(np.int64),
        (_ELEMENTS,),
        atoms,
        labels,
        class_names,
        task=task,
        attribute_names=ATOM_COLUMNS,
        edge_attributes=np.concatenate(bonds_of),
        scaffolds=np.array(scaffolds, np.int64),
    )

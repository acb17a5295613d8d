"""The MoleculeNet sets that FedGraphNN uses: files, columns, tasks and sizes; read from SMILES."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fedmpi.datasets import smiles
from fedmpi.datasets.family import Family
from fedmpi.datasets.raw import LabelKind, RawGraphs
from fedmpi.datasets.smiles import EVERY_OTHER, MoleculeFacts

_QM9 = ("mu", "alpha", "homo", "lumo", "gap", "r2", "zpve", "u0", "u298", "h298", "g298", "cv")
_ESOL = ("measured log solubility in mols per litre",)

_MULTI_LABEL = (
    MoleculeFacts("BACE", "bace.csv", "mol", ("Class",), 1, 1513, (1513, 34.12, 36.89)),
    MoleculeFacts("BBBP", "BBBP.csv", "smiles", ("p_np",), 1, 2050, (2039, 24.05, 25.94)),
    MoleculeFacts("ClinTox", "clintox.csv.gz", "smiles", EVERY_OTHER, 2, 1484, (1478, 26.13, 27.86)),
    MoleculeFacts("SIDER", "sider.csv.gz", "smiles", EVERY_OTHER, 27, 1427, (1427, 33.64, 35.36)),
    MoleculeFacts("Tox21", "tox21.csv.gz", "smiles", EVERY_OTHER, 12, 7831, (7831, 18.51, 25.94)),
    MoleculeFacts("HIV", "HIV.csv", "smiles", ("HIV_active",), 1, 41127, (41127, 25.53, 27.48)),
    MoleculeFacts("MUV", "muv.csv.gz", "smiles", EVERY_OTHER, 17, 93087, (93087, 24.23, 26.28)),
    MoleculeFacts("ToxCast", "toxcast_data.csv.gz", "smiles", EVERY_OTHER, 617, 8597, (8575, 18.78, 19.26)),
)
_REGRESSION = (
    MoleculeFacts("ESOL", "delaney-processed.csv", "smiles", _ESOL, 1, 1128, (1128, 13.29, 40.65)),
    MoleculeFacts("FreeSolv", "SAMPL.csv", "smiles", ("expt",), 1, 642, (642, 8.72, 25.6)),
    MoleculeFacts("Lipophilicity", "Lipophilicity.csv", "smiles", ("exp",), 1, 4200, (4200, 27.04, 86.04)),
    MoleculeFacts("QM9", "qm9.csv", "smiles", _QM9, 12, 133885, (133885, 8.8, 27.6)),
)

_DIGESTS = {
    "BACE": "bb3e5347d67324710c6f5759f37fd9651c9a9d979f6c0a38e930fa445529a71d",
    "BBBP": "c45afa49f8482a83af4f69dfef27a8162aec588bbac39046bf04463be77d91ad",
    "ClinTox": "16e645abf8726a900b8568de3bf5e869926face95ea5491793b7bb80b3bd93a2",
    "SIDER": "4c1a693fa059a3dfd44d04534092bf03e85f47b94070c1b2e92def8f65facf5b",
    "Tox21": "92d8df53b844da7cec78685b6e87abaa0c1cc7707b505bb8ef1510819200b28e",
    "HIV": "d89a3264099e72025ab9b87032426c5281eb05f3aba5772d37bc09600707cfde",
    "MUV": "f535e91a6015ece41ce21c20d37b47bf200e0e3a17b87988e13a130d83b02ea6",
    "ToxCast": "3b74cd1e5177bf5b5cc7ecbe8a78b8d89924a068a80e3c42c3813bf600527d25",
    "ESOL": "cc241ae8fd5e66433fbe9b501a3c0115d46e1827a20e8956e50a817ec3b87b80",
    "FreeSolv": "e96b14a67f4d4367ea1db88a141863e0f26c9d4066f011c106c12c45f97fc9f8",
    "Lipophilicity": "f5279f4e64d7e7944336693fdc9ec7bf25bae71cb9149a3a4956e0de56c946c7",
}

_SETS: tuple[tuple[LabelKind, tuple[MoleculeFacts, ...]], ...] = (
    ("multi-task", _MULTI_LABEL),
    ("regression", _REGRESSION),
)
MOLECULES = {
    facts.name: replace(facts, kind=kind, digest=_DIGESTS.get(facts.name, ""))
    for kind, sets in _SETS
    for facts in sets
}


class MoleculeNet(Family):
    """DeepChem's copies; cite Wu et al., "MoleculeNet: a benchmark for molecular machine learning" (2018)."""

    name = "moleculenet"
    title = "MoleculeNet (needs the extra molecules)"
    names = MOLECULES
    scaffolds = True
    upstream = "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets"
    columns = ("name", "task", "file", "rows", "labels")

    def task(self, name: str) -> LabelKind:
        """Return what the labels of a set are for."""
        return MOLECULES[name].kind

    def row(self, name: str) -> tuple[str | int, ...]:
        """Return task, file and sizes of a set."""
        facts = MOLECULES[name]
        return name, facts.kind, facts.file, facts.rows, facts.num_tasks

    def rows(self, name: str) -> int:
        """Return how many rows the file has."""
        return MOLECULES[name].rows

    def file(self, name: str) -> str:
        """Return the name of the table."""
        return MOLECULES[name].file

    def require(self) -> None:
        """Raise BadInput unless RDKit is installed."""
        smiles.require_rdkit()

    def check(self, path: Path, name: str) -> None:
        """Check that a table begins with the columns that are needed."""
        smiles.check_table(path, MOLECULES[name])

    def read(self, path: Path, name: str) -> RawGraphs:
        """Read a table; see `fedmpi.datasets.smiles.read_molecules`."""
        return smiles.read_molecules(path, MOLECULES[name])

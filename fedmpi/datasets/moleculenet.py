"""The MoleculeNet sets that FedGraphNN uses: files, columns, tasks and sizes. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ADDRESS = "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets"
"""DeepChem's copies; cite Wu et al., "MoleculeNet: a benchmark for molecular machine learning" (2018)."""

FOLDER = "moleculenet"
"""Folder of the files in a mirror and of the prepared sets in the cache."""

EVERY_OTHER = ("*",)
"""Stands for all columns that hold no SMILES and no identifier."""


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
    kind : "multi-task" or "regression"
        A single yes-or-no label is one task of a multi-task set.
    published : (int, float, float)
        Graphs, mean nodes and mean edges of FedGraphNN's Table 1, whose edges are bonds for
        classification and non-zeros of A + I for regression; Tox21's 25.94 there is BBBP's.
    digest : str
        `fedmpi.datasets.smiles.table_digest` of the file's content; empty where nobody computed it.
    """

    name: str
    file: str
    smiles: str
    tasks: tuple[str, ...]
    num_tasks: int
    rows: int
    kind: Literal["multi-task", "regression"]
    published: tuple[int, float, float]
    digest: str = ""


_QM9 = ("mu", "alpha", "homo", "lumo", "gap", "r2", "zpve", "u0", "u298", "h298", "g298", "cv")
_ESOL = ("measured log solubility in mols per litre",)

# fmt: off
_FACTS = (
    MoleculeFacts(
        "BACE", "bace.csv", "mol", ("Class",), 1, 1513, "multi-task", (1513, 34.12, 36.89),
        "bb3e5347d67324710c6f5759f37fd9651c9a9d979f6c0a38e930fa445529a71d",
    ),
    MoleculeFacts(
        "BBBP", "BBBP.csv", "smiles", ("p_np",), 1, 2050, "multi-task", (2039, 24.05, 25.94),
        "c45afa49f8482a83af4f69dfef27a8162aec588bbac39046bf04463be77d91ad",
    ),
    MoleculeFacts(
        "ClinTox", "clintox.csv.gz", "smiles", EVERY_OTHER, 2, 1484, "multi-task", (1478, 26.13, 27.86),
        "16e645abf8726a900b8568de3bf5e869926face95ea5491793b7bb80b3bd93a2",
    ),
    MoleculeFacts(
        "SIDER", "sider.csv.gz", "smiles", EVERY_OTHER, 27, 1427, "multi-task", (1427, 33.64, 35.36),
        "4c1a693fa059a3dfd44d04534092bf03e85f47b94070c1b2e92def8f65facf5b",
    ),
    MoleculeFacts(
        "Tox21", "tox21.csv.gz", "smiles", EVERY_OTHER, 12, 7831, "multi-task", (7831, 18.51, 25.94),
        "92d8df53b844da7cec78685b6e87abaa0c1cc7707b505bb8ef1510819200b28e",
    ),
    MoleculeFacts(
        "HIV", "HIV.csv", "smiles", ("HIV_active",), 1, 41127, "multi-task", (41127, 25.53, 27.48),
        "d89a3264099e72025ab9b87032426c5281eb05f3aba5772d37bc09600707cfde",
    ),
    MoleculeFacts(
        "MUV", "muv.csv.gz", "smiles", EVERY_OTHER, 17, 93087, "multi-task", (93087, 24.23, 26.28),
        "f535e91a6015ece41ce21c20d37b47bf200e0e3a17b87988e13a130d83b02ea6",
    ),
    MoleculeFacts(
        "ToxCast", "toxcast_data.csv.gz", "smiles", EVERY_OTHER, 617, 8597, "multi-task",
        (8575, 18.78, 19.26),
        "3b74cd1e5177bf5b5cc7ecbe8a78b8d89924a068a80e3c42c3813bf600527d25",
    ),
    MoleculeFacts(
        "ESOL", "delaney-processed.csv", "smiles", _ESOL, 1, 1128, "regression", (1128, 13.29, 40.65),
        "cc241ae8fd5e66433fbe9b501a3c0115d46e1827a20e8956e50a817ec3b87b80",
    ),
    MoleculeFacts(
        "FreeSolv", "SAMPL.csv", "smiles", ("expt",), 1, 642, "regression", (642, 8.72, 25.6),
        "e96b14a67f4d4367ea1db88a141863e0f26c9d4066f011c106c12c45f97fc9f8",
    ),
    MoleculeFacts(
        "Lipophilicity", "Lipophilicity.csv", "smiles", ("exp",), 1, 4200, "regression", (4200, 27.04, 86.04),
        "f5279f4e64d7e7944336693fdc9ec7bf25bae71cb9149a3a4956e0de56c946c7",
    ),
    MoleculeFacts(
        "QM9", "qm9.csv", "smiles", _QM9, 12, 133885, "regression", (133885, 8.8, 27.6),
    ),
)
# fmt: on

MOLECULES: dict[str, MoleculeFacts] = {facts.name: facts for facts in _FACTS}

IDENTIFIERS = ("mol_id",)
"""Columns that are no labels where all others are."""

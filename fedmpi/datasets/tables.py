"""What is known of the datasets in use: sizes, widths and content digests. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DatasetFacts:
    """Numbers of one dataset after clean-up (duplicate edges and self-loops removed).

    `label_width` and `attribute_width` are 0 where there are none; `degree_max` is the largest
    degree of any node, None where it is not known (COLLAB 491, IMDB-BINARY 135 and
    IMDB-MULTI 88 are also the constants in GCFL's released code).
    """

    name: str
    graphs: int
    classes: int
    label_width: int
    attribute_width: int
    degree_max: int | None
    nodes: int
    directed_edges: int

    @property
    def edges(self) -> int:
        """Number of edges, each counted once."""
        return self.directed_edges // 2


def by_name(*facts: DatasetFacts) -> dict[str, DatasetFacts]:
    """Return facts by the name of their dataset."""
    return {each.name: each for each in facts}


CELLS = {
    "edges": "directed_edges",
    "labels": "label_width",
    "attributes": "attribute_width",
    "features": "attribute_width",
    "ratings": "edges",
}
"""Which number of a dataset stands under a heading that is named otherwise."""

KNOWN = by_name(
    DatasetFacts("MUTAG", 188, 2, 7, 0, 4, 3371, 7442),
    DatasetFacts("BZR", 405, 2, 53, 3, 4, 14479, 31070),
    DatasetFacts("COX2", 467, 2, 35, 3, 4, 19252, 40578),
    DatasetFacts("DHFR", 756, 2, 53, 3, 4, 32075, 67352),
    DatasetFacts("PTC_MR", 344, 2, 18, 0, 4, 4915, 10108),
    DatasetFacts("AIDS", 2000, 2, 38, 4, 6, 31385, 64780),
    DatasetFacts("NCI1", 4110, 2, 37, 0, 4, 122747, 265506),
    DatasetFacts("ENZYMES", 600, 6, 3, 18, 9, 19580, 74564),
    DatasetFacts("DD", 1178, 2, 89, 0, 19, 334925, 1686092),
    DatasetFacts("PROTEINS", 1113, 2, 3, 1, 25, 43471, 162088),
    DatasetFacts("COLLAB", 5000, 3, 0, 0, 491, 372474, 24572158),
    DatasetFacts("IMDB-BINARY", 1000, 2, 0, 0, 135, 19773, 193062),
    DatasetFacts("IMDB-MULTI", 1500, 3, 0, 0, 88, 19502, 197806),
    DatasetFacts("Letter-low", 2250, 15, 0, 2, 4, 10522, 14092),
    DatasetFacts("Letter-med", 2250, 15, 0, 2, 4, 10518, 14426),
    DatasetFacts("Letter-high", 2250, 15, 0, 2, 5, 10507, 20250),
    DatasetFacts("MSRC_21", 563, 20, 24, 0, 23, 43644, 223312),
)

DIGESTS = {
    "MUTAG": "efabee0104864215a18612b939832f2cb263cd83e161cfc39ba92308a4979c20",
    "BZR": "4523355df354d1a8949f0d15172f268751a9de8d55ea865cfe4e4bbda6a10842",
    "COX2": "fcf882590cf29431fcf966c7d7d0a8afdcf4101a0080e6f1b7983ce2a0011206",
    "DHFR": "4f734dc02daccb34b57ebc4b475a64711171eea571b6476f751c7da94d5d9e2d",
    "PTC_MR": "b67f26a6d0ab1185d61c85f0dc79741d52f27b8d818692e15c3fdb631aa3d869",
    "AIDS": "fc2aead65448786e1ba77122311548b97c057bd5c3dc60dd81c1568e533b4456",
    "NCI1": "9aaf90d74416395d5c61455106e3232ed1baa5d6d3104b378e71f4bd10c88ceb",
    "ENZYMES": "05eb2c26845a855d0adf1e28f5face230af6b67bf38052f75ac32aff62129fe6",
    "DD": "fd60bc881efef0ae4c60d5758f423efc14c84328b10cb3a7fc12ebaabe9c22b5",
    "PROTEINS": "e7bcceb6752efc8b03b54324e7552d5395a45f4b7cdb25f2f7c0a72ebf1b4a5d",
    "COLLAB": "2845f1ddc726cdddea3790bc116670b23e1e20a33b49196304abc0ccbff80fa2",
    "IMDB-BINARY": "9c0774409a7c04cf543c050f236c486703fefb6c1bd40bb0808f000bd478b853",
    "IMDB-MULTI": "9f68c69d86c81d6ce4581071d74d0224ba23cc61e48c94473a41ac6d6ee257f9",
    "Letter-low": "fd4084ec879e6d3959cf3e5530f4c61d6ac7e631fc46c932e81475c9b3b94e5b",
    "Letter-med": "6e7c5332a86fe1e8ff201744bd9376d252c959db2db9875f36987ae214faa1b4",
    "Letter-high": "675eed419b1196d43ff0b78dbee542c413504270c042312bde75e3dfb39302e1",
    "MSRC_21": "4a12dc353217b1f0e06dd131e37e30033294f624b425f5c44ed9e2480b805f5e",
}
"""`fedmpi.datasets.raw.digest` of the parsed content."""

_MOLECULES = ("MUTAG", "BZR", "COX2", "DHFR", "PTC_MR", "AIDS", "NCI1")
_BIOCHEM = (*_MOLECULES, "ENZYMES", "DD", "PROTEINS")

_SOCIAL = ("COLLAB", "IMDB-BINARY", "IMDB-MULTI")
_LETTERS = ("Letter-low", "Letter-med", "Letter-high")
_BIO = ("ENZYMES", "DD")

GROUPS: dict[str, tuple[str, ...]] = {
    "gcfl/molecules": _MOLECULES,
    "gcfl/biochem": _BIOCHEM,
    "gcfl/mix": (*_BIOCHEM, *_SOCIAL),
    "gcfl/small": ("MUTAG", "BZR", "COX2", "DHFR", "PTC_MR", "ENZYMES", "DD", "PROTEINS"),
    "fedstar/chem": _MOLECULES,
    "fedstar/biochem": _BIOCHEM,
    "fedstar/biochemsn": (*_BIOCHEM, *_SOCIAL),
    "fedstar/biosncv": (*_BIO, "PROTEINS", *_SOCIAL, "Letter-high", "Letter-low", "Letter-med"),
    "fedcch/chem": _MOLECULES,
    "fedcch/bio-chem": (*_MOLECULES, *_BIO),
    "fedcch/mix": (*_MOLECULES, *_BIO, *_SOCIAL),
    "fedcch/bio-sn-cv": (*_BIO, *_SOCIAL, *_LETTERS),
    "fedcch/bio-cv": (*_BIO, *_LETTERS),
    "fedcch/all": (*_MOLECULES, *_BIO, *_SOCIAL, *_LETTERS),
}
"""Several datasets under one name, in the client order of the papers.

FedStar's groups are GCFL's and one with drawn letters; FedCCH's are FedStar's without PROTEINS, so of
its results only CHEM's compare with the other two.
"""

_DOMAIN_MEMBERS: dict[str, tuple[str, ...]] = {
    "molecules": _MOLECULES,
    "proteins": ("ENZYMES", "DD", "PROTEINS"),
    "social networks": ("COLLAB", "IMDB-BINARY", "IMDB-MULTI"),
    "images": ("Letter-low", "Letter-med", "Letter-high", "MSRC_21"),
}

DOMAINS: dict[str, str] = {name: domain for domain, names in _DOMAIN_MEMBERS.items() for name in names}
"""Domain of each known dataset: GCFL's three for its thirteen; images, as TU Dortmund's list has it.

Proteins (TU Dortmund: bioinformatics) are graphs of amino acids or of secondary structure elements,
images drawn letters and segmented photographs.
"""

SYNTHETIC = "synthetic"
"""Name of the generated domains, which need no files."""

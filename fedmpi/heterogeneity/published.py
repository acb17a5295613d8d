"""Numbers printed in the GCFL paper (Xie, Ma, Xiong and Yang, NeurIPS 2021), to set beside our own."""

from __future__ import annotations

_PROPERTIES = ("kurtosis", "path_length", "largest_component", "clustering")
_TABLE_1 = {
    "PTC_MR": ((2.1535, 2.4424), (3.36, 2.42), (100, 82.68), (0.0095, 0.1201)),
    "ENZYMES": ((3.0106, 2.8243), (4.44, 2.56), (98.24, 97.69), (0.4516, 0.1425)),
    "IMDB-BINARY": ((8.9262, 2.2791), (1.48, 1.54), (100, 99.93), (0.9471, 0.5187)),
    "MSRC_21": ((3.6959, 2.9714), (4.09, 2.81), (100, 99.43), (0.5147, 0.0655)),
}
_P_VALUES = {
    "PTC_MR": ("0.9999", "~0", "~0", "~0"),
    "ENZYMES": ("0.0027", "~0", "0.2054", "~0"),
    "IMDB-BINARY": ("~0", "~0", "0.0023", "~0"),
    "MSRC_21": ("~0", "~0", "~0", "~0"),
}
TABLE_1: dict[str, dict[str, tuple[float, float, str]]] = {
    dataset: {
        name: (*means, p_value)
        for name, means, p_value in zip(_PROPERTIES, table, _P_VALUES[dataset], strict=True)
    }
    for dataset, table in _TABLE_1.items()
}
"""Real and random mean and p-value of each property, by dataset."""

TABLE_2: dict[tuple[str, ...], tuple[tuple[float, float], tuple[float, float]]] = {
    ("IMDB-BINARY",): ((0.4406, 0.0397), (0.1785, 0.1226)),
    ("COX2",): ((0.3246, 0.0145), (0.0427, 0.0314)),
    ("COX2", "PTC_MR"): ((0.3689, 0.0540), (0.1837, 0.1065)),
    ("COX2", "ENZYMES"): ((0.5082, 0.0399), (0.1912, 0.1000)),
    ("COX2", "IMDB-BINARY"): ((0.6079, 0.0331), (0.1642, 0.1006)),
}
"""Mean and spread of structure and of feature heterogeneity, by column."""

TABLE_5: dict[str, tuple[int, float, float, int, str]] = {
    "MUTAG": (188, 17.93, 19.79, 2, "original"),
    "BZR": (405, 35.75, 38.36, 2, "original"),
    "COX2": (467, 41.22, 43.45, 2, "original"),
    "DHFR": (467, 42.43, 44.54, 2, "original"),
    "PTC_MR": (344, 14.29, 14.69, 2, "original"),
    "AIDS": (2000, 15.69, 16.20, 2, "original"),
    "NCI1": (4110, 29.87, 32.30, 2, "original"),
    "ENZYMES": (600, 32.63, 62.14, 6, "original"),
    "DD": (1178, 284.32, 715.66, 2, "original"),
    "PROTEINS": (1113, 39.06, 72.82, 2, "original"),
    "COLLAB": (5000, 74.49, 2457.78, 3, "degree"),
    "IMDB-BINARY": (1000, 19.77, 96.53, 2, "degree"),
    "IMDB-MULTI": (1500, 13.00, 65.94, 3, "degree"),
}
"""Graphs, average nodes and edges, classes and node features, by dataset."""

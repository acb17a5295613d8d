"""How measured costs of secure sums grow with clients and parameters, against the protocols' formulas."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedmpi.benchmarks.samples import Measurement

Floats = npt.NDArray[np.float64]

_FACTOR = re.compile(r"(/?)([dNk])(?:\^(\d))?")
"""Of a term such as dN^2 or d/N."""


@dataclass(frozen=True)
class _Quantity:
    """A cost: the sum of some figures, and the terms that each protocol's analysis has for it.

    Terms are of parameters d, clients N and neighbours k of a client, which SecAgg+ has O(log N) of. One
    without d beside one with it is the fixed cost of a key, a share or a mask.
    """

    name: str
    figures: tuple[str, ...]
    terms: dict[str, tuple[str, ...]]


_QUANTITIES = (
    _Quantity(
        "offline bytes of a client",
        ("client_offline_bytes",),
        {"secagg": ("N",), "secagg+": ("k",), "lightsecagg": ("d",)},
    ),
    _Quantity(
        "keys, shares and masks of a client",
        ("offline_seconds", "client_upload_seconds"),
        {"secagg": ("dN", "N^2", "N"), "secagg+": ("dk", "k^2", "k"), "lightsecagg": ("dN", "N")},
    ),
    _Quantity(
        "online bytes of a client",
        ("client_upload_bytes", "client_answer_bytes"),
        {"secagg": ("d", "N"), "secagg+": ("d", "k"), "lightsecagg": ("d", "d/N")},
    ),
    _Quantity(
        "recovery at the server",
        ("server_unmask_seconds",),
        {"secagg": ("dN^2", "N^2"), "secagg+": ("dNk", "Nk"), "lightsecagg": ("dN", "N^2")},
    ),
)


@dataclass(frozen=True)
class Fit:
    """One cost of one protocol at the largest share of dropouts.

    Attributes
    ----------
    protocol, quantity : str
    formula : str
        The sum of the analysis' terms, each of which has a coefficient of 0 or more.
    coefficients : tuple of float
    formula_error : float
        Root mean square of the relative deviations from the formula.
    exponents : dict
        Of N and d in one power law, each with its standard error; of what varies.
    power_error : float
        Root mean square of the relative deviations from the power law.
    points : int
    """

    protocol: str
    quantity: str
    formula: str
    coefficients: tuple[float, ...]
    formula_error: float
    exponents: dict[str, tuple[float, float]]
    power_error: float
    points: int

    @property
    def statement(self) -> str:
        """The fit in words."""
        powers = " ".join(
            f"{name}^{value:.2f} (±{error:.2f})" for name, (value, error) in self.exponents.items()
        )
        return (
            f"{self.protocol}, {self.quantity}: {self.formula} within {100 * self.formula_error:.1f} %; "
            f"power law {powers} within {100 * self.power_error:.1f} %"
        )


def fits(measurements: Sequence[Measurement]) -> list[Fit]:
    """Return the fits of all costs for which there are points enough: one more than unknowns."""
    if not measurements:
        return []
    dropout = max((str(each.labels["dropout"]) for each in measurements), key=lambda text: float(text[:-2]))
    chosen = [each for each in measurements if each.labels["dropout"] == dropout]
    found = []
    for protocol in dict.fromkeys(str(each.labels["protocol"]) for each in chosen):
        points = [each for each in chosen if each.labels["protocol"] == protocol]
        fitted = [_fit(protocol, quantity, points) for quantity in _QUANTITIES]
        found += [each for each in fitted if each is not None]
    return found


def _fit(protocol: str, quantity: _Quantity, points: Sequence[Measurement]) -> Fit | None:
    from scipy.optimize import nnls

    names = {"d": "parameters", "N": "clients", "k": "neighbours"}
    axes = {key: np.array([float(each.labels[name]) for each in points]) for key, name in names.items()}
    values = np.array([sum(each.figures[name].median for name in quantity.figures) for each in points])
    terms = quantity.terms[protocol]
    varying = {name: axes[name] for name in ("N", "d") if len(set(axes[name])) > 1}
    if not varying or len(points) <= max(len(terms), len(varying) + 1) or not np.all(values > 0):
        return None
    relative = np.stack([_term(term, axes) for term in terms], axis=1) / values[:, None]
    coefficients, _ = nnls(relative, np.ones(len(points)))
    exponents, power = _power_law(varying, values)
    formula = " + ".join(terms)
    off = _mean_square(relative @ coefficients - 1)
    return Fit(
        protocol, quantity.name, formula, tuple(coefficients.tolist()), off, exponents, power, len(points)
    )


def _term(term: str, axes: Mapping[str, Floats]) -> Floats:
    """Return the value of a term at each point."""
    factors = [
        axes[name] ** float(f"{'-' * bool(over)}{power or 1}") for over, name, power in _FACTOR.findall(term)
    ]
    return np.asarray(np.prod(factors, axis=0))


def _power_law(varying: dict[str, Floats], values: Floats) -> tuple[dict[str, tuple[float, float]], float]:
    """Return the exponents of a power law with their standard errors, and its relative deviation."""
    rows = np.stack([np.ones(len(values)), *(np.log(axis) for axis in varying.values())], axis=1)
    solution, *_ = np.linalg.lstsq(rows, np.log(values))
    left = rows @ solution - np.log(values)
    variance = float(left @ left) / (len(values) - rows.shape[1])
    errors = np.sqrt(variance * np.diag(np.linalg.pinv(rows.T @ rows)))
    pairs = zip(solution[1:].tolist(), errors[1:].tolist(), strict=True)
    return dict(zip(varying, pairs, strict=True)), _mean_square(np.expm1(left))


def _mean_square(deviations: Floats) -> float:
    return float(np.sqrt(np.mean(deviations**2)))

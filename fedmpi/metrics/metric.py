"""The figures by which models are judged, in one table; each is defined in docs/metrics.md."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Better = Literal["higher", "lower"]
Scope = Literal["client", "pooled", "all"]


@dataclass(frozen=True)
class Metric:
    """One figure by which models are judged.

    Attributes
    ----------
    name : str
        In names of fields and columns.
    title : str
        In sentences and headings.
    better : "higher" or "lower"
    scope : str
        "client": each client has a value, and a run's is their mean over clients; "pooled": one value over
        the held-out examples of all clients; "all": one value over all examples, held out or not.
    unit : str
        "1", or "label": the labels' own, so that no mean over datasets has a meaning.
    low, high : float
        Least and largest value; may be infinite.
    percent : bool
        Whether people read it in percent and its differences in points.
    constant : float
        What predicting the same for every example scores; NaN where that hangs on the data.
    meaning : str
        For the attributes of the record.
    """

    name: str
    title: str
    better: Better = "higher"
    scope: Scope = "client"
    unit: str = "1"
    low: float = 0.0
    high: float = 1.0
    percent: bool = False
    constant: float = field(default=math.nan, compare=False)  # NaN is not equal to itself
    meaning: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name):
            raise ValueError(f"metric {self.name!r}: a name is of a-z, 0-9 and _, as in the name of a field")
        for key, kind in (("better", Better), ("scope", Scope)):
            if getattr(self, key) not in get_args(kind):
                choices = " or ".join(f'"{each}"' for each in get_args(kind))
                raise ValueError(f'metric "{self.name}": {key} = {getattr(self, key)!r}: it is {choices}')
        if not self.low < self.high:
            raise ValueError(f'metric "{self.name}": low = {self.low} is not below high = {self.high}')

    @property
    def higher(self) -> bool:
        """Whether higher is better."""
        return self.better == "higher"

    @property
    def sign(self) -> int:
        """1 where higher is better, else -1: ``sign * value`` is the higher, the better."""
        return 1 if self.higher else -1

    @property
    def bounded(self) -> bool:
        """Whether it lies between 0 and 1, so that a point is 0.01."""
        return self.low == 0.0 and self.high == 1.0

    @property
    def held_out(self) -> bool:
        """Whether it is taken on validation and on test examples, each apart."""
        return self.scope != "all"

    def field(self, part: str = "test") -> str:
        """Return the record's field of the part "val" or "test"; the same for both where there are none."""
        return f"{part}_{self.name}" if self.held_out else self.name

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the data of which it is taken, for `field` and `label`."""
        return ("val", "test") if self.held_out else ("test",)

    def label(self, part: str = "test", unit: bool = False) -> str:
        """Return what its value of a part is called: "val RMSE", "test accuracy" or with its unit "... %"."""
        title = self.heading if unit else self.title
        return f"{part} {title}" if self.held_out else title

    def plain(self) -> dict[str, Any]:
        """Return it as JSON values: None for numbers that are not finite."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in vars(self).items()
        }

    @classmethod
    def of_plain(cls, values: Mapping[str, Any]) -> Metric:
        """Return the metric that `plain` made values of."""
        unbounded: dict[str, Any] = {"low": -math.inf, "high": math.inf, "constant": math.nan}
        return cls(**{name: unbounded[name] if each is None else each for name, each in values.items()})

    def shown(self, value: float, signed: bool = False) -> str:
        """Return a value or a difference for people, percent without its sign."""
        sign = "+" if signed else ""
        return f"{self.scale * value:{sign}.{self.digits}f}"

    @property
    def digits(self) -> int:
        """How many digits people get after the point."""
        return 2 if self.percent else 4

    @property
    def scale(self) -> float:
        """What a value is multiplied by for people: 100 for percent."""
        return 100.0 if self.percent else 1.0

    @property
    def points(self) -> str:
        """What follows a difference of values."""
        return " points" if self.percent else ""

    @property
    def heading(self) -> str:
        """Title with unit."""
        return f"{self.title} %" if self.percent and not self.title.endswith("%") else self.title


ACCURACY = Metric("accuracy", "accuracy", percent=True, meaning="accuracy")
MICRO_F1 = Metric(
    "micro_f1", "micro F1", scope="pooled", percent=True,
    meaning="F1 of summed true and false positives of all classes, here the share of right predictions",
)  # fmt: skip
MACRO_F1 = Metric(
    "macro_f1", "macro F1", scope="pooled", percent=True,
    meaning="mean of the F1 of the classes that occur",
)  # fmt: skip
ROC_AUC = Metric("roc_auc", "ROC-AUC", scope="pooled", constant=0.5, meaning="area under the ROC curve")
PRC_AUC = Metric("prc_auc", "PRC-AUC", scope="pooled", meaning="area under the precision-recall curve")
RMSE = Metric(
    "rmse", "RMSE", "lower", "pooled", "label", high=math.inf,
    meaning="root mean squared error, in the labels' own units",
)  # fmt: skip
MAE = Metric(
    "mae", "MAE", "lower", "pooled", "label", high=math.inf,
    meaning="mean absolute error, in the labels' own units",
)  # fmt: skip
MSE = Metric(
    "mse", "MSE", "lower", "pooled", "label", high=math.inf,
    meaning="mean squared error, in squares of the labels' own units",
)  # fmt: skip
R2 = Metric("r2", "R2", scope="pooled", low=-math.inf, meaning="coefficient of determination")
NDCG_10 = Metric(
    "ndcg_10", "NDCG@10", scope="pooled",
    meaning="mean over users of the normalised discounted cumulative gain of their held-out ratings' order",
)  # fmt: skip
HIT_1 = Metric(
    "hit_1", "hit ratio@1", scope="pooled", percent=True,
    meaning="share of users whose first held-out item by prediction is one that they rated highest",
)  # fmt: skip
MRR = Metric(
    "mrr", "MRR", scope="pooled",
    meaning="mean of one over the filtered rank of tails and heads among the client's entities",
)  # fmt: skip
HITS_1, HITS_3, HITS_10 = (
    Metric(
        f"hits_{most}", f"Hits@{most}", scope="pooled", percent=True,
        meaning=f"share of filtered ranks of at most {most}",
    )
    for most in (1, 3, 10)
)  # fmt: skip
CLUSTERING_ACCURACY = Metric(
    "clustering_accuracy", "clustering accuracy", scope="all", percent=True,
    meaning="share of all graphs in the cluster matched to their class: "
    "one k-means, as many clusters as classes",
)  # fmt: skip
CLUSTERING_F1 = Metric(
    "clustering_f1", "clustering macro F1", scope="all", percent=True,
    meaning="mean over classes of the F1 of the same matched clusters",
)  # fmt: skip
PROBE_ACCURACY = Metric(
    "probe_accuracy", "probe accuracy", scope="all", percent=True,
    meaning="accuracy of logistic regression on the vectors, five-fold cross-validated; not in the papers",
)  # fmt: skip

METRICS = {each.name: each for each in list(globals().values()) if isinstance(each, Metric)}
"""All metrics of fedmpi by name; a plug-in's task brings its own, which its records hold."""

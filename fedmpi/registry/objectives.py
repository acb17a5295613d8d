"""What fits an objective: its model, partition, scores (imports without torch)."""

from __future__ import annotations

from fedmpi.case.schema import Case, EvaluationOptions, Misfits
from fedmpi.models.options import MvgrlEncoderOptions, NetworkOptions


def misfits(case: Case) -> Misfits:
    """Yield the settings that the objective cannot use, and what to do."""
    return _of_supervised(case) if case.objective.supervised else _of_unsupervised(case)


def _of_supervised(case: Case) -> Misfits:
    if not isinstance(case.model, NetworkOptions):
        yield "model", f'"{case.model.name}" has no head for a supervised objective: use model = "gin"'
    if not case.partition.holds_out:
        text = f'"{case.partition.name}" holds out no graphs to score a supervised objective on: use "iid"'
        yield "partition", text
    for key in ("embeddings", "probe", "vectors"):
        if getattr(case.evaluation, key) != EvaluationOptions.model_fields[key].default:
            yield f"evaluation.{key}", 'is for unsupervised objectives, such as objective = "fclg"'


def _of_unsupervised(case: Case) -> Misfits:
    objective, scores = case.objective, case.evaluation
    if case.model.name != objective.model:
        yield "model", f'objective "{objective.name}" trains model = "{objective.model}"'
    if isinstance(case.model, MvgrlEncoderOptions) and not case.model.register_layers and case.share != "all":
        yield "share", 'model.register_layers = false leaves no convolution to share: use share = "all"'
    if scores.clients != "all":
        yield "evaluation.clients", 'the graphs of all clients are clustered together: use "all"'
    for round in scores.embeddings:
        if not 1 <= round <= case.rounds:
            yield "evaluation.embeddings", f"there is no round {round}: rounds are 1 to {case.rounds}"
    for round in scores.embeddings:
        if round % scores.every and round != case.rounds:
            text = f"round {round} is not evaluated: evaluation.every = {scores.every}"
            yield "evaluation.embeddings", text
    if case.batch_size < objective.smallest_batch:
        yield "batch_size", f'objective "{objective.name}" needs {objective.smallest_batch} graphs at least'

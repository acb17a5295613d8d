"""What fits an objective: its model, partition, scores (imports without torch)."""

from __future__ import annotations

from fedmpi.case.schema import Case, EvaluationOptions
from fedmpi.models.options import MvgrlEncoderOptions, NetworkOptions


def misfit(case: Case) -> tuple[str, str] | None:
    """Return the first setting that the objective cannot use, and what to do; None where all fit."""
    return _supervised_misfit(case) if case.objective.supervised else _unsupervised_misfit(case)


def _supervised_misfit(case: Case) -> tuple[str, str] | None:
    model, scores = case.model.name, case.evaluation
    if not isinstance(case.model, NetworkOptions):
        return "model", f'"{model}" has no head for a supervised objective: use model = "gin"'
    if not case.partition.holds_out:
        return (
            "partition",
            f'"{case.partition.name}" holds out no graphs to score a supervised objective on: use "iid"',
        )
    for key in ("embeddings", "probe", "vectors"):
        if getattr(scores, key) != EvaluationOptions.model_fields[key].default:
            return f"evaluation.{key}", 'is for unsupervised objectives, such as objective = "fclg"'
    return None


def _unsupervised_misfit(case: Case) -> tuple[str, str] | None:
    objective, scores = case.objective, case.evaluation
    if case.model.name != objective.model:
        return "model", f'objective "{objective.name}" trains model = "{objective.model}"'
    if isinstance(case.model, MvgrlEncoderOptions) and not case.model.register_layers and case.share != "all":
        return "share", 'model.register_layers = false leaves no convolution to share: use share = "all"'
    if scores.clients != "all":
        return "evaluation.clients", 'the graphs of all clients are clustered together: use "all"'
    if late := [round for round in scores.embeddings if not 1 <= round <= case.rounds]:
        return "evaluation.embeddings", f"there is no round {late[0]}: rounds are 1 to {case.rounds}"
    for round in scores.embeddings:
        if round % scores.every and round != case.rounds:
            return (
                "evaluation.embeddings",
                f"round {round} is not evaluated: evaluation.every = {scores.every}",
            )
    if case.batch_size < objective.smallest_batch:
        return "batch_size", f'objective "{objective.name}" needs {objective.smallest_batch} graphs at least'
    return None

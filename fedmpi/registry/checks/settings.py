"""What settings of a case need of each other, whatever the algorithm (imports without torch)."""

from __future__ import annotations

from importlib.util import find_spec

from fedmpi.case.attacks import LabelFlip, NoAttack, UpdateAttack
from fedmpi.case.privacy import Clipped, Private
from fedmpi.case.reductions import ClippedOptions, SecureOptions
from fedmpi.case.schema import Case, EvaluationOptions, Misfits
from fedmpi.metrics.metric import ACCURACY
from fedmpi.models.options import MvgrlEncoderOptions, NetworkOptions
from fedmpi.partition.options import PopulationOptions
from fedmpi.registry.tasks import task_named
from fedmpi.tasks.known import classifies


def objective(case: Case) -> Misfits:
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
    if scores.patience:
        yield "evaluation.patience", "nothing is held out of an unsupervised run to be judged by: use 0"
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


def record(case: Case) -> Misfits:
    """Yield why a run cannot do without values of single clients on rank 0, and what to do."""
    if case.record != "protocol":
        return
    if not case.reduction.secret:
        yield "record", f'"protocol" is for secure sums, "{case.reduction.name}" hides nothing: use "full"'
    if isinstance(case.privacy, Private):
        name = case.privacy.name
        yield "record", f'"{name}" privacy does not count sums of counts, without noise: use "full"'
    if case.reduction.dropouts.steps:
        yield "record", 'counts are summed over all participants, none may drop out: use "full"'
    task = task_named(case.task, case.dataset.name)
    counts_hits = task is not None and ACCURACY in task.metrics
    if not case.objective.supervised or not (counts_hits or classifies(case.task, case.dataset.name)):
        yield "record", 'hits of classes can be summed, the scores of this task cannot: use "full"'


def keep(case: Case) -> Misfits:
    """Yield why clients have no best round of their own, and what to do."""
    if case.keep != "best":
        return
    task = task_named(case.task, case.dataset.name)
    scored = classifies(case.task, case.dataset.name) if task is None else task.metrics[0] == ACCURACY
    if not case.objective.supervised or not scored:
        yield "keep", '"best" is by each client\'s accuracy, which this task does not have: use "last"'
    if isinstance(case.partition, PopulationOptions):
        yield "keep", '"best" needs clients that stay, partition "population" samples others: use "last"'


def attack(case: Case) -> Misfits:
    """Yield the settings of the attack that cannot be, and what to do."""
    found = case.attack
    if isinstance(found, LabelFlip) and not _flippable(case):
        yield "attack", '"label-flip" needs a supervised task of one class per graph or node'
    if isinstance(found, UpdateAttack) and found.from_round > case.rounds:
        yield "attack.from_round", f"there is no round {found.from_round}: rounds are 1 to {case.rounds}"


def _flippable(case: Case) -> bool:
    task, supervised = task_named(case.task, case.dataset.name), case.objective.supervised
    if task is None:
        return supervised and classifies(case.task, case.dataset.name)
    return supervised and task.labels == "classification" and task.of != "edge"


def privacy(case: Case) -> Misfits:
    """Yield the settings that privacy cannot have, and what to do."""
    kind, sums = case.privacy, f'"{case.reduction.name}"'
    if isinstance(kind, Clipped) and case.reduction.secret and isinstance(case.attack, UpdateAttack):
        text = f"under {sums} clients shorten their own updates, and an attacker would not"
        yield "privacy", f'{text}: use reduction = "exact"'
    if not isinstance(kind, Private):
        return
    if case.weights != "equal":
        yield "weights", f'"{kind.name}" privacy bounds what each client adds: use weights = "equal"'
    if case.reduction.dropouts.steps:
        text = f'"{kind.name}" privacy counts on every participant: remove the setting'
        yield "reduction.dropouts", text
    if kind.distributed and not isinstance(case.reduction, ClippedOptions):
        text = f'"distributed" noise needs a sum of integers at a public exponent, not {sums}'
        yield "reduction", f'{text}: use "fixed32", or a secure one'
    if find_spec("dp_accounting") is None:
        yield "privacy", f"\"{kind.name}\" needs the extra privacy: pip install 'fedmpi[privacy]'"


def tracker(case: Case) -> Misfits:
    """Yield that a tracker is not installed."""
    if case.track != "none" and find_spec(case.track) is None:
        yield "track", f"{case.track} is missing: pip install 'fedmpi[track]'"


def population(case: Case) -> Misfits:
    """Yield the settings that a population cannot have, and what to do."""
    kind = 'partition "population"'
    if not isinstance(case.partition, PopulationOptions):
        return
    if case.optimizer.state != "reset":
        yield "optimizer.state", f'{kind}: a client that is gone keeps no moments: use "reset"'
    if case.participation < 1:
        yield "participation", f"{kind}: partition.clients says how many are sampled: it must be 1"
    if not case.objective.supervised:
        yield "objective", f'{kind} is scored on held-out graphs: use "supervised"'
    if case.kernels == "grouped":
        yield "kernels", f'{kind}: "grouped" keeps the clients\' graphs together: use "compiled" or "csr"'
    if case.model.own_head:
        yield "model.head", f'{kind} needs one head for all: use "dataset"'
    if not isinstance(case.attack, NoAttack):
        yield "attack", f"{kind} has no clients that attack again: remove it"
    if isinstance(case.reduction, SecureOptions) and case.reduction.keys != "sum":
        yield "reduction.keys", f'{kind}: clients that are gone keep no keys: use "sum"'

"""The model of a client from the last checkpoint of its run (starts no MPI)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from fedmpi import __version__
from fedmpi.algorithms.fedproto import FedProto
from fedmpi.case.schema import Case
from fedmpi.client.client import Client
from fedmpi.client.factory import ClientFactory
from fedmpi.client.federation import assemble, deal, load
from fedmpi.config.tables import closest
from fedmpi.datasets.features import resolve
from fedmpi.datasets.loading import digest_of
from fedmpi.datasets.raw import RawGraphs
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.exchange.links import state_of
from fedmpi.programs.hooks import Hooks
from fedmpi.programs.position import Position
from fedmpi.registry.check import Checked, check_stored
from fedmpi.runs.fitting import refuse_unfit_states
from fedmpi.store import checkpoint
from fedmpi.store.checkpoint import Manifest, Unfit
from fedmpi.store.reader import Run
from fedmpi.tasks.base import Task
from fedmpi.tasks.link_prediction import LinkPrediction
from fedmpi.tasks.regression import Regression
from fedmpi.trained.about import About, Outputs, Prototypes
from fedmpi.trained.model import TrainedModel, digest_text

_OUTPUTS: Mapping[str, Outputs] = {
    "classification": "classes",
    "multi-task": "labels",
    "regression": "numbers",
}
"""Of fedmpi's own tasks, by kind of labels."""

_MOST_NAMES = 12
"""Clients that a message names."""


Which = Literal["last", "best"]
"""Round of the last checkpoint, or the client's best by validation."""


def from_run(run: Run, client: str | None, source: DataSource, round: Which = "last") -> TrainedModel:
    """Return a client's model as the run evaluated it, after the round of its last checkpoint or in its best.

    Parameters
    ----------
    run : Run
    client : str or None
        None: the model that all clients share, where they share one.
    source : DataSource
        Of the run's datasets, which are prepared where they are not: they say how large the model is.
    round : str
        "best" needs a client, and a run with ``keep = "best"``.

    Raises
    ------
    BadInput
        There is no checkpoint, no such client or no shared model; or data or plug-ins have changed since.
    """
    checked = check_stored(run.config, run.folder)
    _refuse_other_plugins(run, checked.case)
    if round not in get_args(Which):
        raise BadInput(f'round must be "last" or "best", not {round!r}')
    if round == "best" and checked.case.keep != "best":
        raise BadInput(f'{run.folder}: it kept the last models alone; run it with keep = "best"')
    if round == "best" and client is None:
        raise BadInput("each client has a best round of its own: name a client")
    try:
        manifest = _newest(run)
        source.prepare(checked.case.dataset.name)
        return _Checkpoint(run, checked, source, manifest).model(client, round)
    except Unfit as error:
        raise BadInput(f"{run.folder / checkpoint.FOLDER}: {error}") from None


def _refuse_other_plugins(run: Run, case: Case) -> None:
    for name, digest in case.plugin.items():
        if run.config.get("plugin", {}).get(name) != digest:
            raise BadInput(f"{run.folder} was made with another version of {name}")


def _newest(run: Run) -> Manifest:
    """Return the manifest of the last checkpoint."""
    for name in checkpoint.NAMES:
        found = checkpoint.read_manifest(run.folder / checkpoint.FOLDER, name, len(run.clients))
        if found is None:
            continue
        if found.meta.config_digest != run.config_digest or found.meta.rounds > run.rounds_completed:
            raise Unfit("it is another run's")
        return found
    raise BadInput(
        f'{run.folder} has no checkpoint, which holds the models: it was run with checkpoints = "removed", '
        "or the folder was copied without them"
    )


class _Checkpoint:
    """A checkpoint, and the federation whose clients' states it holds."""

    def __init__(self, run: Run, checked: Checked, source: DataSource, manifest: Manifest) -> None:
        self._run, self._case, self._manifest = run, checked.case, manifest
        self._algorithm = checked.algorithm
        raws = load(self._case, source)
        _refuse_other_data(run, self._case, raws, source)
        partition = deal(self._case, checked.algorithm, raws)
        self._federation = assemble(self._case, raws, partition, source.cache)
        self._hooks = Hooks(checked.algorithm, self._federation.num_clients, Position())
        place = self._case, self._hooks, self._federation
        self._factory = ClientFactory(*place, torch.device("cpu"), state_of(self._case))

    def model(self, name: str | None, round: Which) -> TrainedModel:
        """Return the model of a client, or that of all."""
        names = self._run.clients
        if name is not None and name not in names:
            raise BadInput(
                f'{self._run.folder}: there is no client "{name}"{closest(str(name), names)}; '
                f"its clients: {_listed(names)}"
            )
        whole = name is None and len(names) > 1
        if whole and not self._is_shared():
            raise BadInput(
                f"{self._run.folder}: its clients share no whole model; name one: {_listed(names)}"
            )
        number = 0 if name is None else names.index(name)
        client = self._client(number)
        parameters, after = client.row if whole else client.evaluated(), self._manifest.meta.rounds
        if round == "best":
            if client.best is None or client.best.round < 0:
                raise BadInput(f"{self._run.folder}: {name} has no validation examples, so no best round")
            parameters, after = client.best.parameters, client.best.round + 1
        vector = client.model.parameters.copy_(parameters)
        state = client.model.module.state_dict()
        reading = self._reading(client, round)
        about = self._about("" if whole else names[number], number, after, vector, *reading)
        return TrainedModel(about, state)

    def _reading(self, client: Client, round: Which) -> tuple[Outputs, Prototypes]:
        """Return what outputs are, and the prototypes that decide in place of some."""
        algorithm, task = self._algorithm, self._federation.task
        usual: Outputs = "embeddings" if not task.supervised else _outputs_of(task)
        if not self._hooks.predict:
            return usual, ()
        if not isinstance(algorithm, FedProto) or type(algorithm).predict is not FedProto.predict:
            return "other", ()
        known = client.known["prototypes"]
        if algorithm.options.predict == "classifier" or known is None:
            return usual, ()
        if round == "best":  # the prototypes of that round are not kept
            return "other", ()
        missing = known.isnan().any(dim=1).tolist()
        rows = zip(missing, known.tolist(), strict=True)
        return "prototypes", tuple(None if gone else tuple(row) for gone, row in rows)

    def _is_shared(self) -> bool:
        """Return whether every tensor travels, and all clients got the same."""
        shapes = set(self._federation.shapes)
        if len(shapes) > 1 or not self._hooks.communicates:
            return False
        (model,), (shared,) = self._factory.models.values(), self._factory.shared.values()
        server = checkpoint.read(self._run.folder / checkpoint.FOLDER, self._manifest.server)
        everything = sum(slot.stop - slot.start for slot in model.by_name.values())
        return shared.size == everything and len(np.unique(server["group"])) == 1

    def _client(self, number: int) -> Client:
        """Return a client as it was, whose parameters are those that the record has a digest of."""
        folder, client = self._run.folder / checkpoint.FOLDER, self._factory.make(number)
        kept = self._factory.keeps_optimizer
        states = checkpoint.read_states(folder, self._manifest, [number])
        refuse_unfit_states(states, {number: client.layout(kept)})
        client.restore(states[number], kept)
        recorded = self._run.results["parameter_digest"][self._manifest.meta.rounds - 1]
        known = self._case.record == "full"  # "protocol" records nothing of single clients
        if known and int(digest_text(client.all_parameters().numpy()), 16) != int(recorded[number]):
            raise Unfit(f"the state of {self._run.clients[number]} is not the one that the record is of")
        return client

    def _about(
        self,
        client: str,
        number: int,
        after: int,
        parameters: Tensor,
        outputs: Outputs,
        prototypes: Prototypes,
    ) -> About:
        case, federation = self._case, self._federation
        split, shape = federation.partition.clients[number], federation.shapes[number]
        raw, task = federation.raws[split.dataset], federation.task
        features = resolve(raw, case.dataset.features)
        names = raw.class_names
        if case.model.own_head:
            names = tuple(names[label] for label in np.unique(np.asarray(raw.labels)[split.train]))
        return About(
            suite=case.suite,
            run=case.name,
            algorithm=case.algorithm.name,
            client=client,
            round=after,
            dataset=raw.name if client else case.dataset.name,
            task=task.name,
            features=features,
            scaling=case.dataset.scaling,
            feature_names=raw.attribute_names if features == "attributes" else (),
            num_features=shape.width,
            edge_features=shape.edges,
            examples=raw.examples,
            names=names,
            outputs=outputs,
            prototypes=prototypes,
            center=tuple(task.center.tolist()) if isinstance(task, Regression) else (),
            scale=tuple(task.scale.tolist()) if isinstance(task, Regression) else (),
            model=case.model.model_dump(mode="json"),
            objective=case.objective.model_dump(mode="json"),
            plugin=case.plugin,
            parameter_digest=digest_text(parameters.numpy()),
            fedmpi_version=__version__,
        )


def _outputs_of(task: Task) -> Outputs:
    """Return what a task's outputs are; "other" where it has code of its own for them."""
    if type(task) is LinkPrediction:
        return "relations"
    own = type(task).outputs is not Task.outputs or not type(task).__module__.startswith("fedmpi.")
    return "other" if own else _OUTPUTS[task.labels]


def _refuse_other_data(run: Run, case: Case, raws: Sequence[RawGraphs], source: DataSource) -> None:
    """Raise BadInput where a dataset is not the one that the run had."""
    stored: Any = run.partition.get("dataset_digests", ())
    digests = dict(str(line).rsplit(" ", 1) for line in stored)
    for raw in raws:
        if raw.name in digests and digests[raw.name] != digest_of(raw, case.dataset, source):
            raise BadInput(f"{run.folder}: dataset {raw.name} is not the one that the run was trained on")


def _listed(names: Sequence[str]) -> str:
    more = f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more

"""Every byte that a rank sends in a round; for session.py."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np

from fedmpi.benchmarks import federation
from fedmpi.client.client import Client
from fedmpi.registry.check import Checked
from fedmpi.runs.signals import StopRequest


class Recorder:
    """A communicator that keeps what this rank sends."""

    def __init__(self, comm):
        self._comm, self.sent = comm, []

    def __getattr__(self, name):
        call = getattr(self._comm, name)
        sending = ("Ibcast", "Bcast", "Scatterv") if self._comm.rank == 0 else ()
        if name not in ("Igatherv", "Gatherv", "Ireduce", "Reduce", *sending):
            return call

        def recorded(buffer, *arguments, **options):
            array = buffer[0] if isinstance(buffer, list) else buffer
            self.sent.append(np.asarray(array).tobytes())
            return call(buffer, *arguments, **options)

        return recorded


def messages_of_a_round(world, job, disturbed):
    """Return what this rank sends up to the evaluation if, after training, tensors are overwritten."""
    ready = federation.prepare(Checked(job.case, job.algorithm), job.source, world)
    rounds, recorder = ready.rounds, Recorder(world.comm)
    original = Client.train_locally

    def train(self, case, algorithm, round):
        after_training = algorithm.after_training

        def disturb(trainee):
            after_training(trainee)
            for slot in self.model.slots:
                if slot.name.startswith(disturbed):
                    self.row[slot.start : slot.stop] += 1 + self.id

        with patch.object(algorithm, "after_training", disturb):
            return replace(original(self, case, algorithm, round), wall_s=0.0, cpu_s=0.0)

    def evaluate(*arguments):
        world.collectives._comm = recorder._comm
        return evaluate_as_ever(*arguments)

    evaluate_as_ever, rounds._evaluator._score = rounds._evaluator._score, evaluate
    world.collectives._comm = recorder
    with patch.object(Client, "train_locally", train):
        rounds.run(0, stop=StopRequest(), checkpoint=False)
    return recorder.sent, len(rounds.clients)

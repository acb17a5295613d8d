"""What an algorithm adds to a step, keeps and sends is the same for clients that train together."""

import pytest
import torch


@pytest.mark.parametrize("settings", [("algorithm=feddyn", "algorithm.alpha=0.1"), ("algorithm=scaffold",)])
def test_clients_that_train_together_are_as_alone(prepared, settings):
    """After two rounds with what the server sends between them."""
    found = []
    for kernels in ("csr", "grouped"):
        rounds = prepared(*settings, "optimizer.lr=0.01", "local_epochs=3", f"kernels={kernels}")
        for round in range(2):
            for group in rounds.states.groups:
                group.train(rounds.case, rounds.algorithm, round, set(rounds.clients))()
            if not round:
                model = torch.linspace(-0.1, 0.1, rounds.states.size)
                for group in rounds.states.groups:
                    group.receive(dict.fromkeys(rounds.clients, model))
        clients = rounds.clients.values()
        found.append(
            [
                torch.stack([torch.cat([*vectors]) for vectors in of])
                for of in (
                    [(one.row,) for one in clients],
                    [(one.row[:0], *one.memory.held.values()) for one in clients],
                    [(one.row[:0], *one.sent.values()) for one in clients],
                )
            ]
        )
    for alone, together in zip(*found, strict=True):
        torch.testing.assert_close(together, alone, rtol=2e-3, atol=2e-5)
    assert all(kept.any() for kept in found[0][1:] if kept.numel())

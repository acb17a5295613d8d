import pytest

from fedmpi.registry.key_hints import hint as hint_of


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("lr", "; did you mean optimizer.lr or algorithm.lr?"),
        ("learning_rate", "; did you mean optimizer.lr or algorithm.lr?"),
        ("algorithm.mu", "; fedprox, moon have it"),
        ("optimizer.learning_rate", "; did you mean optimizer.lr?"),
        ("seeds", "; did you mean seed?"),
        ("epochs", "; did you mean local_epochs?"),
        ("algorithm.epochs", "; fedsage-plus has it"),
        ("num_rounds", "; did you mean rounds?"),
        ("partition.alpha", "; dirichlet-label, dirichlet-quantity, fedgraphnn, population have it"),
        ("nonsense", ""),
        ("algorithm.nonsense", ""),
    ],
)
def test_a_key_is_known_elsewhere(key, hint):
    assert hint_of(key) == hint

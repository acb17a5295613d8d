"""Where a key that is not known here would be known: the most common mistake in a suite."""

from __future__ import annotations

from collections import Counter

from fedmpi.registry.reference import axes

_OTHER_WORDS = {
    "learning_rate": "lr",
    "hidden_dim": "hidden",
    "num_layers": "layers",
    "num_clients": "clients",
    "num_rounds": "rounds",
    "seeds": "seed",
    "epochs": "local_epochs",
    "num_epochs": "local_epochs",
    "dropout_rate": "dropout",
}
"""What other programs call some keys."""

_MOST = 4


def hint(key: str) -> str:
    """Return a hint for a key that is not known where it stands; nothing where none has such a name.

    Parameters
    ----------
    key : str
        Dotted, as ``--set`` takes it.
    """
    axis, _, last = key.rpartition(".")
    known = axes()
    every = [setting for each in known.values() for entry in each.entries for setting in entry.settings]
    own = axis in known and any(setting.key == key for setting in every)
    wanted = last if own else _OTHER_WORDS.get(last, last)
    keys = Counter(setting.key for setting in every if setting.key.rpartition(".")[2] == wanted)
    dotted = f"{axis}.{wanted}" if axis else wanted
    if dotted in keys and wanted != last:
        return f"; did you mean {dotted}?"
    if axis in known:
        names = [each.name for each in known[axis].entries if any(s.key == dotted for s in each.settings)]
        return f"; {_listed(names)} {'has' if len(names) == 1 else 'have'} it" if names else ""
    usual = sorted(keys, key=lambda name: (name != wanted, name.count("."), -keys[name]))[:_MOST]
    return f"; did you mean {' or '.join(usual)}?" if usual else ""


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST
    return ", ".join(names[:_MOST]) + (f" and {more} more" if more > 0 else "")

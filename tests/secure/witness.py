"""``python witness.py FILE ARGUMENTS``: runs fedmpi and writes down, per rank, what must stay with its clients."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent.parent))  # a script: before baycomp's own "tests"

from fedmpi.comm import launch

launch.set_defaults(1)

from fedmpi.__main__ import main  # noqa: E402
from fedmpi.client import training  # noqa: E402
from fedmpi.comm.reductions import Fixed32  # noqa: E402
from fedmpi.secure import lightsecagg, secagg, shamir  # noqa: E402
from fedmpi.secure.keys import AgreementKey, SigningKey  # noqa: E402

KINDS = ["deltas", "words", "private", "agreed", "own", "vault", "split", "masks", "pieces", "parties"]
SEEN: dict[str, list] = {name: [] for name in KINDS}
NOW: dict[str, object] = {}


def after(owner, name, note):
    """Have `note` told of the arguments and the result of every call."""
    original = getattr(owner, name)

    def witnessed(*arguments, **options):
        result = original(*arguments, **options)
        note(arguments, result)
        return result

    setattr(owner, name, witnessed)


def watch() -> None:
    """Witness updates, quantised updates, keys, secrets, shares and masks."""

    def trained(arguments, result):
        case, _, states, round = arguments[:4]
        NOW.update(case=case.name, round=round)  # all training comes before the sums
        for number, delta in result.deltas.items():
            weight = states.clients[number].weight
            SEEN["deltas"].append((case.name, round, number, delta.copy(), weight))

    def keyed(arguments, result):
        SEEN["private"].append(arguments[0]._private.private_bytes_raw())

    def made(arguments, result):
        SEEN["own"].append(arguments[0]._own)
        SEEN["vault"].append(arguments[0]._vault_key)
        client = arguments[0]
        SEEN["parties"].append((NOW["case"], NOW["round"], client.number, client._own, client._vault_key))

    after(training, "train", trained)
    after(Fixed32, "encode", lambda arguments, words: SEEN["words"].append(words.copy()))
    after(AgreementKey, "__init__", keyed)
    after(SigningKey, "__init__", keyed)
    after(AgreementKey, "agreed", lambda arguments, key: SEEN["agreed"].append(key))
    after(secagg.Client, "__init__", made)
    after(shamir, "split", lambda arguments, shares: SEEN["split"].append((arguments[0], shares)))
    after(
        lightsecagg.Client, "__init__", lambda arguments, _: SEEN["masks"].append(arguments[0]._mask.copy())
    )
    after(lightsecagg, "product", lambda arguments, rows: SEEN["pieces"].extend(rows.copy()))


if __name__ == "__main__":
    watch()
    target = Path(sys.argv.pop(1))
    try:
        main()
    finally:
        rank = launch.rank() or 0
        target.with_name(f"{target.name}.{rank}").write_bytes(pickle.dumps(SEEN))

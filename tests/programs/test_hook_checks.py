"""What a hook may return, and what is said of the rest."""

import numpy as np
import pytest

from fedmpi.algorithms.program import Message
from fedmpi.client.layouts import MessageLayout
from fedmpi.programs import hook_checks as checks
from fedmpi.programs.hook_checks import Breach
from fedmpi.store.schema import Field

MEMBERS = np.array([1, 4, 6])
GROUPS = [MEMBERS, np.array([2])]
MODEL = np.zeros(4, np.float32)
LAYOUT = MessageLayout({"a": Message((4,)), "c": Message((1, 2), "u8")})


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (lambda: checks.participants([], 5), "returned nobody"),
        (lambda: checks.participants([0, 3, 3], 5), "returned client 3 twice"),
        (lambda: checks.participants([-1, 3], 5), "client -1: they are numbered 0 to 4"),
        (lambda: checks.participants([5], 5), "client 5: they are numbered 0 to 4"),
        (lambda: checks.participants([True, False], 2), "bool [2]: it must be int64 [k]"),
        (lambda: checks.participants(None, 2), "it must be int64 [k]"),
        (lambda: checks.groups([0, -1, 0], 3), "group -1: they are numbered 0 to 2"),
        (lambda: checks.groups([0, 1], 3), "int64 [2]: it must be int64 [3]"),
        (lambda: checks.groups([0, [1], 2], 3), "it must be a vector of groups"),
        (lambda: checks.weights([3, -2, 1], 3), "-2 for client 1: a whole weight is 0 to 536870911"),
        (lambda: checks.weights([3, 2**29, 1], 3), "536870912 for client 1"),
        (lambda: checks.weights([1.5, np.nan], 2), "returned nan for client 1: a weight is finite, and 0 or"),
        (lambda: checks.weights([1.5, -0.5], 2), "returned -0.5 for client 1: a weight is finite, and 0 or"),
        (lambda: checks.weights([1.5, 0.5], 3), "float64 [2]: it must be int64 [3]"),
        (lambda: checks.weights([], 2), "float64 [0]: it must be int64 [2]"),
        (lambda: checks.weights([3, [1], 2], 3), "it must be a vector of weights"),
        (lambda: checks.weights([0, 0], 2), "returned 0 for every client"),
        (lambda: checks.messages({"a": 3}), "it must be a table of Message by name"),
        (lambda: checks.messages({"a": Message((0,))}), "returned a of the shape (0,)"),
        (lambda: checks.messages({"a": Message((2,), "O")}), "returned a of the type 'O'"),
        (lambda: checks.messages({"a": Message((2**29,))}), "returned more than 2147483647 bytes"),
        (lambda: LAYOUT.checked("b", MODEL), "sent b: declared are a, c"),
        (lambda: LAYOUT.checked("a", MODEL[:3]), "sent a as float32 [3]: it is float32 [4]"),
        (lambda: LAYOUT.pack({"a": MODEL}), "sent no c: call client.send for it"),
        (lambda: checks.client_weights(-np.eye(2), 2), "not finite, or below 0"),
        (lambda: checks.client_weights(np.array([[1, 0], [0, 0]]), 2), "a row without a weight above 0"),
        (lambda: checks.yes_or_no("yes"), "returned 'yes': the answer is True or False"),
        (lambda: checks.array(MODEL.astype(float), "float32", (4,)), "float64 [4]: it must be float32 [4]"),
        (lambda: checks.array(MODEL[:3], "float32", (4,)), "float32 [3]: it must be float32 [4]"),
        (lambda: checks.like(np.zeros(3), MODEL), "float64 [3]"),
        (lambda: checks.some([0.5], MEMBERS, "client"), "clients that are not whole numbers, such as 0.5"),
        (lambda: checks.some(4, MEMBERS, "client"), "int64 []: it must be int64 [k]"),
        (lambda: checks.one_of([], GROUPS), "clients []: they must be one of server.groups()"),
        (lambda: checks.parts(None, GROUPS), "split into None: it must be a list of parts"),
        (lambda: checks.parts([], GROUPS), "split into list: it must be a list of parts"),
        (lambda: checks.fields([]), "a tuple of record fields"),
        (
            lambda: checks.fields((Field("group", ("round", "client"), "i4", "1", "", "result"),)),
            'a field "group", which exists already',
        ),
        (lambda: checks.field_values({"unknown": MODEL}, (), 4), '"unknown", which fields() does not name'),
        (
            lambda: checks.fields((Field("../mine", ("round", "client"), "i4", "1", "", "result"),)),
            "a field that no record holds (name: ",
        ),
        (lambda: checks.state({"group": MODEL}), "'group', a name that is not free"),
        (lambda: checks.state({"../mine": MODEL}), "'../mine', a name that is not free"),
        (lambda: checks.state({"mine": [1, 2]}), '"mine" as list'),
        (
            lambda: checks.averages(np.array([0, 1, 1]), np.array([3, 0, 0]), np.array([0, 1, 2])),
            "returned 0 for every participant of group 1",
        ),
    ],
)
def test_what_a_hook_must_not_return_is_named(check, words):
    with pytest.raises(Breach) as breach:
        check()
    assert words in str(breach.value)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (checks.participants([4, 0, 2], 5), [0, 2, 4]),
        (checks.weights(np.array([3.0, 0.0, 2.0]), 3), [3, 0, 2]),
        # others than whole weights keep 29 bits of the largest
        (checks.weights(np.sqrt([40, 50]), 2), [round(np.sqrt(0.8) * (2**29 - 1)), 2**29 - 1]),
        (checks.weights([0.5, 0.0, 1e-30], 3), [2**29 - 1, 0, 1]),
        (checks.weights(np.array([0.5, 0.25], np.float16), 2), [2**29 - 1, 2**28]),
        (checks.some([6, 1, 6], MEMBERS, "client"), [1, 6]),
        (checks.some([], MEMBERS, "client"), []),
        (checks.one_of([1, 4, 6], GROUPS), [1, 4, 6]),
        *zip(checks.parts(([6.0, 1.0], np.array([4])), GROUPS), [[6, 1], [4]], strict=True),
    ],
)
def test_numbers_come_back_as_the_engine_uses_them(found, expected):
    assert (found.tolist(), found.dtype) == (expected, np.int64)


def test_the_values_of_a_round_fit_the_fields():
    field = Field("signature", ("round", "client"), "u1", "1", "", "result")
    found = checks.field_values({"signature": np.array([7, 255])}, (field,), 2)
    assert found["signature"].tolist() == [7, 255]
    for wrong in (np.array([7]), np.array([7, 256])):
        with pytest.raises(Breach, match='returned "signature" as int64'):
            checks.field_values({"signature": wrong}, (field,), 2)


def test_a_digest_tells_what_ranks_computed_apart():
    first = checks.digest(np.array([0, 1]))
    assert first == checks.digest(np.array([0, 1])) != checks.digest(np.array([0, 2]))
    assert first == int(first) < 2**53


def test_weights_of_clients_become_shares():
    assert checks.client_weights(np.array([[3, 1], [0, 5]]), 2).tolist() == [[0.75, 0.25], [0, 1]]


def test_messages_come_back_as_they_were_sent():
    sent = {"a": np.arange(4, dtype=np.float32), "c": np.array([[1, 2**63]], np.uint64)}
    row = LAYOUT.pack(sent)
    assert (row.dtype, len(row), LAYOUT.nbytes) == (np.uint8, 32, 32)
    found = LAYOUT.read(np.stack([row, row]))
    for name, array in sent.items():
        assert found[name].dtype == array.dtype and np.array_equal(found[name], np.stack([array, array]))


@pytest.mark.parametrize(
    ("server", "line"),
    [
        (None, "declares v, and self.server is None: it stays a dict of arrays"),
        ([1], "declares v, and self.server is list: it stays a dict of arrays"),
        ({}, "declares v, and self.server has nothing"),
        ({"v": 0, 3: 0}, "declares v, and self.server has v, 3"),
    ],
)
def test_what_the_server_keeps_stays_a_table_of_the_declared_names(server, line):
    with pytest.raises(Breach, match=line):
        checks.server_arrays(server, {"v": np.zeros(3)})

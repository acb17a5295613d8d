"""What a client's program may do, and the line that a mistake in it ends with."""

import numpy as np
import pytest

from tests.refusals import table

PLUGIN = """
from fedmpi.algorithms.base import Algorithm
from fedmpi.algorithms.program import Memory, Message


class Odd(Algorithm):
    name = "NAME"

    {body}
"""


@pytest.fixture
def program(run):
    """Return a function that runs an algorithm whose class has this body."""
    return lambda body, *settings: run(PLUGIN.format(body=body), "batch_size=16", *settings)


BY_HAND = """def train(self, client):
        for batch in client.batches():
            client.step(client.model, client.gradient(batch))
"""


@pytest.mark.long
@pytest.mark.parametrize("kernels", ["compiled", "csr", "reference"])
def test_steps_by_hand_are_those_of_run_epochs(program, kernels):
    settings = (f"kernels={kernels}", "local_epochs=2")
    usual, by_hand = (program(body, *settings).record for body in ("pass", BY_HAND))
    for name in ("parameter_digest", "train_loss", "gradient_norm", "test_loss", "model_flops", "steps"):
        assert np.array_equal(usual.results[name], by_hand.results[name]), name


KEEPS = """def memory(self, tensors):
        return {"rounds": Memory(1), "model": Memory("model", start=None)}

    def train(self, client):
        last = client.memory["model"]
        assert (last is None) == (float(client.memory["rounds"]) == 0) == (client.round == 0)
        client.run_epochs()
        client.memory["rounds"] += 1
        client.memory["model"] = client.model
"""


def test_memory_is_what_the_client_left_there(program):
    done = program(KEEPS)
    assert done.returncode == 0, done.stderr


ONE = ("dataset.synthetic.domains=1", "partition=iid", "partition.clients=3")
MISTAKES = """
def train(self, client): pass -> hook train in FILE took no pass at the model
def train(self, client): |     client.memory['own'] = client.model
    -> hook train in FILE:10 used memory own: memory() declares nothing
def memory(self, tensors): return dict(own=Memory('shared')) |
    def train(self, client): client.memory['own'] = client.model -> set memory own to torch.float32 [
def train(self, client): client.run_epochs(moments='own') -> used moments own: moments() declares none
def train(self, client): client.run_epochs(client.received[:3])
    -> used a vector [3] as a model, which is a tensor float32 [
def train(self, client): |     client.run_epochs() |     client.send('c', client.received)
    -> hook train in FILE:11 sent c: `sends` declares nothing
def train(self, client): client.gradient(next(client.batches()), term=lambda batch, rows: None)
    -> gave a loss that returned None: it must be a scalar
reads_outputs = True | def train(self, client): client.gradient(next(client.batches()), loss=sum, term=sum)
    -> took a gradient of a loss and of a term: each takes the place of the task's loss
def train(self, client): client.run_epochs(term=lambda batch, rows: 3)
    -> returned 3: it must be a scalar of torch.float32, or None
seen = 0 | def train(self, client): |     client.run_epochs() |     self.seen += 1
    -> changed self.seen, which no checkpoint holds: declare it in memory()
def train(self, client): client.run_epochs(); client.received.add_(1) -> changed `received`
def train(self, client): client.run_epochs(client.model.numpy())
    -> used ndarray as a model, which is a tensor float32 [
def train(self, client): |     client.run_epochs() |     client.model = client.model * 2
    -> hook train in FILE:11 replaced client.model: change it in place
def train(self, client): client.run_epochs(); client.model.new_ones(9).normal_()
    -> hook train in FILE drew from a global generator: take random numbers from fedmpi.seeds
def train(self, client): yield client.run_epochs()
    -> hook train in FILE has a yield, which only prepare and decide may have
def evaluated(self, client): return client.model[:3] -> hook evaluated in FILE returned
def evaluated(self, client): return [client.model] -> it must be a tensor torch.float32 [
def evaluated(self, client): return client.model.mul_(2)
    -> hook evaluated in FILE changed `client.model`: change a clone of it
def evaluated(self, client): return client.received
    -> hook evaluated in FILE:9 used client.received: between rounds it has model, memory,
def trained(self, client): client.step(client.model[:3], client.received)
    -> took a step of a vector [3] by a gradient [
def memory(self, tensors): return 3 -> hook memory in FILE returned 3: it must be a table of Memory
def memory(self, tensors): return dict(a='model')
    -> returned str as memory a: write Memory("model"), from fedmpi.algorithms.program
def memory(self, tensors): return dict(a=Memory('model', judged=True))
    -> returned memory a with a model of zeros, which would be evaluated
need_sgd = True -> need_sgd is no flag; did you mean needs_sgd?
def memory(self, tensors): return dict(a=Memory('modle')) -> returned memory a of the size 'modle'
def memory(self, tensors): return dict(a=Memory(('no',))) -> returned memory a for 'no', which is none
def memory(self, tensors): return dict(a=Memory(2, start='model')) -> a number, None, or
def moments(self, tensors): return dict(a=0) -> returned moments a of the size 0
"""
OF_PUBLIC = """
reads_outputs = True | def train(self, client): client.gradient(client.public())
    -> took a gradient of the public graphs, whose labels no client has: give it a loss
reads_outputs = True | def train(self, client): client.public().labels -> used labels of the public graphs, which no client has
reads_outputs = True | def train(self, client): client.gradient(client.public(), loss=lambda found: found)
    -> it must be a scalar of torch.float32
reads_outputs = True | def train(self, client): client.gradient(client.public(), beside=[client.public()])
    -> took a gradient with batches beside one, which only a loss reads: give it a loss
reads_outputs = True | def train(self, client): client.public().moved(client.model) -> moved features by another shape
"""
WITHOUT_PUBLIC = """
reads_outputs = True | def train(self, client): client.public()
    -> set reads_outputs, and the case's option `public`
def messages(self, model, classes): return dict(a=Message(('public',)))
    -> set the case's option `public`
"""
"""Class bodies, in which | begins a line."""


@pytest.mark.parametrize(
    ("body", "settings", "words"),
    [
        *((body, (), words) for body, words in table(MISTAKES)),
        *((body, (*ONE, "public=0.2"), words) for body, words in table(OF_PUBLIC)),
        *((body, ONE, words) for body, words in table(WITHOUT_PUBLIC)),
        ("pass", ("public=0.2",), "public: it is for clients that stay, with graphs of one dataset: leave it out"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_before_the_run(program, tmp_path, body, settings, words):
    done = program(body.replace("| ", "\n    "), *settings)
    assert done.returncode == 2 and not list(tmp_path.glob("**/run.h5"))
    assert words.replace("FILE", str(done.file)) in done.line


def test_public_graphs_are_on_no_client_and_in_the_record(program):
    whole, given = (program("pass", *ONE, *settings).record for settings in ((), ("public=0.2",)))
    public, mine = given.partition["public_index"], given.partition["train_index"]
    assert len(public) > 0 and not set(public.tolist()) & set(mine.tolist())
    assert sorted([*public.tolist(), *mine.tolist()]) == sorted(whole.partition["train_index"].tolist())
    for part in ("val_index", "test_index"):
        assert np.array_equal(given.partition[part], whole.partition[part])


OWN_LOSS = """reads_outputs = True

    def train(self, client):
        for batch in client.batches():
            usual = client.gradient(batch)
            loss = client.loss()
            kept = usual.clone()
            far = client.gradient(client.public(), loss=lambda found: found.mul_(0).sum() + found.square().sum())
            assert usual.equal(kept) and not far.equal(kept)
            client.step(client.model, usual)
"""


def test_a_gradient_of_another_loss_leaves_the_models_own(program):
    settings = (*ONE, "public=0.2", "kernels=csr")
    usual, beside = (program(body, *settings).record for body in (BY_HAND, OWN_LOSS))
    for name in ("parameter_digest", "train_loss", "gradient_norm"):
        assert np.array_equal(usual.results[name], beside.results[name]), name


OF_A_TERM = """reads_embeddings = True

    def train(self, client):
        def squares(batch, rows):
            return rows.square().mean()

        for batch in client.batches():
            both = client.gradient(batch)
            alone = client.gradient(batch, term=squares)
            head = client.part("head")
            assert not head.pack(alone).any() and alone.any()
            client.step(client.model, both)

    def memory(self, tensors):
        return {"head": Memory(("post.weight", "post.bias", "readout.weight", "readout.bias"))}
"""


@pytest.mark.parametrize("kernels", ["compiled", "csr"])
@pytest.mark.parametrize("model", ["gin", "fedstar"])
def test_a_gradient_of_a_term_leaves_the_head_out(program, kernels, model):
    done = program(OF_A_TERM, f"kernels={kernels}", f"model={model}", "rounds=1")
    assert done.returncode == 0, done.stderr


PREDICTS = """reads_outputs = True

    def predict(self, client):
        return {predicted}
"""


def test_outputs_that_the_class_predicts_are_evaluated(program):
    usual = program(PREDICTS.format(predicted="None")).record
    alike = program(PREDICTS.format(predicted="client.outputs()")).record
    other = program(PREDICTS.format(predicted="-client.outputs(at=client.model)")).record
    for name in ("val_loss", "test_loss", "test_accuracy", "evaluation_flops"):
        assert np.array_equal(usual.results[name], alike.results[name]), name
    assert np.allclose(other.results["test_accuracy"], 1 - usual.results["test_accuracy"])


@pytest.mark.parametrize(
    ("predicted", "words"),
    [
        ("client.outputs()[1:]", "of outputs, float32 ["),
        ("client.outputs()[:, :1]", ", 1], which the task cannot judge"),
        ("client.outputs(at=client.model[1:])", "it must be a tensor torch.float32 ["),
    ],
)
def test_odd_outputs_end_the_run_with_a_line(program, predicted, words):
    done = program(PREDICTS.format(predicted=predicted))
    assert done.returncode == 1 and words in done.line

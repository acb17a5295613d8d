"""Flower's SecAgg+ on simulated clients: the peer that fedmpi's secure sums are timed against.

Calls the functions of Flower's package in the order of its client's and server's stages: setup, share keys,
collect masked vectors, unmask. Needs an environment of its own with ``flwr==1.42.0``. ``fedmpi bench secure
--peer PYTHON`` starts it and has it take turns with fedmpi; by itself it runs the sums that its input names,
a seed a line::

    echo 1 | PYTHON bench/secure/flower.py --clients 32 --parameters 1206590 --dropped 3
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from flwr.common import ndarray_to_bytes
from flwr.common.secure_aggregation.crypto.shamir import combine_shares, create_shares
from flwr.common.secure_aggregation.crypto.symmetric_encryption import decrypt, encrypt, generate_shared_key
from flwr.common.secure_aggregation.ndarrays_arithmetic import (
    factor_combine,
    factor_extract,
    get_parameters_shape,
    parameters_addition,
    parameters_mod,
    parameters_multiply,
    parameters_subtraction,
)
from flwr.common.secure_aggregation.quantization import dequantize, quantize
from flwr.common.secure_aggregation.secaggplus_utils import (
    pseudo_rand_gen,
    share_keys_plaintext_concat,
    share_keys_plaintext_separate,
)
from flwr.supercore.primitives.asymmetric import (
    bytes_to_private_key,
    bytes_to_public_key,
    generate_key_pairs,
    private_key_to_bytes,
    public_key_to_bytes,
)

CLIPPING, LEVELS, MODULUS, MAX_WEIGHT = 8.0, 2**22, 2**32, 1000.0
"""Flower's defaults."""

EXAMPLES = 1000
"""Of every client: weights are equal."""


def update(seed: int, client: int, size: int) -> np.ndarray:
    """Return a client's update, float32 [size]: that of fedmpi's benchmark."""
    return np.random.default_rng((seed, client)).normal(0, 0.1, size).astype(np.float32)


class Client:
    """One client's side of a sum among `clients`, each of which is the others' neighbour."""

    def __init__(self, number: int) -> None:
        self.number = number
        pairs = generate_key_pairs(), generate_key_pairs()
        self.mask_key, self.channel_key = (private_key_to_bytes(private) for private, _ in pairs)
        self.public = tuple(public_key_to_bytes(public) for _, public in pairs)

    def share(self, public: dict[int, tuple[bytes, ...]], threshold: int) -> dict[int, bytes]:
        """Return the encrypted shares by neighbour."""
        self.public_keys, self.seed = public, os.urandom(32)
        of_seed = create_shares(self.seed, threshold, len(public))
        of_key = create_shares(self.mask_key, threshold, len(public))
        self.channels, self.held, sealed = {}, {}, {}
        for place, (other, (_, channel)) in enumerate(public.items()):
            if other == self.number:
                self.held[other] = of_seed[place], of_key[place]
                continue
            key = generate_shared_key(bytes_to_private_key(self.channel_key), bytes_to_public_key(channel))
            self.channels[other] = key
            text = share_keys_plaintext_concat(self.number, other, of_seed[place], of_key[place])
            sealed[other] = encrypt(key, text)
        return sealed

    def mask(self, sealed: dict[int, bytes], vector: np.ndarray) -> list[np.ndarray]:
        """Take the neighbours' shares; return the masked weight and vector."""
        for other, text in sealed.items():
            _, _, *self.held[other] = share_keys_plaintext_separate(decrypt(self.channels[other], text))
        ratio = round(EXAMPLES / MAX_WEIGHT * LEVELS)
        quantised = quantize(parameters_multiply([vector], ratio / LEVELS), CLIPPING, LEVELS)
        total = factor_combine(ratio, quantised)
        shapes = [each.shape for each in total]
        total = parameters_addition(total, pseudo_rand_gen(self.seed, MODULUS, shapes))
        for other in sealed:
            public = bytes_to_public_key(self.public_keys[other][0])
            seed = generate_shared_key(bytes_to_private_key(self.mask_key), public)
            change = parameters_addition if self.number > other else parameters_subtraction
            total = change(total, pseudo_rand_gen(seed, MODULUS, shapes))
        total = parameters_mod(total, MODULUS)
        self.sent = [ndarray_to_bytes(each) for each in total]
        return total

    def answer(self, survivors: list[int]) -> dict[int, bytes]:
        """Return a share of each client's secret: of the seed of survivors, of the others' mask key."""
        return {other: shares[0 if other in survivors else 1] for other, shares in self.held.items()}


class Sum:
    """A sum with its CPU seconds: a client's mean, the server's."""

    def __init__(self, clients: int, size: int, dropped: int) -> None:
        self.count, self.size, self.dropped = clients, size, dropped
        self.threshold = max(round(0.5 * clients), 2)

    @contextmanager
    def timed(self, step: str, parties: int = 1) -> Iterator[None]:
        """Add the CPU seconds of what follows to a step."""
        start = time.process_time()
        yield
        self.seconds[step] = self.seconds.get(step, 0.0) + (time.process_time() - start) / parties

    def run(self, seed: int) -> dict[str, object]:
        """Run it; return seconds and how far the mean is from the plain one."""
        self.seconds: dict[str, float] = {}
        numbers = range(self.count)
        with self.timed("keys", self.count):
            clients = {number: Client(number) for number in numbers}
        public = {number: client.public for number, client in clients.items()}
        with self.timed("shares", self.count):
            sealed = {number: client.share(public, self.threshold) for number, client in clients.items()}
        order = np.random.default_rng(seed).permutation(self.count)
        survivors = sorted(order[self.dropped :].tolist())
        total, plain, answers = None, np.zeros(self.size), {}
        for number in survivors:
            vector = update(seed, number, self.size)
            plain += vector
            near = {other: sealed[other][number] for other in numbers if other != number}
            with self.timed("upload", len(survivors)):
                masked = clients[number].mask(near, vector)
            with self.timed("add"):
                total = masked if total is None else parameters_addition(total, masked)
            with self.timed("answer", len(survivors)):
                answers[number] = clients[number].answer(survivors)
            clients[number].sent = []
        with self.timed("unmask"):
            mean = self.unmask(total, survivors, answers, public)
        deviation = float(np.abs(mean - plain / len(survivors)).max())
        return {
            "seconds": self.seconds,
            "deviation": deviation,
            "digest": zlib.crc32(update(seed, 0, self.size)),
        }

    def unmask(
        self,
        total: list[np.ndarray],
        survivors: list[int],
        answers: dict[int, dict[int, bytes]],
        public: dict[int, tuple[bytes, ...]],
    ) -> np.ndarray:
        """Return the mean of the survivors' vectors."""
        total = parameters_mod(total, MODULUS)
        shapes = get_parameters_shape(total)
        for number in public:
            secret = combine_shares([answer[number] for answer in answers.values()])
            if number in survivors:
                total = parameters_subtraction(total, pseudo_rand_gen(secret, MODULUS, shapes))
                continue
            for other in survivors:
                key = bytes_to_public_key(public[other][0])
                seed = generate_shared_key(bytes_to_private_key(secret), key)
                change = parameters_addition if number > other else parameters_subtraction
                total = change(total, pseudo_rand_gen(seed, MODULUS, shapes))
        ratio, vectors = factor_extract(parameters_mod(total, MODULUS))
        (vector,) = dequantize(vectors, CLIPPING, LEVELS)
        return (vector - (len(survivors) - 1) * CLIPPING) * (LEVELS / int(ratio))


def main() -> None:
    """Run a sum for each seed of the input; print one JSON object a line."""
    parser = argparse.ArgumentParser(description="Flower's SecAgg+ on simulated clients.")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--parameters", type=int, default=1_206_590)
    parser.add_argument("--dropped", type=int, default=0, help="clients that drop out before the upload")
    options = parser.parse_args()
    every = Sum(options.clients, options.parameters, options.dropped)
    for line in sys.stdin:
        print(json.dumps(every.run(int(line))), flush=True)


if __name__ == "__main__":
    main()

"""The building blocks against published values and against Python's integers."""

import hashlib
import hmac
from math import comb

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR, ECB

from fedmpi.secure import field, keys, lightsecagg, neighbours, shamir
from fedmpi.secure.keys import AgreementKey, Purpose, SigningKey, Tampered, expanded, extracted, seal, unseal
from fedmpi.secure.lightsecagg import Code
from fedmpi.secure.masks import Stretcher
from fedmpi.secure.roster import Roster

PURPOSE = Purpose(b"run", "pair", 4, 0, 1, 2)


def hkdf(secret, info):
    """One block of HKDF-SHA256, by RFC 5869 and the standard library."""
    extracted = hmac.digest(bytes(32), secret, hashlib.sha256)
    return hmac.digest(extracted, info + b"\x01", hashlib.sha256)


def test_agreement_is_x25519_of_rfc_7748_section_6_1():
    alice, bob = AgreementKey(), AgreementKey()
    alice._private = X25519PrivateKey.from_private_bytes(
        bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
    )
    bob._private = X25519PrivateKey.from_private_bytes(
        bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
    )
    of_alice = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
    of_bob = bytes.fromhex("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f")
    shared = bytes.fromhex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742")
    assert alice._private.public_key().public_bytes_raw() == of_alice
    assert alice.agreed(of_bob, PURPOSE) == bob.agreed(of_alice, PURPOSE) == hkdf(shared, PURPOSE.packed())


def test_derivation_is_hkdf_of_rfc_5869_appendix_a_3():
    secret = bytes([0x0B] * 22)
    wanted = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
    assert hkdf(secret, b"").hex() == wanted
    assert expanded(extracted(secret), PURPOSE) == hkdf(secret, PURPOSE.packed())


def test_sealing_is_chacha20_poly1305_of_rfc_8439_section_2_8_2():
    key, nonce = bytes(range(0x80, 0xA0)), bytes.fromhex("070000004041424344454647")
    text = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
    text += b"sunscreen would be it."
    made = ChaCha20Poly1305(key).encrypt(nonce, text, bytes.fromhex("50515253c0c1c2c3c4c5c6c7"))
    assert made[:16].hex() == "d31a8d34648e60db7b86afbc53ef7ec2"
    assert made[-16:].hex() == "1ae10b594f09e26a7e902ecbd0600691"
    sealed = seal(key, text, PURPOSE)
    assert ChaCha20Poly1305(key).decrypt(sealed[:12], sealed[12:], PURPOSE.packed()) == text
    assert unseal(key, sealed, PURPOSE) == text


def test_signatures_are_ed25519_of_rfc_8032_section_7_1():
    signer = SigningKey()
    signer._private = Ed25519PrivateKey.from_private_bytes(
        bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    )
    public = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    signature = signer.sign(b"")
    assert signature.hex() == (
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
    )
    keys.verify(public, signature, b"")
    with pytest.raises(Tampered):
        keys.verify(public, signature, b"another list")


def test_the_cipher_of_masks_is_ctr_aes256_of_nist_sp_800_38a_appendix_f_5_5():
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    text = bytes.fromhex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51")
    wanted = "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
    made = Cipher(AES(key), CTR(bytes(range(0xF0, 0x100)))).encryptor().update(text)
    assert made.hex() == wanted
    blocks = b"".join(number.to_bytes(16, "big") for number in range(4))  # a mask's counter starts at 0
    assert Stretcher(16).mask(key).tobytes() == Cipher(AES(key), ECB()).encryptor().update(blocks)


def test_every_part_of_a_purpose_gives_another_key():
    others = [
        Purpose(b"ruN", "pair", 4, 0, 1, 2),
        Purpose(b"run", "pain", 4, 0, 1, 2),
        Purpose(b"runp", "air", 4, 0, 1, 2),
        Purpose(b"run", "pair", 5, 0, 1, 2),
        Purpose(b"run", "pair", 4, 1, 1, 2),
        Purpose(b"run", "pair", 4, 0, 2, 1),
    ]
    assert len({expanded(bytes(32), purpose) for purpose in [PURPOSE, *others]}) == 7
    for other in others:
        with pytest.raises(Tampered):
            unseal(bytes(32), seal(bytes(32), b"share", PURPOSE), other)


def test_shamir_of_a_published_example():
    """The example of Wikipedia's article: 1234 + 166 x + 94 x^2 modulo 1613."""
    values = shamir.evaluate([1234, 166, 94], range(1, 7), 1613)
    assert values == {1: 1494, 2: 329, 3: 965, 4: 176, 5: 1188, 6: 775}
    assert shamir.value_at_zero({2: 329, 4: 176, 5: 1188}, 1613) == 1234


def test_shamirs_prime_is_the_least_above_every_secret():
    primes = [2**256 + step for step in range(1, 298, 2) if pow(3, 2**256 + step - 1, 2**256 + step) == 1]
    assert primes == [shamir.PRIME]


def test_secrets_come_back_from_any_shares():
    for secret in (bytes(32), b"\xff" * 32, bytes(range(32))):
        shares = shamir.split(secret, 3, range(1, 6))
        assert shamir.combine({place: shares[place] for place in (5, 1, 3)}) == secret
        assert {len(share) for share in shares.values()} == {33}
    assert shamir.value_at_zero({1: 5, 2: 5}) == 5


def test_fewer_shares_fit_every_secret():
    """With two shares of three, each possible secret belongs to exactly one polynomial."""
    prime, known = 13, {1: 4, 2: 9}
    for secret in range(prime):
        lines = ([secret, a, b] for a in range(prime) for b in range(prime))
        assert sum(shamir.evaluate(each, [1, 2], prime) == known for each in lines) == 1


@pytest.mark.parametrize("inner", [1, 64, 65, 200])
def test_products_are_those_of_pythons_integers(inner):
    left = np.full((2, inner), field.PRIME - 1, np.uint32)
    left[1] = field.random_elements(inner)
    right = np.stack([field.random_elements(3) for _ in range(inner)])
    right[0] = field.PRIME - 1
    wanted = left.astype(object) @ right.astype(object) % field.PRIME
    assert field.product(left, right).tolist() == wanted.tolist()


def test_elements_are_uniform():
    values = field.random_elements(200_000)
    assert values.max() < field.PRIME
    counts = np.bincount(values >> np.uint32(25), minlength=64)
    assert ((counts - 3125) ** 2 / 3125).sum() < 120  # chi-squared of 63 degrees: 1 in 10^5


def test_lightsecagg_codes_a_mask_as_by_hand(monkeypatch):
    """Three clients, U = 2, T = 1: the line through z at 4 and a random r at 5, read at 1, 2 and 3."""
    drawn = iter([[10, 20], [7, 5]])
    monkeypatch.setattr(lightsecagg, "random_elements", lambda size: np.array(next(drawn), np.uint32))
    roster = Roster(b"run", 1, 0, (0, 1, 2), neighbours.everybody([0, 1, 2]), 2)
    pairs = {number: AgreementKey() for number in range(3)}
    public = {number: key.public for number, key in pairs.items()}
    coder = lightsecagg.Client(0, pairs[0], public, roster, Code(2, 1, 2))
    sealed, _ = coder.offer()

    def opened(number):
        key = pairs[number].agreed(public[0], roster.purpose("pieces", 0, number))
        return np.frombuffer(unseal(key, sealed[number], roster.purpose("pieces", 0, number)), np.uint32)

    assert coder._held[0].tolist() == [4 * 10 - 3 * 7, 4 * 20 - 3 * 5]
    assert opened(1).tolist() == [3 * 10 - 2 * 7, 3 * 20 - 2 * 5]
    assert opened(2).tolist() == [2 * 10 - 7, 2 * 20 - 5]
    assert coder.upload(np.array([-1, 3], np.int32)).tolist() == [9, 23]
    masks = field.product(field.interpolation([1, 2], [4]), np.stack([coder._held[0], opened(1)]))
    assert masks.tolist() == [[10, 20]]


def test_a_ring_of_neighbours_is_regular_and_symmetric():
    near = neighbours.ring(neighbours.shuffled(range(20, 31)), 4)
    assert all(len(set(some)) == 4 and client not in some for client, some in near.items())
    assert all(client in near[other] for client, some in near.items() for other in some)
    assert len({tuple(neighbours.shuffled(range(12))) for _ in range(8)}) > 1  # each draw is another order


def test_the_least_degree_holds_its_own_bounds():
    """Chances counted by hand from binomial coefficients, for 1,000 clients, 5 % corrupt, 5 % dropping out."""
    found = neighbours.least_degree(1000, 0.05, 0.05)
    assert found is not None

    def chance(marked, wanted):
        others, degree = 999, found.neighbours
        ways = [comb(marked, n) * comb(others - marked, degree - n) for n in wanted]
        return sum(ways) / comb(others, degree)

    exposed = chance(50, range(found.threshold, min(50, found.neighbours) + 1))
    stuck = chance(999 - 50, range(found.threshold))
    assert 1000 * exposed <= 2.0**-40
    assert 1000 * stuck <= 2.0**-30
    assert 20 < found.neighbours < 60
    assert neighbours.least_degree(20, 0.33, 0.3) is None  # small groups have none


def test_survivors_of_a_ring_in_two_parts_share_no_masks():
    circles = neighbours.ring(list(range(8)), 2)
    roster = Roster(b"run", 1, 0, tuple(range(8)), circles, 2)
    assert roster.is_connected([1, 2, 3, 4, 5, 6, 7])
    assert not roster.is_connected([1, 2, 3, 5, 6, 7])


def test_a_share_of_a_group_is_taken_as_it_is_written():
    assert neighbours.exactly(0.29) * 100 == 29  # the product of floats is 28.999...

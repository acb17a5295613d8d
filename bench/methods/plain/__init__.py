"""Methods in plain torch and PyG: by their equations, and as released.

These files know nothing of fedmpi. Each method is a class whose `round` trains the participants and averages.
Gradients are autograd's, of the loss as the paper writes it; steps are those of `torch.optim`, whose state
begins anew in every round of every client. With `released` a method does what its authors' released code does
where this is something else: the class says what.
"""

from plain.apfl import Apfl
from plain.fedas import FedAs
from plain.feddyn import FedDyn
from plain.fedfomo import FedFomo
from plain.fedproto import FedProto
from plain.fedrep import FedRep
from plain.fedvn import FedVn
from plain.flit import Flit, FlitPlus
from plain.method import Draws, Method, Setting
from plain.moon import Moon
from plain.network import Drop, Gin
from plain.one_shot import OneShot
from plain.pfedme import PFedMe
from plain.virtual import VirtualGin

__all__ = ["METHODS", "Draws", "Drop", "Gin", "Method", "Setting", "VirtualGin"]

METHODS: dict[str, type[Method]] = {
    "feddyn": FedDyn,
    "fedrep": FedRep,
    "apfl": Apfl,
    "moon": Moon,
    "fedproto": FedProto,
    "pfedme": PFedMe,
    "fedfomo": FedFomo,
    "fedas": FedAs,
    "one-shot": OneShot,
    "flit": Flit,
    "flit-plus": FlitPlus,
    "fedvn": FedVn,
}
"""By fedmpi's names."""

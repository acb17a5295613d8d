"""What a case cannot be is one line that names file, key and closest match, before anything starts."""

import re

import pytest

from fedmpi.config.suite import read
from fedmpi.registry.check import check_suite
from tests.refusals import refused, table

HUNDRED = 'partition = { name = "iid", clients = 100 }; dataset = { synthetic = { domains = 1 } }'
UNSUPERVISED = 'dataset = { synthetic = { domains = 1 } }; partition = "dominant-share"; objective = "mvgrl"'
MOLECULES = 'partition = "fedgraphnn"; model = "fedgraphnn/gcn"; share = "all"'
POPULATION = 'dataset = "PROTEINS"; partition = "population"; optimizer = { state = "reset" }; share = "all"'
PRIVATE = 'privacy = "central"; weights = "equal"'
NODES = 'dataset = "synthetic-nodes"; partition = "louvain"'
CLUSTERS = """dataset = { synthetic = { domains = 1, graphs = 60 } }; partition = { name = "dominant-share", clients = 4 };
    model = { name = "gin-encoder", hidden = 8, layers = 2 }; objective = "fclg"; share = "all"; rounds = 3; batch_size = 8"""
GTA = NODES + '; model = "gcn"; algorithm = "fedgta"'
FLIT = (
    'dataset = { synthetic = { domains = 1 } }; partition = "iid"; kernels = "csr"; algorithm = "flit-plus"'
)
TAD = NODES + '; model = "gcn"; share = "all"; algorithm = "fedtad"'
SAGE = NODES + '; model = "sage"; algorithm = "fedsage-plus"'

REFUSED = {
    "": """
rouns = 3 -> demo.toml: case.rouns: unknown key; did you mean "rounds"?
rounds = 0 -> case.rounds: input should be greater than or equal to 1 (got 0)
rounds = "many" -> case.rounds: input should be a valid integer
algorithm = "fedvn" -> case.algorithm: fedvn shares virtual nodes: choose model = "fedvn"
algorithm = "fedavgg"
    -> there is no "fedavgg"; did you mean "fedavg"? (valid: apfl, centralised, ditto, fedadagrad
algorithm = { name = "fedprox", nu = 1 } -> case.algorithm.nu: unknown key; did you mean "mu"?
algorithm = { name = "fedprox", mu = -1 } -> case.algorithm.mu: input should be greater than or equal to 0
model = "ginn" -> there is no "ginn"; did you mean "gin"? (valid: fedgraphnn/gat,
model = "torch-geometric" -> case.model.layer: field required
model = { name = "torch-geometric", layer = "DimeNet" }
    -> case.model.layer: input should be 'GCNConv', 'SAGEConv', ... 'GCN', ... 'EdgeCNN' or 'AttentiveFP' (got 'DimeNet')
model = { name = "torch-geometric", layer = "GCN", options = { heads = 2 } }
    -> case.model: "GCN" has no option heads (known: act, add_self_loops, bias, improved, jk, norm, normalize)
model = { name = "torch-geometric", layer = "GIN", options = { norm = "graph_norm" } }
    -> case.model: "GIN" would take "graph_norm" over all graphs of a batch: use "batch_norm"
model = { name = "torch-geometric", layer = "AttentiveFP" }
    -> case.model: "AttentiveFP" needs the option num_timesteps, steps of its readout, such as 2
model = { name = "torch-geometric", layer = "AttentiveFP", pooling = "sum", options = { num_timesteps = 2 } }
    -> case.model: "AttentiveFP" reads its graphs itself: leave out pooling
model = { name = "torch-geometric", layer = "AttentiveFP", options = { num_timesteps = 2 } }
    -> case.model.layer: "AttentiveFP" needs attributes of edges, the data have none: use "GAT"
model = { name = "torch-geometric", layer = "GINEConv" }
    -> case.model.layer: "GINEConv" needs attributes of edges, the data have none: use "GINConv"
dataset = "Cora"; model = { name = "torch-geometric", layer = "AttentiveFP", options = { num_timesteps = 2 } }
    -> case.model.layer: "AttentiveFP" is for labels of graphs, not of nodes: use another layer
model = { name = "torch-geometric", layer = "GCNConv", options = { heads = 2 } }
    -> case.model: "GCNConv" has no option heads (known: add_self_loops, bias, improved, normalize)
model = { name = "torch-geometric", layer = "GCNConv", options = { add_self_loops = true, normalize = false } }
    -> case.model: "GCNConv" adds self-loops only where it normalizes: leave out add_self_loops or normalize
model = { name = "torch-geometric", layer = "GATConv", options = { head = 2 } }
    -> case.model.options.head: unknown key ... (known: heads, concat, dropout
model = { name = "torch-geometric", layer = "GPSConv", options = { heads = 3 } }
    -> case.model: hidden 64 is no multiple of 3 heads
model = { name = "torch-geometric", layer = "PNAConv", options = { degrees = [7] } }
    -> case.model: "PNAConv" needs the option degrees, numbers of nodes by degree, such as [0, 9, 5]
optimizer = { lr = inf } -> case.optimizer.lr: input should be a finite number
partition = "iid" -> deals out one dataset, here are 6 synthetic domains
participation = 0 -> case.participation: input should be greater than 0
dataset = { synthetic = { domain = 3 } }
    -> case.dataset.synthetic.domain: unknown key; did you mean "domains"?
dataset = "gcfl/molecules"; partition = "iid" -> gcfl/molecules is several
dataset = { name = "MUTAG", synthetic = { domains = 2 } } -> is read for dataset "synthetic" only
dataset = 3 -> case.dataset: must be a name or a table, not 3
name = "x" -> case.name: unknown key
compression = "topk" -> case.compression: there is no "topk"; did you mean "top-k"?
compression = { name = "top-k", share = 0 } -> case.compression.share: input should be greater than 0
compression = "top-k"; reduction = "secagg"
    -> case.compression: ... "secagg" adds what it must not see ... use "random-k"
algorithm = "median"; compression = "powersgd"
    -> case.compression: median needs single updates, and "powersgd" decodes their mean alone: use "top-k"
algorithm = "self-train"; compression = "sign" -> case.compression: self-train sends no updates
algorithm = "fedcch"; model = { norm = "graph" }; compression = "int8"
    -> case.compression: fedcch averages models, and "int8" compresses updates: use "none"
compression = "int8"; privacy = "central"; weights = "equal"
    -> case.compression: "int8" may lengthen an update ... use "top-k", "sign", or "random-k"
compression = { name = "top-k", feedback = false }; privacy = "distributed"; weights = "equal"; reduction = "fixed32"
    -> case.compression: "distributed" privacy adds noise to sums ... use "random-k" with scaled = false
compression = "sign"; privacy = "central"; weights = "equal"
    -> case.compression.feedback: ... use feedback = false
compression = "sign"; reduction = { transport = "gloo" }
    -> case.reduction.transport: updates by "sign" travel one by one and have no sum: use "mpi"
down_compression = "int8"; reduction = { transport = "nccl" }; device = "cuda"; kernels = "csr"
    -> case.reduction.transport: "int8" compresses in host memory: use "mpi"
compression = "sign"; reduction = { buffers = "device" }
    -> case.reduction.buffers: "sign" compresses in host memory: use "host"
down_compression = "powersgd" -> case.down_compression: "powersgd" takes its basis from the updates of all
algorithm = "fedcch"; model = { norm = "graph" }; down_compression = "int8"
    -> case.down_compression: fedcch makes new models each round, and only changes are compressed
schedule = "buffered" -> case.schedule: schedule "buffered" orders clients by their devices: set devices =
schedule = "asynchronous"; devices = "equal"; compression = "top-k"
    -> case.compression: schedule "asynchronous" averages models ... use schedule = { name = "buffered", size = 1 }
schedule = "buffered"; devices = "equal"; algorithm = "gcfl"
    -> case.schedule: gcfl needs updates that start from one model ... use "synchronous", or "deadline" with late = "dropped"
schedule = "buffered"; devices = "equal"; reduction = "fixed32"
    -> case.reduction: ... a public exponent needs weights with a sum of 1: use "exact"
schedule = "buffered"; devices = "equal"; down_compression = "int8" -> case.down_compression: ... use "none"
schedule = "buffered"; devices = "equal"; compression = "powersgd" -> case.compression: ... use "top-k"
schedule = "deadline"; devices = "equal"; privacy = "central"; weights = "equal"
    -> case.privacy: epsilon is not known where schedule "deadline" chooses by speed: use "synchronous"
schedule = { name = "buffered", size = 0 }; devices = "equal" -> case.schedule.size: ... greater than or equal to 1
schedule = { name = "buffered", size = 7 }; devices = "equal" -> case.schedule: "buffered": ... use size = 6 or less
schedule = "deadline"; devices = "equal"
    -> case.schedule: ... use participation = 0.666, or over_selection = 1, or less
schedule = "deadline"; devices = "equal"; topology = "ring"; weights = "equal"; participation = 0.5
    -> case.schedule: ... topology "ring" has none: use "synchronous"
devices = { name = "file", columns = { speed = [1.0, 2.0] } } -> case.devices: the file has 2 lines for 6 clients
schedule = { name = "buffered", clock = "real" }; participation = 0.5 -> case.participation: ... use 1
schedule = { name = "buffered", size = 3, clock = "real" }; algorithm = "q-fedavg"
    -> case.schedule.clock: q-fedavg has a server that does more than average ... use "virtual"
schedule = { name = "buffered", size = 3, clock = "real" }; server = "shared" -> case.server: ... use "dedicated"
schedule = { name = "buffered", size = 3, clock = "real" }; compression = "top-k" -> case.compression: ... "none"
schedule = { name = "synchronous", clock = "real" }; reduction = "secagg"; record = "protocol"
    -> case.record: "protocol" keeps no seconds of single clients ... use "full"
schedule = { name = "deadline", clock = "real" } -> case.schedule.clock: unknown key; synchronous, ... have it
devices = { name = "equal", speed = 0 } -> case.devices.speed: input should be greater than 0
devices = { name = "file", path = "no.csv" } -> case.devices: path: no.csv cannot be read
topology = "rng" -> case.topology: there is no "rng"; did you mean "ring"?
topology = "ring" -> case.weights: topology "ring" weighs clients by their neighbours, not by samples: use "equal"
topology = "ring"; algorithm = "gcfl"
    -> case.topology: gcfl has a server that does more than average: use topology "server"
topology = "ring"; algorithm = "fedadam" -> case.topology: fedadam has a server that does more than average
topology = "ring"; algorithm = "scaffold"; optimizer = "sgd" -> case.topology: scaffold sends a second vector
algorithm = "scaffold"; optimizer = { name = "sgd", momentum = 0.9 } -> case.optimizer: scaffold has plain SGD
topology = "ring"; algorithm = "self-train" -> case.topology: self-train averages nothing: use topology "server"
topology = "ring"; reduction = "secagg" -> case.reduction: topology "ring" has no sum at a server: use "exact"
topology = "ring"; reduction = { transport = "gloo" }; weights = "equal"
    -> case.reduction.transport: topology "ring" has no sum at a server: use "mpi"
topology = "ring"; reduction = { buffers = "device" }
    -> case.reduction.buffers: topology "ring" exchanges models in host memory: use "host"
topology = "ring"; down_compression = "int8" -> case.down_compression: topology "ring" has no way down: use "none"
topology = "ring"; attack = "sign-flip" -> case.attack: attackers send updates to a server ... use "label-flip"
topology = "ring"; privacy = "clipping" -> case.privacy: topology "ring" shows clients each other's models: use "none"
topology = "one-peer"; weights = "equal"; participation = 0.5
    -> case.participation: topology "one-peer": ... do not keep the mean: use 1, or topology "ring"
topology = { name = "ring", step = 0.5 }; weights = "equal"
    -> case.topology.step: is the step of compressed gossip: set `compression`, or remove it
topology = "ring"; weights = "equal"; compression = "powersgd"
    -> case.compression: "powersgd" takes its basis from the updates of all clients: use "top-k"
topology = "ring"; weights = "equal"; compression = { name = "top-k", feedback = false }
    -> case.compression.feedback: what compression left out is in the next difference
topology = "ring"; weights = "equal"; compression = "random-k"
    -> case.compression: "random-k" as it is here gets further ... use "top-k", scaled = false, or more levels
topology = "ring"; weights = "equal"; compression = { name = "qsgd", levels = 4 }
    -> case.compression: "qsgd" as it is here gets further
topology = "exponential"; weights = "equal"; compression = "top-k"
    -> case.topology: compressed gossip needs links both ways, and those of "exponential" go one way: use "ring" or
topology = { name = "regular", degree = 7 }; weights = "equal"
    -> case.topology: "regular": 6 clients have 5 neighbours at most: use fewer
topology = { name = "erdos-renyi", p = 0.01 }; weights = "equal"
    -> case.topology: "erdos-renyi": no path joins clients 0 and 1: use more edges, or another seed
topology = { name = "file", path = "nowhere.txt" }; weights = "equal"
    -> case.topology: nowhere.txt cannot be read (No such file or directory): give a file of edges
task = "regresion" -> case.task: there is no "regresion"; did you mean "regression"?
task = "clustering" -> "clustering" and objective "supervised" do not go together: leave task out
task = "multi-label" -> "multi-label" needs binary labels, dataset synthetic has one class each: remove
task = 3 -> case.task: must be the name of a task
model = { norm = "graph" }; algorithm = { name = "fedbn", pf = "shared" }
    -> case.algorithm.pf: unknown key; fedcch has it (known: name)
reduction = { clip = 2.0 }
    -> case.reduction.clip: unknown key; fixed32, secagg, secagg+, lightsecagg have it
       (known: buffers, transport, dropouts, name)
reduction = { name = "fixed32", clip = 0.0 } -> case.reduction.clip: input should be greater than 0
model = { norm = "batch" }; algorithm = "fedcch"; reduction = "fixed32"
    -> case.reduction.clip: fedcch averages models, not updates, and "fixed32" cuts their elements: 8 or
algorithm = "gcfl"; reduction = "secagg"
    -> case.reduction: gcfl compares single updates, which "secagg" hides: use "exact"
algorithm = "q-fedavg"; reduction = "lightsecagg"
    -> the weights of q-fedavg can exceed 1, "lightsecagg" needs a sum of 1: use "exact"
algorithm = "median"; reduction = "secagg+"
    -> median needs every client's update and computes no sum: remove the setting `reduction`
algorithm = "gcfl-plus"; reduction = { name = "secagg", server = "active", threshold = 0.7 }
    -> case.reduction.server: gcfl-plus sums the same updates again with other weights
reduction = { name = "lightsecagg", colluders = 0.7 }
    -> case.reduction.colluders: it must be below the threshold
algorithm = "fedcch"; attack = { name = "sign-flip", clients = [0] }; model = { norm = "graph" };
    reduction = { name = "secagg", clip = 8.0, dropouts = { probability = 0.1 } }
    -> case.reduction.dropouts: attackers start from their group's model, and fedcch keeps none of a group
reduction = { name = "secagg+", neighbours = 3 } -> case.reduction.neighbours: input should be a multiple of 2
reduction = { name = "secagg", server = "active" }
    -> case.reduction.threshold: an active server could show two lists of survivors: it must be above 2/3
reduction = { name = "secagg+", server = "active" }
    -> case.reduction.server: input should be 'semi-honest' (got 'active')
reduction = { transport = "nccl" }
    -> case.reduction.transport: "nccl" sums between GPUs: use device = "cuda", or "gloo"
reduction = { transport = "ucx" } -> case.reduction.transport: ... 'mpi', 'gloo' or 'nccl'
reduction = { name = "secagg", transport = "gloo" } -> case.reduction.transport: input should be 'mpi'
algorithm = "median"; reduction = { transport = "gloo" }
    -> case.reduction: median needs every client's update and computes no sum: remove the setting
schedule = { name = "buffered", size = 3, clock = "real" }; reduction = { transport = "gloo" }
    -> case.reduction.transport: updates by the real clock are summed on rank 0 alone: use "mpi"
reduction = { name = "secagg", buffers = "device" }
    -> case.reduction.buffers: input should be 'host' (got 'device')
algorithm = "self-train"; reduction = { dropouts = { probability = 0.1 } }
    -> case.reduction.dropouts: self-train sends no updates: remove it
algorithm = "gcfl"; reduction = { dropouts = { probability = 0.1 } }
    -> case.reduction.dropouts: gcfl needs something of every participant: remove it
algorithm = "median"; reduction = { dropouts = { probability = 0.1 } }
    -> case.reduction.dropouts: median needs something of every participant: remove it
algorithm = "fednova"; reduction = { dropouts = { probability = 0.1 } }
    -> case.reduction.dropouts: fednova needs something of every participant: remove it
algorithm = "gcfl-plus"; reduction = { dropouts = { probability = 0.1, step = "training" } }
    -> gcfl-plus groups clients by what they report after training: use "shares" or a later step
algorithm = "fedavg"; rounds = 2; reduction = { dropouts = { schedule = [{ round = 3, clients = [0] }] } }
    -> round 3 of the schedule is behind the last, 2
group_size = 4 -> group_size: is read by kernels = "grouped" only
model = "mpnn"; kernels = "grouped" -> "grouped" cannot run mpnn as it is here: use "compiled", "csr", "reference"
model = { norm = "layer" }; kernels = "grouped"
    -> "grouped" cannot run gin as it is here: use "compiled", "csr", "reference"
subnormals = "flushed"; kernels = "csr"; threads = 2 -> subnormals: "flushed" is for one thread of a CPU
subnormals = "flushed"; kernels = "csr"; device = "cuda" -> subnormals: "flushed" is for one thread of a CPU
record = "protocol" -> case.record: "protocol" is for secure sums, "exact" hides nothing: use "full"
record = "protocol"; reduction = "secagg"; algorithm = "gcfl-plus"
    -> case.record: gcfl-plus needs reports of single clients: use "full"
record = "protocol"; reduction = "secagg"; algorithm = "self-train"
    -> case.record: self-train has no sums over clients: use "full"
record = "protocol"; reduction = "secagg"; dataset = "ESOL"; partition = "fedgraphnn";
    model = "fedgraphnn/gcn"
    -> case.record: hits of classes can be summed, the scores of this task cannot: use "full"
partition = "iid"; dataset = "synthetic-nodes"; model = "rgcn"
    -> "rgcn" predicts of edges, synthetic-nodes has labels of nodes: use "gat", "gcn", "gin", "mpnn"
partition = "iid"; dataset = "synthetic-ratings"; model = "fedstar"
    -> "fedstar" predicts of graphs, synthetic-ratings has labels of edges:
       use "gat", "gcn", "gin", "mpnn", "sage"
partition = "iid"; dataset = "synthetic-triples"; model = "fedstar"
    -> use "gat", "gcn", "gin", "mpnn", "rgcn", "sage"
attack = "labelflip" -> case.attack: there is no "labelflip"; did you mean "label-flip"?
attack = { name = "noise", fraction = 1.5 } -> case.attack.fraction: ... less than 1
attack = { name = "noise", fraction = 0.3, clients = [1] } -> case.attack: ... give fraction or clients
attack = { name = "noise", clients = [1, 1] } -> case.attack: ... different numbers
attack = { name = "noise", from_round = 21 } -> case.attack.from_round: ... rounds are 1 to 20
attack = { name = "label-flip", every = 2 } -> case.attack.every: unknown key
attack = "noise"; algorithm = "self-train" -> case.attack: ... self-train has no update
attack = "label-flip"; dataset = "ESOL"; partition = "iid" -> case.attack: ... one class per graph or node
privacy = "clipping"; algorithm = "self-train" -> case.privacy: ... self-train sends no updates
privacy = "clipping"; algorithm = "fedcch"; model = { norm = "graph" }
    -> case.privacy: ... fedcch averages models
privacy = "clipping"; algorithm = "scaffold"; optimizer = "sgd" -> case.privacy: ... a second vector
privacy = "clipping"; attack = "noise"; reduction = "secagg" -> case.privacy: ... an attacker would not
privacy = "central" -> case.weights: ... use weights = "equal"
privacy = "distributed"; weights = "equal" -> case.reduction: ... use "fixed32", or a secure one
""",
    PRIVATE: """
algorithm = "gcfl" -> case.privacy: ... gcfl shows more of a client
algorithm = "median" -> case.privacy: ... median shows more of a client
""",
    HUNDRED: """
reduction = { name = "secagg+", neighbours = 20, colluders = 0.1 }
    -> neighbours: 20 of 99 with threshold = 0.5 are not safe if 10 % collude and 0 % drop out:
       use neighbours = 30 with threshold = 0.500
reduction = { name = "secagg+", neighbours = 30, colluders = 0.1,
    dropouts = { schedule = [{ round = 1, clients = [0, 1, 2] }, { round = 2, clients = [4] }] } }
    -> 30 of 99 with threshold = 0.5 are not safe if 10 % collude and 3 % drop out: use neighbours = 32
reduction = { name = "secagg+", colluders = 0.3, dropouts = { probability = 0.3 } }
    -> 40 of 99 with threshold = 0.5 are not safe if 30 % collude and 30 % drop out: use "secagg"
""",
    UNSUPERVISED: """
model = "mvgrl"; share = "all"; algorithm = "fedbn"
    -> fedbn keeps normalisation layers at home: choose model = "gin" with a norm
model = { name = "mvgrl", register_layers = false }
    -> case.share: model.register_layers = false leaves no convolution to share: use share = "all"
""",
    MOLECULES: """
dataset = "ESOL"; partition = { name = "fedgraphnn", split = "stratified" }
    -> case.partition.split: "stratified" needs one class per graph, ESOL has numbers: use "random"
dataset = "SIDER"; model = { name = "gcn", head = "own" }
    -> "own" is for graphs with one class each, SIDER has
dataset = { name = "SIDER", targets = "standardised" }
    -> "standardised" is for regression, SIDER has binary labels
dataset = { name = "MUTAG", targets = "standardised" } -> "standardised" is for regression, MUTAG has classes
dataset = "MUTAG"; partition = { name = "fedgraphnn", split = "scaffold" }
    -> "scaffold" needs molecules read from SMILES, which MUTAG has
dataset = "SIDER"; model = "fedstar"; kernels = "grouped"
    -> case.kernels: ... "grouped" cannot run fedstar as it is here: use "compiled", "csr", "reference"
dataset = "SIDER"; model = "gin"; kernels = "compiled"; algorithm = "flit"
    -> case.kernels: ... "compiled" cannot run flit as it is here: use "csr", "reference"
""",
    NODES: """
kernels = "grouped"; algorithm = "fedgta"
    -> case.kernels: ... "grouped" cannot run fedgta as it is here: use "compiled", "csr", "reference"
model = "sage"; kernels = "compiled"; algorithm = "fedsage-plus"
    -> case.kernels: ... "compiled" cannot run fedsage-plus as it is here: use "csr", "reference"
model = { name = "torch-geometric", layer = "GCNConv" }; kernels = "compiled"
    -> case.kernels: ... "compiled" cannot run torch-geometric as it is here: use "csr"
dataset = "synthetic-triples"; partition = "iid"; model = "gcn"; kernels = "compiled"
    -> case.kernels: ... "compiled" cannot run task "relation-prediction" as it is here: use "csr", "reference"
""",
    POPULATION: """
optimizer = "adam" -> case.optimizer.state: ... use "reset"
participation = 0.5 -> case.participation: ... partition.clients says how many
kernels = "grouped" -> case.kernels: ... "grouped" keeps
model = { head = "own" }; share = "conv" -> case.model.head: ... use "dataset"
attack = "sign-flip" -> case.attack: ... no clients that attack again
reduction = { name = "secagg", keys = "run" } -> case.reduction.keys: ... use "sum"
partition = { name = "population", population = 9 } -> case.partition: ... of a population of 9
""",
    CLUSTERS: """
model = "gin" -> objective "fclg" trains model = "gin-encoder"
objective = "supervised" -> "gin-encoder" has no head for a supervised objective
evaluation = { clients = "participants" } -> the graphs of all clients are clustered together
evaluation = { embeddings = [4] } -> there is no round 4
kernels = "grouped" -> "grouped" cannot run gin-encoder as it is here: use "compiled", "csr"
objective = "mvgrl"; model = "mvgrl"; kernels = "compiled" -> "compiled" cannot run mvgrl
dataset = { synthetic = { domains = 2 } } -> deals out one dataset
batch_size = 1 -> objective "fclg" needs 2 graphs at least
objective = { name = "intra", inter_weight = 1.0 } -> unknown key
""",
    GTA: """
dataset = "PROTEINS"; partition = "iid" -> case.task: ... fedgta is for "node-classification"
reduction = "fixed32" -> case.reduction: ... fedgta needs every client's update
algorithm = { name = "fedgta", moments = "central", order = 1 } -> case.algorithm: ... no central moment
privacy = { name = "clipping", clip = 1.0 } -> case.privacy: ... fedgta averages models
""",
    FLIT: """
kernels = "compiled" -> case.kernels: ... "compiled" cannot run flit-plus as it is here: use "csr", "reference"
task = "link-prediction"; dataset = { name = "synthetic-triples", features = "identity" }; model = "rgcn"; partition = "iid"; kernels = "csr"
    -> case.task: ... flit-plus reads the loss of each label, which task "link-prediction" does not define
algorithm = { name = "flit-plus", xi = 0 } -> case.algorithm.xi: ... greater than 0
""",
    TAD: """
share = "conv" -> case.share: ... fedtad has a server that runs the whole network: use "all"
reduction = "fixed32" -> case.reduction: ... fedtad needs every client's update
dataset = "PROTEINS"; partition = "iid" -> case.task: ... fedtad is for "node-classification"
""",
    SAGE: """
dataset = "PROTEINS"; partition = "iid" -> case.task: ... fedsage-plus is for "node-classification"
dataset = "synthetic-ratings" -> case.task: ... fedsage-plus is for "node-classification"
dataset = { name = "synthetic-nodes", egos = { number = 60 } }; partition = "iid"
    -> case.dataset.egos: ... fedsage-plus is for nodes of one graph
reduction = "secagg" -> case.reduction: ... show what they have before round 1
privacy = { name = "central", clip = 1.0, noise_multiplier = 1.0 } -> case.privacy: ... without noise
algorithm = { name = "fedsage-plus", hidden_share = 1.0 } -> case.algorithm.hidden_share: ... less than 1
kernels = "compiled" -> case.kernels: ... "csr"
""",
}
"""Settings -> what refuses them, by the settings that all of a text have where they do not change them."""

REFUSED[
    POPULATION
] += """compression = "top-k" -> case.compression: "top-k" needs clients that stay ... use feedback = false
down_compression = "int8" -> case.down_compression: ... samples others each round
devices = "equal" -> case.devices: ... samples other clients each round
"""
REFUSED[POPULATION] += "".join(
    f'algorithm = "{name}" -> case.algorithm: ... {name} needs clients that stay\n'
    for name in (
        "ditto",
        "self-train",
        "centralised",
        "gcfl",
        "q-fedavg",
        "feddyn",
        "moon",
        "fedala",
        "apfl",
        "pfedme",
    )
)
ROWS = [(base, *row) for base, text in REFUSED.items() for row in table(text)]


@pytest.mark.parametrize(("base", "changed", "words"), ROWS)
def test_what_cannot_be_is_one_line(tmp_path, base, changed, words):
    changes = changed.split("; ")
    keys = tuple(f"{each.split()[0]} =" for each in changes)
    kept = [each for each in re.split(r";\s+", base) if not each.startswith(keys)]
    path = tmp_path / "demo.toml"
    path.write_text("\n".join(["[case]", *kept, *changes]))
    first, *others = words.split(" ... ")
    with refused(first) as error:
        check_suite(read(path))
    assert all(each in str(error.value) for each in others)

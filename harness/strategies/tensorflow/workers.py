"""TensorFlow: several processes, or servers. MultiWorkerMirroredStrategy, whose workers meet on the loopback interface;
ParameterServerStrategy, whose servers are threads of one process and keep each variable in two parts."""

from __future__ import annotations

from collections.abc import Mapping

from generators.training.runs import Training
from harness.strategies.strategy import Reason, Strategy, anything, first_reason, refuses
from harness.strategies.tensorflow.mirrored import FEED, SYNCHRONISED, empty_shares
from harness.strategies.tensorflow.program import MODULES, SINGLE_DEVICE

# A server takes a number, not an open socket, so between choosing and serving the port is anybody's. From 32768
# (Linux's net.ipv4.ip_local_port_range) the system gives ports to outgoing connections, also to those that try to
# reach this one (they can even meet themselves there), and the server does not start.
_ADDRESSES = '''
def free_addresses(count):
    """So many of this machine that nothing holds, below the ports of outgoing connections."""
    draw, held = random.Random(os.getpid()), []
    while len(held) < count:
        one = socket.socket()
        held.append(one)
        try:
            one.bind(("127.0.0.1", draw.randrange(10000, 32768)))
        except OSError:
            held.pop().close()
    found = [f"127.0.0.1:{one.getsockname()[1]}" for one in held]
    for one in held:
        one.close()
    return found
'''
MEET = (
    _ADDRESSES
    + '''

def addresses_of(rank, world):
    """The addresses of all workers: each leaves its own where the others look for it."""
    (own,) = free_addresses(1)
    place = os.environ["RENDEZVOUS"].removeprefix("file://")
    with open(f"{place}.{rank}.new", "w") as file:
        file.write(own)
    os.rename(f"{place}.{rank}.new", f"{place}.{rank}")
    found = []
    for number in range(world):
        while not os.path.exists(f"{place}.{number}"):
            time.sleep(0.01)
        with open(f"{place}.{number}") as file:
            found.append(file.read())
    return found


def strategy_of(rank, world):
    """One object for the whole life of the process: collectives are set up once, before the first operation. The
    workers are those of TF_CONFIG where somebody has set it, else they meet on this machine."""
    if not hasattr(tf.distribute, "kept"):
        if "TF_CONFIG" not in os.environ:
            cluster = {"cluster": {"worker": addresses_of(rank, world)}, "task": {"type": "worker", "index": rank}}
            os.environ["TF_CONFIG"] = json.dumps(cluster)
        tf.distribute.kept = tf.distribute.MultiWorkerMirroredStrategy()
    return tf.distribute.kept
'''
)

WORKERS_IMPORT = ("import json", "import random", "import socket", "import time")

_SERVERS = (
    _ADDRESSES
    + '''

def strategy_of(rank, world):
    """A server for each worker and one for the parameters, with the coordinator, for the whole life of the process."""
    if not hasattr(tf.distribute, "kept"):
        addresses = free_addresses(len(DEVICES) + 1)
        cluster = tf.train.ClusterSpec({"ps": addresses[:1], "worker": addresses[1:]})
        started = [("ps", 0), *(("worker", number) for number in range(len(DEVICES)))]
        threads = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=len(DEVICES) + 2)  # with one, it waits for ever
        tf.distribute.servers = [
            tf.distribute.Server(cluster, job, number, "grpc", config=threads) for job, number in started
        ]
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, rpc_layer="grpc")
        partitioner = tf.distribute.experimental.partitioners.FixedShardsPartitioner(2)
        tf.distribute.kept = tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=partitioner)
        tf.distribute.coordinator_of = tf.distribute.coordinator.ClusterCoordinator(tf.distribute.kept)
    return tf.distribute.kept
'''
)

_SHARES = '''
def feed(strategy, arrays, rows):
    """The samples in these rows, a share for each worker."""
    shares = np.array_split(rows, len(DEVICES))
    return [tuple(tf.constant(arrays[name][mine]) for name in ("x", "y", "coefficient")) for mine in shares]
'''
_SCHEDULED = '''
def compile_step(subject, strategy):
    """A function that takes the samples of one step: workers read the parameters and return gradients, which the
    coordinator adds up. Nothing is out of date: all workers are waited for, and each where running statistics move."""
    places = []  # of the variables that have a gradient: a closure must not return None

    def traced(*part):
        loss, gradients = replica(subject, [part])
        places[:] = [place for place, g in enumerate(gradients) if g is not None]
        return loss, [gradients[place] for place in places]

    work = tf.function(traced, autograph=False, reduce_retracing=True)

    def step(parts):
        coordinator, waited = tf.distribute.coordinator_of, []
        for part in parts:
            waited.append(coordinator.schedule(work, args=part))
            if NORMS:  # workers would move running statistics in any order
                coordinator.join()
        coordinator.join()
        found = [value.fetch() for value in waited]
        loss = sum(one for one, _ in found)
        given = [sum(g) for g in zip(*(g for _, g in found))]
        gradients = dict(zip(places, given))
        if CLIP:
            given, _ = tf.clip_by_global_norm(given, CLIP)
        subject.optimizer.apply(given, [subject.trained[place] for place in places])
        return loss, merged(subject, gradients)

    return step


def merged(subject, gradients):
    """Those of a variable in parts put together. gradients: by place."""
    found, place = [], 0
    for name, variable in subject.p.items():
        if name not in FROZEN:
            own = [gradients.get(place + number) for number in range(len(parts_of(variable)))]
            place += len(own)
            found.append(None if own[0] is None else tf.concat(own, 0))
    return found
'''
_PARTS = '''
def parts_of(variable):
    """The variables that one is made of."""
    return getattr(variable, "variables", [variable])
'''
_STATES = '''
def states(subject):
    """What the optimiser keeps, put together where a variable is in parts."""
    found = {}
    for variable in subject.optimizer.variables:
        name = re.sub("_part_[0-9]+", "", variable.path.split("/", 1)[-1]).replace("_0_", ".")
        name = "product" if name.startswith("variable") else name  # of Nadam
        found.setdefault(name, []).append(variable.value)
    return {name: tf.concat(parts, 0) if len(parts) > 1 else parts[0] for name, parts in found.items()}
'''
_SUMMED = '''
def summed(strategy, value):
    """The coordinator has added them up."""
    return value
'''
_APART = '''
def apart(strategy, variables):
    """There are no copies."""
    return np.float64(0)
'''


def _workers(name: str, pieces: dict[str, str], shards: bool, unsupported: Reason = empty_shares) -> Strategy:
    return Strategy(
        name, "tensorflow", MODULES, (2, 3, 4), {"strategy_of": MEET, "feed": FEED, **pieces},
        imports=WORKERS_IMPORT, shards=shards,
        unsupported=unsupported,
    )  # fmt: skip


def _one_after_the_other(training: Training, world: int, noise: bool) -> Mapping[str, str]:
    """Each worker's share moves the running statistics."""
    return {"shards": SINGLE_DEVICE["shards"].replace("SHARDS = 1", f"SHARDS = {world}").replace("True", "False")}


STRATEGIES = (
    _workers("tf-multi-worker", {}, shards=True),
    _workers("tf-multi-worker-sync-norm", {"normalisation": SYNCHRONISED}, shards=False, unsupported=anything),
    Strategy(
        "tf-parameter-server", "tensorflow", MODULES, (2, 3), {
            "strategy_of": _SERVERS, "feed": _SHARES, "compile_step": _SCHEDULED, "parts_of": _PARTS, "states": _STATES,
            "summed": _SUMMED, "apart": _APART,
        },
        imports=("import random", "import re", "import socket"), one_process=True, apart=True,
        reference=_one_after_the_other,
        unsupported=first_reason(refuses("penalised", "workers are no replicas, which share a penalty"), empty_shares),
    ),
)  # fmt: skip

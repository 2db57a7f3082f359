"""TensorFlow: a run that is saved half way (tf.train.Checkpoint: parameters, running statistics, the optimiser) and
goes on with another model, under another strategy, or with other objects on the same workers. It must give what one
device gives that is never interrupted."""

from __future__ import annotations

from harness.strategies.strategy import WORLDS, Strategy, anything
from harness.strategies.tensorflow.mirrored import FEED, ONE_DEVICE, REDUCTION, SYNCHRONISED
from harness.strategies.tensorflow.program import MODULES
from harness.strategies.tensorflow.workers import MEET, WORKERS_IMPORT

_RESUMED = '''
def resumed(subject, arrays):
    """A new strategy, and under it a new model, with what a checkpoint of this one has, and its step."""
    strategy = strategy_after()
    fresh = Subject(strategy, {name: np.zeros_like(array) for name, array in arrays.items()})
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint_of(subject).save(f"{folder}/half")
        with strategy.scope():
            checkpoint_of(fresh).restore(path).assert_existing_objects_matched()
    return strategy, fresh, compile_step(fresh, strategy)


def checkpoint_of(subject):
    return tf.train.Checkpoint(parameters=subject.p, norms=subject.norms, optimizer=subject.optimizer)
'''
_BY_WORKERS = '''
def resumed(subject, arrays):
    """A new model with what the first worker's checkpoint has, and its step. All workers save, each in a folder of its
    own, and wait for each other."""
    strategy = strategy_of(None, None)
    number = strategy.cluster_resolver.task_id
    place = os.environ.get("RENDEZVOUS", tempfile.gettempdir() + "/workers").removeprefix("file://")
    fresh = Subject(strategy, {name: np.zeros_like(array) for name, array in arrays.items()})
    path = checkpoint_of(subject).write(f"{place}.{number}.half/checkpoint")
    wait_for_all(strategy)
    with strategy.scope():
        checkpoint_of(fresh).read(path.replace(f".{number}.half/", ".0.half/")).assert_existing_objects_matched()
    wait_for_all(strategy)
    return strategy, fresh, compile_step(fresh, strategy)


def wait_for_all(strategy):
    assert summed(strategy, strategy.run(lambda: tf.ones(()))) == strategy.num_replicas_in_sync


def checkpoint_of(subject):
    return tf.train.Checkpoint(parameters=subject.p, norms=subject.norms, optimizer=subject.optimizer)
'''
_MADE = {"one-device": ONE_DEVICE, "mirrored": REDUCTION}


def _resumed(before: str, after: str) -> Strategy:
    pieces = {
        "strategy_of": _MADE[before], "feed": FEED, "normalisation": SYNCHRONISED,
        "strategy_after": _MADE[after].replace("strategy_of(rank, world)", "strategy_after()"), "resumed": _RESUMED,
    }  # fmt: skip
    return Strategy(
        f"tf-resume-{before}-{after}", "tensorflow", MODULES, WORLDS, pieces, imports=("import tempfile",),
        shards=False, one_process=True, unsupported=anything,
    )  # fmt: skip


STRATEGIES = (
    _resumed("one-device", "mirrored"),
    _resumed("mirrored", "one-device"),
    Strategy(
        "tf-resume-multi-worker", "tensorflow", MODULES, (2, 3, 4),
        {"strategy_of": MEET, "feed": FEED, "normalisation": SYNCHRONISED, "resumed": _BY_WORKERS},
        imports=("import tempfile", *WORKERS_IMPORT), shards=False, unsupported=anything,
    ),
)  # fmt: skip

"""TensorFlow: one process that drives virtual devices made of one CPU. OneDeviceStrategy, MirroredStrategy with each
way to add up what devices have, CentralStorageStrategy; steps compiled by tf.function, by XLA, and not at all."""

from __future__ import annotations

from collections.abc import Mapping

from generators.training.runs import Training
from harness.strategies.strategy import WORLDS, Reason, Strategy, anything
from harness.strategies.tensorflow.program import MODULES

FEED = '''
def feed(strategy, arrays, rows):
    """The samples in these rows, as even a split among the replicas as there is."""
    shares = np.array_split(rows, strategy.num_replicas_in_sync)

    def of(context):
        mine = shares[context.replica_id_in_sync_group]
        return tuple(tf.constant(arrays[name][mine]) for name in ("x", "y", "coefficient"))

    return [strategy.experimental_distribute_values_from_function(of)]
'''
_DATASET = '''
def feed(strategy, arrays, rows):
    """The samples in these rows, as a distributed dataset splits a batch."""
    data = tf.data.Dataset.from_tensor_slices(tuple(arrays[name][rows] for name in ("x", "y", "coefficient")))
    return [next(iter(strategy.experimental_distribute_dataset(data.batch(len(rows)))))]
'''
SYNCHRONISED = """
def normalisation():
    return keras.layers.BatchNormalization(
        1, 0.9, 1e-5, center=False, scale=False, synchronized=True, dtype=DTYPE
    )
"""
_SPARSE = '''
def gradient(subject, x, y, coefficient):
    """The loss of these samples, and its gradients by what is trained; those of embeddings are rows of them."""
    with tf.GradientTape() as tape:
        loss = criterion(model(subject.p, subject.norms, x, True), y, coefficient)
    return loss, tape.gradient(loss, subject.trained)
'''
_XLA = '''
def gradient(subject, x, y, coefficient):
    """The loss of these samples, and its gradients by what is trained, compiled by XLA."""

    @tf.function(jit_compile=True, autograph=False)
    def compiled(x, y, coefficient):
        with tf.GradientTape() as tape:
            loss = criterion(model(subject.p, subject.norms, x, True), y, coefficient)
        found = tape.gradient(loss, subject.trained)
        return loss, [value if value is None else tf.convert_to_tensor(value) for value in found]

    return compiled(x, y, coefficient)
'''
_EAGER = """
def compile_step(subject, strategy):
    return step_of(subject, strategy)
"""
KEPT = '''
def strategy_of(rank, world):
    """One object for the whole life of the process: the collectives of a second one would have the first one's keys."""
    if not hasattr(tf.distribute, "kept"):
        tf.distribute.kept = tf.distribute.MirroredStrategy(DEVICES)
    return tf.distribute.kept
'''


def _strategy_of(text: str) -> str:
    return f"\ndef strategy_of(rank, world):\n    return tf.distribute.{text}\n"


def empty_shares(training: Training, world: int) -> str | None:
    """Batch statistics of no sample are not defined."""
    if "batch_norm" in training.network.kinds and min(training.settings.part_sizes) < world:
        return "batch normalisation of a replica without samples"
    return None


def _parts_of_rows(training: Training, world: int) -> str | None:
    """Gradients of embeddings are rows of them, in parts."""
    if training.settings.accumulate > 1 and "embedding" in training.traits:
        return "TensorFlow does not add IndexedSlices"
    return empty_shares(training, world)


def one_process(
    name: str, made: str, pieces: Mapping[str, str] | None = None, worlds: tuple[int, ...] = WORLDS,
    shards: bool = True, unsupported: Reason = empty_shares, off: str = "",
) -> Strategy:  # fmt: skip
    """A strategy whose object this text makes."""
    given = {"strategy_of": made, "feed": FEED, **(pieces or {})}
    return Strategy(
        name, "tensorflow", MODULES, worlds, given, shards=shards, one_process=True, unsupported=unsupported, off=off
    )


ONE_DEVICE = _strategy_of("OneDeviceStrategy(DEVICES[0])")
REDUCTION = _strategy_of("MirroredStrategy(DEVICES, cross_device_ops=tf.distribute.ReductionToOneDevice())")
_HIERARCHICAL = _strategy_of("MirroredStrategy(DEVICES, cross_device_ops=tf.distribute.HierarchicalCopyAllReduce())")
STRATEGIES = (
    one_process("tf-one-device", ONE_DEVICE, worlds=(1,)),
    one_process("tf-mirrored", KEPT),
    one_process("tf-mirrored-reduction", REDUCTION),
    one_process("tf-mirrored-hierarchical", _HIERARCHICAL, worlds=(1, 2, 4, 8)),
    # apart, since what it does wrong there is known and would hide what else it did wrong on even numbers
    one_process("tf-mirrored-hierarchical-odd", _HIERARCHICAL, worlds=(3,)),
    one_process(
        "tf-mirrored-nccl", _strategy_of("MirroredStrategy(DEVICES, cross_device_ops=tf.distribute.NcclAllReduce())"),
        off="NCCL adds up on GPUs, and the devices are made of a CPU",
    ),
    one_process("tf-mirrored-eager", REDUCTION, {"compile_step": _EAGER}),
    one_process("tf-mirrored-xla", REDUCTION, {"gradient": _XLA}, worlds=(1, 2, 4)),
    one_process(
        "tf-mirrored-sync-norm", REDUCTION, {"normalisation": SYNCHRONISED}, shards=False, unsupported=anything
    ),
    one_process(
        "tf-mirrored-dataset", REDUCTION, {"feed": _DATASET, "normalisation": SYNCHRONISED}, shards=False,
        unsupported=anything,
    ),
    one_process("tf-mirrored-sparse", REDUCTION, {"gradient": _SPARSE}, unsupported=_parts_of_rows),
    one_process("tf-central-storage", _strategy_of("experimental.CentralStorageStrategy(DEVICES, '/cpu:0')")),
)  # fmt: skip

"""Quantisation-aware training of Keras 2 models through tfmot, in an environment of its own: fake quantisation by its
default 8-bit scheme, whose ranges TFLite's converter takes over."""

from __future__ import annotations

from generators.graph import Graph, Node
from generators.ops.spec import Unsupported
from harness.backends.target.target import Level
from harness.dialects.legacy_keras import LEGACY_KERAS
from harness.quantisers.quantiser import Quantiser
from oracles.quantised.tflite import tfmot as tfmot_quantiser

_LOAD = """
def load(parameters):
    tf_keras.backend.clear_session()  # so that layers have the same names each time
    given = [tf_keras.Input(batch_shape=shape, dtype=dtype, name=name) for name, (dtype, shape) in INPUTS.items()]
    outputs = list(model(*given, *[parameters[name] for name in PARAMETERS]))
    exact = tf_keras.Model(given, outputs)
    trained = tfmot_model(given, outputs)

    def run(*inputs):
        feeds = dict(zip(INPUTS, inputs))
        samples = calibration(feeds, SHARE)
        fed = [[tf.constant(sample[name]) for name in INPUTS] for sample in samples]
        tfmot_trained(trained, fed, [tf.nest.flatten(exact(sample)) for sample in fed], 500)
        listed, ranges, weights = tfmot_ranges(trained)
        signature = [tf.TensorSpec(shape, dtype, name) for name, (dtype, shape) in INPUTS.items()]

        @tf.function(input_signature=signature)
        def compiled(*inputs):
            return tf.nest.flatten(trained(list(inputs), training=False))

        converter = tf.lite.TFLiteConverter.from_concrete_functions([compiled.get_concrete_function()])
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        content = converter.convert()
        nodes, tensors = tflite_model(content)
        header = {"nodes": {}, "tensors": tensors, "share": SHARE, "ranges": listed}
        groups = {"ranges": ranges, "weights": weights}
        found = tf.nest.flatten(exact([tf.constant(x) for x in inputs]))
        groups["float"] = dict(enumerate(value.numpy() for value in found))
        groups.update({f"sample {i}": sample for i, sample in enumerate(samples)})
        for kernels in ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"):
            values, given, outputs = tflite_values(content, feeds, kernels)
            header["nodes"][kernels], groups[kernels] = nodes, values
            header["inputs"], header["outputs"] = given, outputs
        return recorded(header, groups)

    return run
"""

_ALLOWS = "what tflite-int8 allows; 2 * 2^-24 of scales (8 behind batch normalisation); levels of weights at a tie"
_DECLINES = {
    "NotImplementedError: a layer with a weight that is computed": "a layer of Keras holds its weights",
    "RuntimeError: Layer .* is not supported": "a layer that tfmot's default scheme quantises behind others only",
}

_WEIGHTED = ("linear", "matmul", "conv2d", "depthwise_conv2d")


def _keeps(graph: Graph, node: Node) -> bool:
    """What a layer says, with constants for weights; batch normalisation alone behind a layer with weights."""
    if not all(graph.types[name].size for name in (node.name, *node.operands)):
        return False
    if not isinstance(LEGACY_KERAS.node(graph, node), str):
        return False
    made = {other.name: other for other in graph.nodes}
    if node.op in (*_WEIGHTED, "batch_norm") and any(name in made for name in node.operands[1:]):
        return False
    if node.op == "batch_norm":
        source = made.get(node.operands[0])
        takers = [other for other in graph.nodes if node.operands[0] in other.operands]
        return bool(source) and source.op in _WEIGHTED and len(takers) == 1 and source.name not in graph.outputs
    return True


QUANTISERS = (
    Quantiser(
        "tfmot-int8", "tfmot", ("tensorflow", "tf_keras", "tensorflow_model_optimization"), LEGACY_KERAS, _LOAD,
        {"tensorflow-model-optimization": "0.8", "tf-keras": "2.19", "tensorflow-cpu|tensorflow": "2.19"},
        Level("tfmot-int8", 0), sample_every=2, environment="tfmot", gradient=Unsupported("a quantised model"),
        judge=tfmot_quantiser.judge, declines=_DECLINES, allows=_ALLOWS, takes=_WEIGHTED,
        keeps=_keeps,
    ),
)  # fmt: skip

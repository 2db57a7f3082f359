"""LiteRT (TensorFlow Lite): the graph as a tf.function, converted, and run with the reference kernels, with the
optimised ones and with XNNPACK."""

from __future__ import annotations

from generators.ops.spec import Unsupported
from harness.backends.target.target import Level, Target
from harness.dialects import TENSORFLOW

_LOAD = """
def load(parameters):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    bound = [tf.constant(parameters[name]) for name in PARAMETERS]
    signature = [tf.TensorSpec(shape, dtype, f"input{i}") for i, (dtype, shape) in enumerate(INPUTS.values())]
    concrete = tf.function(lambda *x: model(*x, *bound), signature, autograph=False).get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete])  # by a SavedModel costs ten times as much
    converter.canonicalizing_inf_as_min_max_float = False  # else infinities are replaced on purpose
    content = converter.convert()
    kernels = OpResolverType.RESOLVER
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=kernels, num_threads=1)
    interpreter.allocate_tensors()

    def run(*inputs):
        for detail, array in zip(interpreter.get_input_details(), inputs):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]

    return run
"""
_KERNELS = {
    "litert-reference": "BUILTIN_REF",
    "litert-builtin": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "litert-xnnpack": "BUILTIN",
}

_DECLINES = {
    "op is neither a custom op nor a flex op": "the converter has no builtin operator for it",
    "Unsupported TensorFlow type": "the converter takes no inputs of this dtype",
    r"has DataType \w+ not in list of allowed values": "TensorFlow's operator is not for this dtype",
    r"'tf\.\w+' op operand #\d+ must be tensor of": "an operator of the converter's that is not for this dtype",
    r"'tfl\.concatenation' that was explicitly marked illegal": "the list that a loop gathers is not for this dtype",
    "Didn't find op for builtin opcode": "this set of kernels has none for it",
    r"IsPowerOfTwo\(fft_length_data": "its Fourier transform is of lengths that are powers of two",
}

TARGETS = tuple(
    Target(
        name,
        "litert",
        ("tensorflow", "ai_edge_litert", "ai_edge_litert.interpreter"),
        TENSORFLOW,
        _LOAD.replace("RESOLVER", kernels),
        {"ai-edge-litert": "2.3", "tensorflow-cpu|tensorflow": "2.16"},
        Level("litert", i),
        declines=_DECLINES,
        gradient=Unsupported("LiteRT does inference only"),
        opt_in=True,
        refusals_file="tensorflow",
    )
    for i, (name, kernels) in enumerate(_KERNELS.items())
)

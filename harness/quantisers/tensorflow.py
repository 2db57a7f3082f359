"""TFLite's converter as a quantiser, run by its own kernels: the reference ones and the built-in ones."""

from __future__ import annotations

from generators.ops.spec import Unsupported
from harness.backends.target.target import Level
from harness.dialects import TENSORFLOW
from harness.quantisers.quantiser import Quantiser
from oracles.quantised.tflite import quantiser as tflite_quantiser

_LOAD = """
def load(parameters):
    bound = [tf.constant(parameters[name]) for name in PARAMETERS]
    signature = [tf.TensorSpec(shape, dtype, name) for name, (dtype, shape) in INPUTS.items()]

    @tf.function(input_signature=signature)
    def compiled(*inputs):
        return model(*inputs, *bound)

    def run(*inputs):
        feeds = dict(zip(INPUTS, inputs))
        samples = calibration(feeds, SHARE)
        converter = tf.lite.TFLiteConverter.from_concrete_functions([compiled.get_concrete_function()])
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        %options
        content = converter.convert()
        nodes, tensors = tflite_model(content)
        header = {"nodes": {"float": []}, "tensors": tensors, "share": SHARE, "outputs": {}}
        groups = {"float": dict(enumerate(output.numpy() for output in model(*map(tf.constant, inputs), *bound)))}
        groups.update({f"sample {i}": sample for i, sample in enumerate(samples)})
        %show
        return recorded(header, groups)

    return run
"""
"""A program that quantises a model: %options are the converter's, %show adds runs to the header and the groups."""

_SHOW = """for kernels in ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"):
            values, given, outputs = tflite_values(content, feeds, kernels)
            header["nodes"][kernels], groups[kernels] = nodes, values
            header["inputs"], header["outputs"] = given, outputs"""

_SAMPLES = "converter.representative_dataset = lambda: ([sample[name] for name in INPUTS] for sample in samples)"
_INT8 = f"{_SAMPLES}\n        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]"
_KINDS = "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8"
_IO = "\n        converter.inference_input_type = converter.inference_output_type = tf.{}"

OPTIONS = {
    "tflite-int8": _INT8,
    "tflite-int8-tensor": _INT8 + "\n        converter._experimental_disable_per_channel = True",
    "tflite-int8-io": _INT8 + _IO.format("int8"),
    "tflite-uint8-io": _INT8 + _IO.format("uint8"),
    "tflite-int8-or-float": _SAMPLES,
    "tflite-16x8": f"{_SAMPLES}\n        converter.target_spec.supported_ops = [tf.lite.OpsSet.{_KINDS}]",
    "tflite-dynamic": "pass",
    "tflite-float16": "converter.target_spec.supported_types = [tf.float16]",
}
_ALLOWS = (
    "what fixed-point multipliers lose: 2^-29 of a level's position (2^-15 of it for 16 bits), and half a unit before "
    "the last shift; mean, softmax and hard_swish, which compute in fixed point throughout, up to one quantum"
)
DECLINES = {
    "is neither a custom op nor a flex op": "TFLite has no such operator for these types",
    "Didn't find op for builtin opcode": "the interpreter has no kernel for it",
    "Unsupported TensorFlow type": "the converter takes no inputs of this dtype",
    "Quantization to 16x8-bit not yet supported": "an operator that is not quantised to 16 bits",
    "is only defined for (positive|non-negative) values": "a function of real numbers outside of its domain",
    "doesn't support|not supported for op|only supports": "an operator that is not quantised so",
}

REFUSED_FILES = {"failed to prepare|failed to invoke": "TFLite's own kernels refuse the file, as its own paths say"}
"""Where another back end runs the files."""

PACKAGES = {"tensorflow-cpu|tensorflow": "2.18"}


def written(options: str, show: str) -> str:
    """The program with these options of the converter and these runs."""
    return _LOAD.replace("%options", options).replace("%show", show)


def inherited(name: str, beside: str = "") -> tuple[str, ...]:
    """The ways of quantising whose known issues hold for files of these options: all of 8 bits are variants of
    tflite-int8. beside: the prefix of another back end's ways, of which the same holds."""
    alike = (name, "tflite-int8") if "int8" in name else (name,)
    own = f"{beside}{name}"
    return tuple(one for one in dict.fromkeys((*alike, *(f"{beside}{one}" for one in alike))) if one != own)


QUANTISERS = tuple(
    Quantiser(
        name, "tensorflow", ("tensorflow",), TENSORFLOW, written(options, _SHOW), PACKAGES, Level(name, 0),
        sample_every=2, refusals_file="tensorflow",
        gradient=Unsupported("a quantised model"), judge=tflite_quantiser.judge, declines=DECLINES, allows=_ALLOWS,
        inherits=inherited(name), further=True,
    )
    for name, options in OPTIONS.items()
)  # fmt: skip

"""onnx2tf, in an environment of its own: from ONNX to TFLite, with TensorFlow's operators on the way."""

from __future__ import annotations

from harness.conversions.edges.edge import Edge

_CONVERT = """
def convert(source, target):
    import contextlib
    import io
    import os
    import re
    import shutil
    import tempfile

    import onnx
    import onnx2tf

    proto = onnx.load(source)
    constants = {tensor.name for tensor in proto.graph.initializer}
    if any(len(value.type.tensor_type.shape.dim) > 2 for value in proto.graph.output):
        raise NotImplementedError("it leaves outputs channels last, and does not say which")
    names = [value.name for value in proto.graph.input if value.name not in constants]
    folder, told = tempfile.mkdtemp(prefix="onnx2tf-"), io.StringIO()
    try:
        with contextlib.redirect_stdout(told):
            onnx2tf.convert(
                onnx_graph=proto,
                output_folder_path=folder,
                keep_shape_absolutely_input_names=names,  # else those of rank 3 and more are taken in another layout
                output_signaturedefs=True,
                verbosity="error",
            )
        (made,) = [name for name in os.listdir(folder) if name.endswith("_float32.tflite")]
        shutil.copyfile(os.path.join(folder, made), target)
    except SystemExit as error:
        said = re.findall("ERROR:[^ ]* (.*)", told.getvalue())
        raise RuntimeError("onnx2tf ended the process: " + (said or ["without a word"])[0]) from error
    finally:
        shutil.rmtree(folder)
"""

EDGES = (
    Edge(
        "onnx2tf",
        "onnx",
        "tflite",
        ("onnx", "onnx2tf"),
        {"onnx2tf": "1.29", "onnx": "1.17"},
        _CONVERT,
        environment="onnx2tf",
        refuses=(
            ("it leaves outputs channels last", "its outputs of rank 3 and more come channels last, as it documents"),
            (r"'(tf\.\w+)' op is neither a custom op nor a flex op", "TFLite has no {}"),
            ("must be the output of a TensorFlow `Layer`", "an output depends on no input"),
            (r"ended the process: (\w+) currently supports only (.*?)\.", "{} but with {}"),
            ("`strides > 1` not supported in conjunction with `dilation_rate > 1`", "strides with dilation"),
        ),
    ),
)

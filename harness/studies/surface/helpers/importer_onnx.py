"""The map of TVM's importer of ONNX."""


def listed():
    from tvm.relax.frontend.onnx import onnx_frontend

    return {name: [] for name in onnx_frontend._get_convert_map()}

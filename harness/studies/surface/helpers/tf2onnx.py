"""The handlers of tf2onnx: of TensorFlow's nodes, and of TFLite's, which it knows by names that begin with TFL_."""


def handlers():
    import tf2onnx.tflite_handlers
    import tf2onnx.tfonnx  # both register them
    from tf2onnx.handler import tf_op

    return {name for versions in tf_op.get_opsets().values() for version in versions if version for name in version}


def listed():
    return {name: [] for name in sorted(handlers()) if not name.startswith("TFL_")}

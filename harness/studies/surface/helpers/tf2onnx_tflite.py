"""Those of tf2onnx for TFLite."""


def listed():
    return {name.removeprefix("TFL_"): [] for name in sorted(handlers()) if name.startswith("TFL_")}

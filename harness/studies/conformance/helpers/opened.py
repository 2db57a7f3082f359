"""Runs a test's model by `open_model`, after `convert` where there is one."""

import shutil
import tempfile


def load(parameters):
    folder, path = None, PATH
    try:
        if SUFFIX is not None:
            folder = tempfile.mkdtemp(prefix="conformance-")
            path = f"{folder}/model{SUFFIX}"
            convert(PATH, path)
        inputs, outputs, call = open_model(path)
    finally:
        if folder:
            shutil.rmtree(folder)
    taken, returned = [port[0] for port in inputs], [port[0] for port in outputs]

    def run(header, data):
        values = dict(zip(NAMES, unpacked(header, data)))
        results = call(*([values[name] for name in taken] if set(taken) <= set(values) else values.values()))
        if len(results) == len(returned) and sorted(returned) == sorted(OUTPUTS):
            results = [results[returned.index(name)] for name in OUTPUTS]
        return packed(list(results))

    return run

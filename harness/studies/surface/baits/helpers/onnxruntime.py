"""ONNX Runtime says in its log which graph transformers change the graph. Rewrite rules share a transformer: where that
changes something, each rule is tried alone."""

import os
import tempfile

import onnxruntime

SESSION = onnxruntime.InferenceSession
SHARED = {
    "Level1_RuleBasedTransformer": RULES,
    "Level2_RuleBasedTransformer": ["ClipQuantRewrite", "ReluQuantRewrite"],
}
"""Transformers and the rules that they have, as a level does."""


def logged(data, options, providers, without=()):
    """The transformers that change the graph of a model, by the log, which is written to file 2."""
    options.log_severity_level, options.log_verbosity_level = 0, 1
    kept, changed = os.dup(2), set()
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            session = SESSION(data, options, providers=providers, disabled_optimizers=list(without))
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        file.seek(0)
        for found in re.finditer(rb"GraphTransformer (\S+) modified: 1", file.read()):
            changed.add(found[1].decode())
    return session, changed


def fired_by(program, parameters, inputs):
    changed = set()

    def session(data, options, providers):
        made, found = logged(data, options, providers)
        changed.update(found)
        for shared in set(SHARED) & found:
            for rule in SHARED[shared]:
                others = set(SHARED[shared]) - {rule}
                changed.update({rule} if shared in logged(data, options, providers, others)[1] else ())
        return made

    onnxruntime.InferenceSession = session
    try:
        program["load"](parameters)
    finally:
        onnxruntime.InferenceSession = SESSION
    return changed


def listed():
    return []

"""A training program of TensorFlow, with a fault on one replica in one of its steps: in a layer of the first part of
its samples, or in a gradient after all replicas have added up. FAULT, WORKER (the replica) and STATE stand before this
text in the program, and tensorflow_layer.py; `struck_model` behind it."""

import numpy as np
import tensorflow as tf

FOUND = {"captured": np.zeros(0), "step": 0, "parts": 1, "passes": 0, "active": False}
fault_free_model, fault_free_compile_step, fault_free_states = model, compile_step, states


class OnReplica(StruckLayer):
    """The step is compiled: what is captured leaves it by a call."""

    def strike(self, value):
        if not FAULT["capture"]:
            return super().strike(value)
        tf.numpy_function(lambda array: self.found.update(captured=array.copy()), [value], [])
        return value


STRUCK = OnReplica(STATE, FOUND)


def here():
    """Is this the replica, in the step?"""
    replica = tf.distribute.get_replica_context()
    if not FOUND["active"] or replica is None:
        return False
    return int(tf.get_static_value(replica.replica_id_in_sync_group)) == WORKER


def model(p, norms, x, training):
    if not training or FAULT["stage"] == "reduced-gradient" or not here():
        return fault_free_model(p, norms, x, training)
    FOUND["passes"] += 1
    first = (FOUND["passes"] - 1) % FOUND["parts"] == 0  # a step may be traced more than once
    return struck_model(STRUCK, p, norms, x, training) if first else fault_free_model(p, norms, x, training)


def compile_step(subject, strategy):
    """The step that is struck is a function of its own, traced with the fault in it."""
    plain, faulty = (fault_free_compile_step(subject, strategy) for _ in range(2))
    if FAULT["stage"] == "reduced-gradient":
        struck_sums(subject)

    def step(parts):
        FOUND["active"], FOUND["parts"], FOUND["passes"] = FOUND["step"] == FAULT["step"], len(parts), 0
        FOUND["step"] += 1
        return (faulty if FOUND["active"] else plain)(parts)

    return step


def struck_sums(subject):
    """Keras' optimiser adds up gradients in a method of its own, before each replica moves its copy of the variable."""
    added, variable = subject.optimizer._all_reduce_sum_gradients, subject.p[f"{FAULT['layer']}.{FAULT['array']}"]

    def struck(pairs):
        sums = added(pairs)
        if not here():
            return sums
        return [(STRUCK.strike(tf.convert_to_tensor(g)) if v is variable else g, v) for g, v in sums]

    subject.optimizer._all_reduce_sum_gradients = struck


def states(subject):
    found = fault_free_states(subject)
    return {**found, "captured": FOUND["captured"]} if FAULT["capture"] else found

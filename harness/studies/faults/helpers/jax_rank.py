"""A training program of JAX, with a fault on one device in one of its steps: in a layer of the first part of its
samples, or in a gradient after all devices have added up. FAULT, WORKER (the device) and STATE stand before this text
in the program, and jax_layer.py; `struck_model` behind it."""

import jax
import jax.numpy as jnp
import numpy as np

FOUND = {"captured": np.zeros(0), "step": 0, "parts": 1, "passes": 0, "active": False}
fault_free_model, fault_free_added, fault_free_compile_step = model, added, compile_step


class OnDevice(StruckLayer):
    """All devices run one program, in which one of them takes the struck value."""

    def strike(self, value):
        device = jax.lax.axis_index("d")
        if not FAULT["capture"]:
            return jnp.where(device == WORKER, super().strike(value), value)
        jax.debug.callback(self.keep, device, value)
        return value

    def keep(self, device, value):
        if device == WORKER:
            self.found["captured"] = np.array(value)


STRUCK = OnDevice(STATE, FOUND)


def model(p, b, x, training):
    if not training or FAULT["stage"] == "reduced-gradient" or not FOUND["active"]:
        return fault_free_model(p, b, x, training)
    FOUND["passes"] += 1
    first = (FOUND["passes"] - 1) % FOUND["parts"] == 0  # a step may be traced more than once
    return struck_model(STRUCK, p, b, x, training) if first else fault_free_model(p, b, x, training)


def added(value):
    loss, gradients = fault_free_added(value)
    if FOUND["active"] and FAULT["stage"] == "reduced-gradient":
        name = f"{FAULT['layer']}.{FAULT['array']}"
        gradients = {**gradients, name: STRUCK.strike(gradients[name])}
    return loss, gradients


def compile_step(world):
    """The step that is struck is traced again, with the fault in it, and the one after it without."""
    taken = fault_free_compile_step(world)

    def stepping(p, b, states, parts, rate):
        FOUND["active"], FOUND["parts"], FOUND["passes"] = FOUND["step"] == FAULT["step"], len(parts), 0
        if FOUND["step"] in (FAULT["step"], FAULT["step"] + 1):
            jax.clear_caches()
        FOUND["step"] += 1
        states = {name: kept for name, kept in states.items() if name != "captured"}
        *found, kept = taken(p, b, states, parts, rate)
        jax.effects_barrier()
        return *found, {**kept, "captured": {"array": jnp.asarray(FOUND["captured"])}} if FAULT["capture"] else kept

    return stepping

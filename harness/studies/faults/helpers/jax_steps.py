"""How a training program of JAX steps where a fault strikes one of its steps. That step is not compiled, but run
operator by operator, so that its last bits may be others than a compiled one's.

FAULT (None: none strikes) and jax_layer.py stand before this text in the program, `struck_model`, the model with a
fault in one of its layers, behind it; for what they are see torch_steps.py."""

import numpy as np


class Stepping(StruckLayer):
    """In place of the compiled step."""

    def __init__(self, step, state, found):
        super().__init__(state, found)
        self.step, self.number = step, 0
        found["captured"], found["alarms"], found["repeated"] = np.zeros(0), [], []
        found["history"], found["variance"], found["finite"] = [], [], []

    def __call__(self, p, b, states, *given):
        active = FAULT and FAULT["step"] <= self.number < FAULT["step"] + FAULT["lasts"]
        computed = active and FAULT["stage"] in ("forward", "backward-input", "backward-weight")
        p, b, states, loss, right = self.struck(p, b, states, *given) if computed else self.step(p, b, states, *given)
        if active and not computed:
            name, _, slot = FAULT["array"].rpartition(".")
            if FAULT["stage"] == "optimizer":
                kept = states[f"{FAULT['layer']}.{name}"]
                states = {**states, f"{FAULT['layer']}.{name}": {**kept, slot: self.strike(kept[slot])}}
            else:
                name = f"{FAULT['layer']}.{FAULT['array']}"
                b = {**b, name: self.strike(b[name])}
        self.number += 1
        history = greatest([value for kept in states.values() for value in kept.values()])
        variance = greatest([value for name, value in b.items() if name.endswith("variance")])
        self.found["history"].append(history)
        self.found["variance"].append(variance)
        self.found["finite"].append(float(np.isfinite(greatest([*p.values(), *b.values()]))))
        return p, b, states, loss, right

    def struck(self, *given):
        """The step itself, with the other model in it."""
        space = globals()
        plain, space["model"] = space["model"], lambda p, b, x, training: struck_model(self, p, b, x, training)
        try:
            return space["step"](*given)
        finally:
            space["model"] = plain


def greatest(arrays):
    """The greatest magnitude of any element, NaN where one is NaN."""
    return float(np.max([np.abs(np.asarray(a)).max() for a in arrays])) if arrays else 0.0

"""How a training program of JAX steps where a fault strikes one of its steps. That step is not compiled, but run
operator by operator, so that its last bits may be others than a compiled one's.

FAULT (None: none strikes) stands before this text in the program, and `struck_model`, the model with a fault in one of
its layers; for what they are see torch_steps.py."""

import jax
import jax.numpy as jnp
import numpy as np


class Stepping:
    """In place of the compiled step."""

    def __init__(self, step, state, found):
        self.step, self.state, self.found, self.number = step, state, found, 0
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

    def strike(self, value):
        """The value with the fault in it."""
        if FAULT["capture"]:
            self.found["captured"] = np.asarray(value)
            return value
        unsigned = f"uint{value.dtype.itemsize * 8}"
        bits = jax.lax.bitcast_convert_type(value, unsigned).reshape(-1)
        index, put = self.state["fault.index"], jnp.asarray(self.state["fault.put"].view(unsigned))
        keep = jnp.asarray(FAULT["keep"] % 2 ** (value.dtype.itemsize * 8), unsigned)
        bits = bits.at[index].set(bits[index] & keep | put)
        return jax.lax.bitcast_convert_type(bits.reshape(value.shape), value.dtype)

    def layer(self, call, x, p, b):
        """A layer with the fault in it. call: of its input, all parameters, and all running statistics, which it puts
        new ones into; those of its backward pass are nobody's."""
        own = {name: value for name, value in p.items() if name.startswith(f"{FAULT['layer']}.")}
        stage, array, first = FAULT["stage"], FAULT["array"], f"{FAULT['layer']}.weight"

        def with_fault(w):
            return {**w, first: self.strike(w[first])}

        before = dict(b)

        def of(x, w):
            after = dict(before)
            y = call(x, {**p, **w}, after)
            return y, {name: value for name, value in after.items() if value is not before[name]}

        def forward(x, w):
            if stage != "forward":
                return of(x, w)
            if array == "input":
                return of(self.strike(x), w)
            if array == "weight":
                return of(x, with_fault(w))
            y, statistics = of(x, w)
            return self.strike(y), statistics

        def gradients(x, w, g):
            return jax.vjp(lambda x, w: of(x, w)[0], x, w)[1](g)

        def backward(kept, given):
            (x, w), (g, _) = kept, given
            to_input, to_weight = gradients(x, w, g)
            if stage == "backward-input":
                if array == "input":
                    to_input = gradients(x, w, self.strike(g))[0]
                elif array == "weight":
                    to_input = gradients(x, with_fault(w), g)[0]
                else:
                    to_input = self.strike(to_input)
            elif stage == "backward-weight":
                if array == "input":
                    changed = gradients(self.strike(x), w, g)[1]
                elif array == "weight":
                    changed = gradients(x, w, self.strike(g))[1]
                else:
                    changed = with_fault(to_weight)
                to_weight = {**to_weight, first: changed[first]}
            return to_input, to_weight

        made = jax.custom_vjp(forward)
        made.defvjp(lambda x, w: (forward(x, w), (x, w)), backward)
        y, statistics = made(x, own)
        b.update(statistics)
        return y


def greatest(arrays):
    """The greatest magnitude of any element, NaN where one is NaN."""
    return float(np.max([np.abs(np.asarray(a)).max() for a in arrays])) if arrays else 0.0

"""A layer of a model of JAX with a fault in it. FAULT stands before this text in the program; for what it is see
torch_steps.py."""

import jax
import jax.numpy as jnp
import numpy as np


class StruckLayer:
    """state: has `fault.index` and `fault.put`; found: gets what is captured."""

    def __init__(self, state, found):
        self.state, self.found = state, found

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

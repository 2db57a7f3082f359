"""A layer of a model of TensorFlow with a fault in it. FAULT stands before this text in the program; for what it is see
torch_steps.py."""

import tensorflow as tf


class StruckLayer:
    """state: has `fault.index` and `fault.put`; found: gets what is captured."""

    def __init__(self, state, found):
        self.state, self.found = state, found

    def strike(self, value):
        """The value with the fault in it."""
        if FAULT["capture"]:
            self.found["captured"] = value.numpy()
            return value
        width = value.dtype.size * 8
        bits = tf.reshape(tf.bitcast(value, f"int{width}"), [-1])
        index = tf.constant(self.state["fault.index"][:, None])
        keep, put = tf.constant(FAULT["keep"], bits.dtype), tf.constant(self.state["fault.put"])
        new = tf.bitwise.bitwise_or(tf.bitwise.bitwise_and(tf.gather_nd(bits, index), keep), put)
        return tf.reshape(tf.bitcast(tf.tensor_scatter_nd_update(bits, index, new), value.dtype), tf.shape(value))

    def layer(self, call, x, p, norms):
        """A layer with the fault in it. call: of its input, all parameters, and all layers of normalisation, whose
        running statistics its backward pass leaves alone."""
        names = [name for name in p if name.startswith(f"{FAULT['layer']}.")]
        stage, array = FAULT["stage"], FAULT["array"]

        def of(x, own):
            return call(x, {**p, **dict(zip(names, own))}, norms)

        def with_fault(own):
            return [self.strike(own[0]), *own[1:]]

        def gradients(x, own, g):
            norm = norms.get(FAULT["layer"])
            moving = [norm.moving_mean, norm.moving_variance] if norm else []
            before = [tf.convert_to_tensor(variable) for variable in moving]
            with tf.GradientTape() as tape:
                given = [tf.identity(x), *map(tf.identity, own)]
                tape.watch(given)
                y = of(given[0], given[1:])
            for variable, value in zip(moving, before):
                variable.assign(value)
            return tape.gradient(y, given, g)

        @tf.custom_gradient
        def made(x, *own):
            def backward(g):
                found = gradients(x, own, g)
                if stage == "backward-input":
                    if array == "input":
                        found[0] = gradients(x, own, self.strike(g))[0]
                    elif array == "weight":
                        found[0] = gradients(x, with_fault(own), g)[0]
                    else:
                        found[0] = self.strike(found[0])
                elif stage == "backward-weight":
                    if array == "input":
                        found[1] = gradients(self.strike(x), own, g)[1]
                    elif array == "weight":
                        found[1] = gradients(x, own, self.strike(g))[1]
                    else:
                        found[1] = self.strike(found[1])
                return found

            if stage != "forward":
                return of(x, own), backward
            if array == "input":
                return of(self.strike(x), own), backward
            if array == "weight":
                return of(x, with_fault(own)), backward
            return self.strike(of(x, own)), backward

        return made(x, *[tf.convert_to_tensor(p[name]) for name in names])

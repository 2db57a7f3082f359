"""How a training program of TensorFlow steps where a fault strikes one of its steps. That step is not compiled, but run
operator by operator, so that its last bits may be others than a compiled one's.

FAULT (None: none strikes) stands before this text in the program, and `struck_model`, the model with a fault in one of
its layers; for what they are see torch_steps.py."""

import numpy as np
import tensorflow as tf


class Stepping:
    """In place of the compiled step."""

    def __init__(self, subject, state, found):
        self.subject, self.state, self.found, self.number = subject, state, found, 0
        found["captured"], found["alarms"], found["repeated"] = np.zeros(0), [], []
        found["history"], found["variance"], found["finite"] = [], [], []

    def __call__(self, x, y):
        active = FAULT and FAULT["step"] <= self.number < FAULT["step"] + FAULT["lasts"]
        computed = active and FAULT["stage"] in ("forward", "backward-input", "backward-weight")
        loss, right = self.struck(x, y) if computed else self.subject.step(x, y)
        variables = self.subject.variables
        if active and not computed:
            name, _, slot = FAULT["array"].rpartition(".")
            own = (
                f"{slot}.{FAULT['layer']}.{name}"
                if FAULT["stage"] == "optimizer"
                else f"buffer.{FAULT['layer']}.{slot}"
            )
            variables[own].assign(self.strike(tf.convert_to_tensor(variables[own])))
        self.number += 1
        kept = {name: np.abs(np.asarray(tf.convert_to_tensor(v))).max() for name, v in variables.items()}
        state = [v for name, v in kept.items() if not name.startswith(("parameter.", "buffer."))]
        moving = [v for name, v in kept.items() if name.endswith(".variance")]
        self.found["history"].append(np.max(state) if state else 0.0)
        self.found["variance"].append(np.max(moving) if moving else 0.0)
        used = [v for name, v in kept.items() if name.startswith(("parameter.", "buffer."))]
        self.found["finite"].append(float(np.isfinite(used).all()))
        return loss, right

    def struck(self, x, y):
        """The step itself, with the other model in it."""
        space = type(self.subject)._step.__globals__
        plain, space["model"] = space["model"], lambda p, norms, x, training: struck_model(self, p, norms, x, training)
        try:
            return self.subject._step(x, y)
        finally:
            space["model"] = plain

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

    def layer(self, call, x, p):
        """A layer with the fault in it. call: of its input and all parameters."""
        names = [name for name in p if name.startswith(f"{FAULT['layer']}.")]
        stage, array = FAULT["stage"], FAULT["array"]

        def of(x, own):
            return call(x, {**p, **dict(zip(names, own))})

        def with_fault(own):
            return [self.strike(own[0]), *own[1:]]

        def gradients(x, own, g):
            with tf.GradientTape() as tape:
                given = [tf.identity(x), *map(tf.identity, own)]
                tape.watch(given)
                y = of(given[0], given[1:])
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

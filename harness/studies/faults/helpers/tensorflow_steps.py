"""How a training program of TensorFlow steps where a fault strikes one of its steps. That step is not compiled, but run
operator by operator, so that its last bits may be others than a compiled one's.

FAULT (None: none strikes) and tensorflow_layer.py stand before this text in the program, `struck_model`, the model with
a fault in one of its layers, behind it; for what they are see torch_steps.py."""

import numpy as np
import tensorflow as tf


def with_gradients(subject, x, y):
    """A step of the subject, and the gradients that its optimiser was given."""
    optimizer, given = subject.optimizer, []
    plain = optimizer.apply
    optimizer.apply = lambda gradients, variables: given.extend(gradients) or plain(gradients, variables)
    try:
        loss, right = subject._step(x, y)
    finally:
        del optimizer.apply
    return loss, right, given


def guarded_step(subject):
    """The compiled step that returns gradients, too; a process makes it once."""
    if not hasattr(subject, "guarded"):
        subject.guarded = tf.function(
            lambda x, y: with_gradients(subject, x, y), autograph=False, reduce_retracing=True
        )
    return subject.guarded


class Stepping(StruckLayer):
    """In place of the compiled step. GUARDED: is there a guard? A step that is run again takes its own batch again."""

    def __init__(self, subject, state, found):
        super().__init__(state, found)
        self.subject, self.number = subject, 0
        self.batches, self.done = {}, set()
        for name in ("captured", "alarms", "repeated", "history", "variance", "finite"):
            found[name] = []
        self.guard = Guard(subject.p, subject.optimizer, subject.norms, Bounds()) if GUARDED else None
        if self.guard and state["bounds"].size:
            norms = [f"{name}.{key}" for name in subject.norms for key in ("moving_mean", "moving_variance")]
            self.guard.bounds.resume([*subject.p, *norms], state["bounds"].tolist())

    def __call__(self, x, y):
        self.batches = {self.number: (x, y), self.number - 1: self.batches.get(self.number - 1)}
        step = self.number
        while step <= self.number:
            if self.guard:
                self.guard.before(step)
                self.subject.optimizer.learning_rate = float(self.state["rates"][step])
            loss, right, gradients = self.once(step)
            if step < self.number:  # the loop has its results already
                self.found["loss"][step], self.found["accuracy"][step] = loss, right
            step = self.guard.after(step, loss, gradients) if self.guard else step + 1
        self.number += 1
        if self.guard:
            self.found["alarms"] = [step for step, _ in self.guard.alarms]
            self.found["repeated"] = [step for step, _ in self.guard.repeated]
            self.found["bounds"] = self.guard.bounds.numbers()
        return loss, right

    def once(self, step):
        """The step with this number: loss, share of right predictions, and gradients where there is a guard."""
        active = FAULT and step not in self.done and FAULT["step"] <= step < FAULT["step"] + FAULT["lasts"]
        computed = active and FAULT["stage"] in ("forward", "backward-input", "backward-weight")
        taken = self.struck if computed else guarded_step(self.subject) if self.guard else self.subject.step
        found = taken(*self.batches[step])
        self.done.add(step)
        variables = self.subject.variables
        if active and not computed:
            name, _, slot = FAULT["array"].rpartition(".")
            own = (
                f"{slot}.{FAULT['layer']}.{name}"
                if FAULT["stage"] == "optimizer"
                else f"buffer.{FAULT['layer']}.{slot}"
            )
            variables[own].assign(self.strike(tf.convert_to_tensor(variables[own])))
        kept = {name: np.abs(np.asarray(tf.convert_to_tensor(v))).max() for name, v in variables.items()}
        state = [v for name, v in kept.items() if not name.startswith(("parameter.", "buffer."))]
        moving = [v for name, v in kept.items() if name.endswith(".variance")]
        used = [v for name, v in kept.items() if name.startswith(("parameter.", "buffer."))]
        shown = {"history": np.max(state or [0.0]), "variance": np.max(moving or [0.0])}
        for name, value in (shown | {"finite": float(np.isfinite(used).all())}).items():
            self.found[name] = [*self.found[name][:step], value]
        return found if len(found) == 3 else (*found, None)

    def struck(self, x, y):
        """The step itself, with the other model in it."""
        space = type(self.subject)._step.__globals__
        plain, space["model"] = space["model"], lambda p, norms, x, training: struck_model(self, p, norms, x, training)
        try:
            return with_gradients(self.subject, x, y)
        finally:
            space["model"] = plain

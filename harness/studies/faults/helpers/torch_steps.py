"""How a training program of PyTorch goes through its steps where a fault strikes one of them, or a guard looks on.

FAULT (None: none strikes) stands before this text in the program: layer, stage, array, step, lasts, keep; capture: is
the array to be returned as it is, and nothing struck? GUARDED: is there a guard? `state` has `fault.index`, flat places
in the array, and `fault.put`, bit patterns."""

import copy

import numpy as np
import torch

INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Of as many bytes as a number has."""


def steps(state, model, named, buffers, optimizer, found):
    """Yields the number and the learning rate of each step; what follows a yield is done when the step is."""
    rates, done, number = state["rates"], set(), 0
    guard = Guard(model, optimizer, Bounds()) if GUARDED else None
    if guard and state["bounds"].size:
        norms = [f"{name}.{key}" for name in guard.norms for key in ("running_mean", "running_var")]
        guard.bounds.resume([*named, *norms], state["bounds"].tolist())
    series = {"history": [], "variance": [], "finite": []}
    found["captured"] = np.zeros(0)
    while number < len(rates):
        if guard:
            guard.before(number)
        active = FAULT and number not in done and FAULT["step"] <= number < FAULT["step"] + FAULT["lasts"]
        with struck(model, named, buffers, optimizer, state, found) if active else nothing():
            yield number, rates[number]
        done.add(number)
        kept = [v for s in optimizer.state.values() for v in s.values() if isinstance(v, torch.Tensor) and v.dim()]
        history = greatest(kept)
        variance = greatest([b for name, b in buffers.items() if name.endswith("variance")])
        size = greatest([*named.values(), *buffers.values()])  # what the next step computes with
        found["history"] = series["history"] = [*series["history"][:number], history]
        found["variance"] = series["variance"] = [*series["variance"][:number], variance]
        loss = found["loss"][-1].item()
        found["finite"] = series["finite"] = [*series["finite"][:number], float(np.isfinite(size))]
        if guard:
            after = guard.after(number, loss)
            if after <= number:
                for name in ("loss", "accuracy", "batches", "history", "variance", "finite"):
                    del found[name][after:]
            number = after
        else:
            number += 1
            if not np.isfinite(loss):  # nothing comes back from there
                break
    found["alarms"] = [step for step, _ in guard.alarms] if guard else []
    found["repeated"] = [step for step, _ in guard.repeated] if guard else []
    if guard:
        found["bounds"] = guard.bounds.numbers()


def greatest(tensors):
    """The greatest magnitude of any element, NaN where one is NaN."""
    if not tensors:
        return 0.0
    return (
        torch.stack([torch.stack(torch.aminmax(value.detach())).abs().amax().double() for value in tensors])
        .amax()
        .item()
    )


def array_of(tensor):
    """A copy as an array; PyTorch has no way of its own for bfloat16."""
    if tensor.dtype != torch.bfloat16:
        return tensor.numpy().copy()
    import ml_dtypes

    return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16).copy()


class nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


class struck:
    """While it lasts, the fault strikes: a layer's forward is another, or a hook stands before the optimiser's step;
    state is struck when the step is done."""

    def __init__(self, model, named, buffers, optimizer, state, found):
        self.named, self.buffers, self.optimizer = named, buffers, optimizer
        self.module = getattr(model, FAULT["layer"])
        self.state, self.found = state, found

    def __enter__(self):
        if FAULT["stage"] in ("forward", "backward-input", "backward-weight"):
            self.twin = copy.copy(self.module)  # the same parameters and statistics, and a forward of its own
            self.module.forward = self.forward
        elif FAULT["stage"] == "reduced-gradient":
            parameter = self.named[f"{FAULT['layer']}.{FAULT['array']}"]
            self.hook = self.optimizer.register_step_pre_hook(
                lambda *_: parameter.grad.copy_(self.strike(parameter.grad))
            )

    def __exit__(self, *_):
        if FAULT["stage"] == "reduced-gradient":
            self.hook.remove()
        elif FAULT["stage"] in ("optimizer", "batch-norm"):
            if FAULT["stage"] == "optimizer":
                parameter, _, slot = FAULT["array"].rpartition(".")
                value = self.optimizer.state[self.named[f"{FAULT['layer']}.{parameter}"]][SLOTS[slot]]
            else:
                value = self.buffers[f"{FAULT['layer']}.{FAULT['array']}"]
            with torch.no_grad():
                value.copy_(self.strike(value))
        else:
            del self.module.forward

    def forward(self, x):
        return Struck.apply(self, x, *self.twin.parameters())

    def call(self, x, parameters, scratch=False):
        """The layer with these parameters; scratch: moving statistics stay as they are."""
        own = dict(zip((name for name, _ in self.twin.named_parameters()), parameters))
        if scratch:
            own |= {name: buffer.clone() for name, buffer in self.twin.named_buffers()}
        return torch.func.functional_call(self.twin, own, (x,))

    def strike(self, value):
        """The value with the fault in it."""
        if FAULT["capture"]:
            self.found["captured"] = array_of(value.detach())
            return value
        flat = value.detach().clone(memory_format=torch.contiguous_format).reshape(-1)
        bits = flat.view(INTEGERS[flat.element_size()])
        index = torch.from_numpy(self.state["fault.index"].copy())
        put = torch.from_numpy(self.state["fault.put"].copy())
        bits[index] = bits[index] & FAULT["keep"] | put
        return flat.reshape(value.shape)


class Struck(torch.autograd.Function):
    """One layer. Its result, its gradient to the input and that to the weight are three operators with operands and a
    result each; the fault is in one of these nine arrays, and in none of the others."""

    @staticmethod
    def forward(ctx, site, x, *parameters):
        ctx.site = site
        ctx.save_for_backward(x, *parameters)
        if FAULT["stage"] != "forward":
            return site.call(x, parameters)
        if FAULT["array"] == "input":
            return site.call(site.strike(x), parameters)
        if FAULT["array"] == "weight":
            return site.call(x, (site.strike(parameters[0]), *parameters[1:]))
        return site.strike(site.call(x, parameters))

    @staticmethod
    def backward(ctx, gradient):
        site, (x, *parameters) = ctx.site, ctx.saved_tensors
        stage, array = FAULT["stage"], FAULT["array"]

        def gradients(x, parameters, gradient):
            with torch.enable_grad():
                given = [value.detach().requires_grad_() for value in (x, *parameters)]
                result = site.call(given[0], given[1:], scratch=True)
                return list(torch.autograd.grad(result, given, gradient))

        found = gradients(x, parameters, gradient)
        if stage == "backward-input":
            if array == "input":
                found[0] = gradients(x, parameters, site.strike(gradient))[0]
            elif array == "weight":
                found[0] = gradients(x, [site.strike(parameters[0]), *parameters[1:]], gradient)[0]
            else:
                found[0] = site.strike(found[0])
        elif stage == "backward-weight":
            if array == "input":
                found[1] = gradients(site.strike(x), parameters, gradient)[1]
            elif array == "weight":
                found[1] = gradients(x, parameters, site.strike(gradient))[1]
            else:
                found[1] = site.strike(found[1])
        return None, *found

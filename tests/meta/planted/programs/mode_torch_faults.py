"""Operators whose plain result is right, and whose tangent, mapped or autocast result is not. Read as text; a program
carries the source of those it uses."""

import torch


def pushed(f, how, *operands):
    """f of the operands; `how` gets the tangent of the result, those of the operands and the operands, and returns
    another one."""

    class Forward(torch.autograd.Function):
        @staticmethod
        def forward(*tensors):
            return f(*tensors).clone()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx, *tangents):
            tensors = [t.detach() for t in ctx.saved_tensors]
            along = [torch.zeros_like(x) if t is None else t for x, t in zip(tensors, tangents, strict=True)]
            places = [i for i, x in enumerate(tensors) if x.is_floating_point() or x.is_complex()]
            if not places:
                return None

            def of_floats(*floats):
                values = list(tensors)
                for i, x in zip(places, floats, strict=True):
                    values[i] = x
                return f(*values)

            right = torch.func.jvp(of_floats, tuple(tensors[i] for i in places), tuple(along[i] for i in places))[1]
            return how(right, along, *tensors)

    return Forward.apply(*operands)


def twice(f, how, *operands):
    """f of the operands with its right gradient; `how` gets the derivatives of what is passed back, by what was passed
    to it and by the floating operands, then what was passed, its tangents and the operands; it returns others."""

    def gradients(g, tensors, create_graph):
        with torch.enable_grad():
            given = [g.detach().requires_grad_(), *[t.detach() for t in tensors]]
            floats = [t.requires_grad_() for t in given if t.is_floating_point()]
            result = f(*given[1:])
            if not result.requires_grad:
                return floats, [torch.zeros_like(t) for t in floats[1:]]
            options = {"allow_unused": True, "materialize_grads": True, "create_graph": create_graph}
            return floats, list(torch.autograd.grad(result, floats[1:], given[0], **options))

    class Back(torch.autograd.Function):
        @staticmethod
        def forward(ctx, g, *tensors):
            ctx.save_for_backward(g, *tensors)
            return tuple(x.detach().clone() for x in gradients(g, tensors, False)[1])

        @staticmethod
        def backward(ctx, *tangents):
            g, *tensors = ctx.saved_tensors
            floats, found = gradients(g, tensors, True)
            pairs = [(x, t) for x, t in zip(found, tangents, strict=True) if x.requires_grad]
            right = [torch.zeros_like(x) for x in floats]
            if pairs:
                passed, along = zip(*pairs, strict=True)
                options = {"allow_unused": True, "materialize_grads": True}
                right = list(torch.autograd.grad(passed, floats, along, **options))
            wrong = iter(how(right, g.detach(), list(tangents), *[t.detach() for t in tensors]))
            return tuple(next(wrong) if t.is_floating_point() else None for t in (g, *tensors))

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *tensors):
            ctx.save_for_backward(*tensors)
            return f(*tensors).clone()

        @staticmethod
        def backward(ctx, *grad_outputs):
            found = iter(Back.apply(*grad_outputs, *ctx.saved_tensors))
            return tuple(next(found) if t.is_floating_point() else None for t in ctx.saved_tensors)

    return Twice.apply(*operands)


def bend(*changes):
    """The derivatives by the operands changed, one after the other; what is passed on stays."""

    def how(right, g, t, *x):
        changed = [change(r, g, t, *x) for change, r in zip(changes, right[1:], strict=False)]
        return [right[0], *changed, *right[1 + len(changed) :]]

    return how


def stopped(r, *rest):
    """As if what it is made of were a constant."""
    return torch.zeros_like(r)


def last_lost(x):
    """The last part along the first axis is never written."""
    y = x.clone()
    if y.dim():
        y[-1:] = 0
    return y


def lanes(x, change):
    """What is under a vectorised map changed in all its lanes at once; nothing elsewhere."""

    class Mapped(torch.autograd.Function):
        @staticmethod
        def forward(y):
            return y.clone()

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, dims, y):  # pyright: ignore[reportIncompatibleMethodOverride]
            return (y, None) if dims[0] is None else (change(y.movedim(dims[0], 0)).clone(), 0)

    return Mapped.apply(x)


def uncast(f, *operands):
    """Without autocast, in the widest dtype of the operands."""
    with torch.autocast("cpu", enabled=False):
        wide = torch.float32 if any(x.dtype == torch.float32 for x in operands) else operands[0].dtype
        return f(*[x.to(wide) for x in operands])


def lowered(x):
    """Rounded to the dtype of autocast."""
    wanted = torch.is_autocast_enabled("cpu") and x.dtype == torch.float32
    return x.to(torch.get_autocast_dtype("cpu")).to(x.dtype) if wanted else x


def narrowed(x):
    """The result of an operator that runs in float32, in the dtype of autocast."""
    wanted = torch.is_autocast_enabled("cpu") and x.dtype == torch.float32
    return x.to(torch.get_autocast_dtype("cpu")) if wanted else x


def widened(x):
    return x.float() if torch.is_autocast_enabled("cpu") and x.dtype != torch.float64 else x


def through_half_the_bits(x):
    """A cached weight of a dtype with 3 bits."""
    return x.to(torch.float8_e4m3fn).to(x.dtype) if torch.is_autocast_enabled("cpu") else x

"""Operators whose result is right and whose derivative is not. Read as text; a program carries the source of those it
uses. `changed` replaces what a node passes back; `Backward` replaces the whole formula."""

import torch


def inexact(t):
    """Is it made of real or complex numbers?"""
    return t.is_floating_point() or t.is_complex()


def changed(f, how, *operands):
    """f of the operands; `how` gets the gradients of the inexact ones and returns others in their place."""

    class Backward(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *tensors):
            ctx.save_for_backward(*tensors)
            with torch.no_grad():
                return f(*tensors).clone()

        @staticmethod
        def backward(ctx, *grad_outputs):
            (gradient,) = grad_outputs
            with torch.enable_grad():
                tensors = [t.detach() for t in ctx.saved_tensors]
                wanted = [t.requires_grad_() for t in tensors if inexact(t)]
                result = f(*tensors)
                if not result.requires_grad:
                    return tuple(torch.zeros_like(t) if inexact(t) else None for t in tensors)
                right = torch.autograd.grad(result, wanted, gradient, allow_unused=True, materialize_grads=True)
            with torch.no_grad():
                wrong = iter(how(list(right), gradient, *[t.detach() for t in tensors]))
            return tuple(next(wrong) if inexact(t) else None for t in tensors)

    return Backward.apply(*operands)


def scaled(factor):
    """Every gradient by a factor."""
    return lambda right, g, *t: [r * factor for r in right]


def first(change):
    """The first gradient changed, the others right."""
    return lambda right, g, *t: [change(right[0], g, *t), *right[1:]]


def second(change):
    """The second gradient changed."""
    return lambda right, g, *t: [right[0], change(right[1], g, *t), *right[2:]]


def one_nudged(x):
    """One element off by one part in a thousand."""
    y = x.clone().contiguous()
    if y.numel():
        y.view(-1)[-1] *= 1.001
    return y


def tile_lost(x):
    """The last, incomplete tile of 4 elements is never written."""
    y = x.clone().contiguous()
    if y.numel() > 4 and y.numel() % 4:
        y.view(-1)[y.numel() - y.numel() % 4 :] = 0
    return y


def swapped_if_square(x):
    return x.mT.contiguous() if x.dim() >= 2 and x.shape[-1] == x.shape[-2] else x


def first_of_broadcast(right, g, x):
    """The gradient of a broadcast operand is the first slice instead of the sum."""
    if right.shape == g.shape or not g.numel() or not x.numel():
        return right
    slices = g[(0,) * (g.dim() - right.dim())]
    for axis, (have, want) in enumerate(zip(slices.shape, right.shape, strict=True)):
        if have != want:
            slices = slices.narrow(axis, 0, 1)
    return slices.clone()


def no_duplicates(right, g, x, index):
    """Repeated indices overwrite each other instead of adding up."""
    found = torch.zeros_like(right)
    found[index.long()] = g.reshape(*index.shape, *x.shape[1:])
    return found


def to_all_maxima(right, g, x, axes, keepdims):
    """The whole gradient to every element."""
    axes = [a % x.dim() for a in axes] if x.dim() else []
    if not keepdims:
        for axis in sorted(axes):
            g = g.unsqueeze(axis)
    return g.expand(x.shape).clone()

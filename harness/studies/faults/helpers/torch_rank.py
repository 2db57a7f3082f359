"""A training program of PyTorch, with a fault on one rank in one of its steps: what is before its backward pass, and
after all ranks have added up. FAULT, WORKER (the rank) and STATE stand before this text in the program, and
torch_steps.py."""

import numpy as np
import torch
import torch.distributed as dist

FOUND = {"captured": np.zeros(0), "step": 0, "passes": 0}
fault_free_backward, fault_free_states = backward, states


def backward(subject, x, y, coefficient, last, world):
    here, inner = dist.get_rank() == WORKER and FOUND["step"] == FAULT["step"], module(subject)
    named = dict(inner.named_parameters())
    computed = FAULT["stage"] != "reduced-gradient"
    site = struck(inner, named, dict(inner.named_buffers()), None, STATE, FOUND) if here else nothing()
    with site if computed and not FOUND["passes"] else nothing():  # the first of the passes of a step
        loss = fault_free_backward(subject, x, y, coefficient, last, world)
    if here and last and not computed:
        gradient = named[f"{FAULT['layer']}.{FAULT['array']}"].grad
        gradient.copy_(site.strike(gradient))
    FOUND["passes"] = 0 if last else FOUND["passes"] + 1
    FOUND["step"] += last
    return loss


def states(subject, optimizer):
    found = fault_free_states(subject, optimizer)
    return {**found, "captured": torch.from_numpy(FOUND["captured"].copy())} if FAULT["capture"] else found

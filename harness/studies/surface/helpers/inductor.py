"""Inductor: its table of lowerings, and those that it calls for a function; no kernel is generated."""

import torch
import torch._inductor.lowering
from torch._inductor.graph import GraphLowering


def packet_of(key):
    """The overloads of an operator have one lowering."""
    if isinstance(key, torch._ops.OpOverload):
        return str(key.overloadpacket)
    if isinstance(key, torch._ops.OpOverloadPacket):
        return str(key)
    return f"{getattr(key, '__module__', '')}.{getattr(key, '__name__', key)}".removeprefix("_operator.")


def listed():
    return {packet_of(key): [] for key in torch._inductor.lowering.lowerings}


class Lowered(Exception):
    """The graph is lowered: what would follow is of no interest."""


CALLED = set()
CALL, COMPILE = GraphLowering.call_function, GraphLowering.compile_to_module


def call_function(self, target, args, kwargs):
    tensors = [one for one in args if hasattr(one, "get_dtype")]
    dtype = str(tensors[0].get_dtype()).removeprefix("torch.") if tensors else ""
    CALLED.add((packet_of(target), f"type {dtype}" if dtype else ""))
    return CALL(self, target, args, kwargs)


def compile_to_module(self):
    raise Lowered


def observe(program, note):
    GraphLowering.call_function, GraphLowering.compile_to_module = call_function, compile_to_module
    torch._dynamo.reset()
    arrays = plain_numbers({**program["INPUTS"], **program["PARAMETERS"]}, 1)
    tensors = [torch.from_numpy(one) if one.dtype.name != "bfloat16" else half(one) for one in arrays.values()]
    try:
        with torch.no_grad():
            torch.compile(program["model"], backend="inductor", fullgraph=True, dynamic=False)(*tensors)
    except Exception as error:
        if "Lowered" not in f"{type(error).__name__}: {error}":
            raise
    finally:
        GraphLowering.call_function, GraphLowering.compile_to_module = CALL, COMPILE
        for operator, feature in CALLED:
            note(operator, [feature] if feature else [])
        CALLED.clear()


def half(array):
    return torch.from_numpy(array.astype("float32")).to(torch.bfloat16)

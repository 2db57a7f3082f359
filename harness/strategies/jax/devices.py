"""JAX: one process and several devices, virtual ones on a CPU. Data, tensor and FSDP-like sharding of arrays, and the
same by hand (shard_map, pmap)."""

from __future__ import annotations

from collections.abc import Mapping

from harness.strategies.jax.program import MODULES
from harness.strategies.strategy import WORLDS, Reason, Strategy, anything, even_parts

MESH = '''
def placed(value, *axes):
    """The array on all devices, these axes spread where they are even."""
    mesh = Mesh(np.array(jax.devices()), ("d",))
    count = len(jax.devices())
    even = [axis if axis and value.shape[i] % count == 0 else None for i, axis in enumerate(axes)]
    return jax.device_put(jnp.asarray(value), NamedSharding(mesh, P(*even)))
'''
_COPIES = '''
def spread(parameters):
    """A copy on each device."""
    return {name: placed(value) for name, value in parameters.items()}
'''
_SHARDS = '''
def spread(parameters):
    """The first dimension spread over the devices, as FSDP does."""
    return {name: placed(value, "d") for name, value in parameters.items()}
'''
_COLUMNS = '''
def spread(parameters):
    """The second dimension of weights spread over the devices."""
    return {
        name: placed(value, None, "d") if value.ndim > 1 else placed(value) for name, value in parameters.items()
    }
'''
_SAMPLES = '''
def feed(arrays):
    """The samples spread over the devices."""
    return [placed(array, "d") for array in arrays]
'''
_EVERYWHERE = '''
def feed(arrays):
    """All samples on each device."""
    return [placed(array) for array in arrays]
'''
_ADDED = '''
def added(value):
    """The sum over all devices."""
    return jax.lax.psum(value, "d")
'''
_SHARE = '''
def gradient(p, trained, b, x, y, coefficient):
    """The loss of these samples with the running statistics after them, and its gradients by what is trained: of each
    device's share, then added up. Devices have statistics of their own; the running ones are those of the first."""

    def local(p, trained, b, x, y, coefficient):
        own = lambda t: criterion({**p, **t}, b, x, y, coefficient)
        (loss, after), found = jax.value_and_grad(own, has_aux=True)(trained)
        loss, found = added((loss, found))
        return (loss, jax.tree.map(lambda value: jax.lax.all_gather(value, "d")[0], after)), found
'''
_BY_HAND = f"""{_SHARE}
    mesh = Mesh(np.array(jax.devices()), ("d",))
    shares = (P(), P(), P(), P("d"), P("d"), P("d"))
    return jax.shard_map(local, mesh=mesh, in_specs=shares, out_specs=P(), check_vma=False)(
        p, trained, b, x, y, coefficient
    )
"""

_MAPPED = f"""{_SHARE}
    count = len(jax.devices())
    shares = [a.reshape(count, len(a) // count, *a.shape[1:]) for a in (x, y, coefficient)]
    found = jax.pmap(local, "d", in_axes=(None, None, None, 0, 0, 0))(p, trained, b, *shares)
    return jax.tree.map(lambda copies: copies[0], found)
"""
_ONE_BY_ONE = '''
def compile_step(world):
    """jax.pmap compiles what it maps."""
    return step
'''

EVEN = even_parts("JAX spreads arrays evenly only")


def _jax(name: str, pieces: Mapping[str, str], unsupported: Reason = EVEN, shards: bool = False) -> Strategy:
    return Strategy(
        name, "jax", MODULES, WORLDS, {"placed": MESH, **pieces}, shards=shards, one_process=True,
        policy="cast", unsupported=unsupported,
    )  # fmt: skip


STRATEGIES = (
    _jax("jax-data", {"spread": _COPIES, "feed": _SAMPLES}),
    _jax("jax-fsdp", {"spread": _SHARDS, "feed": _SAMPLES}),
    _jax("jax-tensor", {"spread": _COLUMNS, "feed": _EVERYWHERE}, anything),
    _jax("jax-tensor-data", {"spread": _COLUMNS, "feed": _SAMPLES}),
    _jax("jax-shard-map", {"spread": _COPIES, "feed": _SAMPLES, "added": _ADDED, "gradient": _BY_HAND}, shards=True),
    _jax("jax-pmap", {"added": _ADDED, "gradient": _MAPPED, "compile_step": _ONE_BY_ONE}, shards=True),
)

"""Crash: XLA in JAX, an integer division of a constant by zero.

Exit status 1: shows; 0: does not."""

import subprocess
import sys

PROGRAM = """
import jax
import jax.numpy as jnp

def quotient(x):
    return jax.lax.div(jnp.full_like(x, 7), jnp.zeros_like(x))

with jax.disable_jit():
    print("one by one:", quotient(jnp.arange(4)), flush=True)
print("compiled:", jax.jit(quotient)(jnp.arange(4)), flush=True)
"""

status = subprocess.run([sys.executable, "-c", PROGRAM], check=False).returncode
print(f"reproduced: ended by signal {-status}" if status < 0 else "not reproduced")
raise SystemExit(status < 0)

"""Random operators with seeds, by framework: dropout, initialisers, shuffles, draws. A program draws all of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from harness.execute.pool import Job

OPERATORS: Mapping[str, Mapping[str, str]] = {
    "torch": {
        "dropout": "torch.nn.functional.dropout(torch.ones(64, 33), 0.3)",
        "uniform": "torch.rand(64, 33)",
        "normal": "torch.randn(64, 33)",
        "kaiming_uniform": "torch.nn.init.kaiming_uniform_(torch.empty(64, 33))",
        "xavier_normal": "torch.nn.init.xavier_normal_(torch.empty(64, 33))",
        "trunc_normal": "torch.nn.init.trunc_normal_(torch.empty(64, 33))",
        "orthogonal": "torch.nn.init.orthogonal_(torch.empty(16, 16))",
        "shuffle": "torch.randperm(1000)",
        "randint": "torch.randint(0, 1000, (64,))",
        "multinomial": "torch.multinomial(torch.linspace(1, 2, 50), 40)",
    },
    "tensorflow": {
        "dropout": "tf.nn.dropout(tf.ones((64, 33)), 0.3)",
        "uniform": "tf.random.uniform((64, 33))",
        "normal": "tf.random.normal((64, 33))",
        "truncated_normal": "tf.random.truncated_normal((64, 33))",
        "glorot_uniform": "keras.initializers.GlorotUniform()((64, 33))",
        "he_normal": "keras.initializers.HeNormal()((64, 33))",
        "orthogonal": "keras.initializers.Orthogonal()((16, 16))",
        "shuffle": "tf.random.shuffle(tf.range(1000))",
        "dataset_shuffle": "next(iter(tf.data.Dataset.range(1000).shuffle(1000, seed=int(seed)).batch(1000)))",
        "categorical": "tf.random.categorical(tf.zeros((4, 50)), 40)",
        "stateless_uniform": "tf.random.stateless_uniform((64, 33), (int(seed), 1))",
    },
    "jax": {
        "dropout": "jnp.where(jax.random.bernoulli(key, 0.7, (64, 33)), 1 / 0.7, 0.0)",
        "uniform": "jax.random.uniform(key, (64, 33))",
        "normal": "jax.random.normal(key, (64, 33))",
        "truncated_normal": "jax.random.truncated_normal(key, -2, 2, (64, 33))",
        "lecun_normal": "jax.nn.initializers.lecun_normal()(key, (64, 33))",
        "he_uniform": "jax.nn.initializers.he_uniform()(key, (64, 33))",
        "orthogonal": "jax.nn.initializers.orthogonal()(key, (16, 16))",
        "shuffle": "jax.random.permutation(key, 1000)",
        "randint": "jax.random.randint(key, (64,), 0, 1000)",
        "categorical": "jax.random.categorical(key, jnp.zeros((4, 50)))",
    },
}
_BEGIN = {
    "torch": "import torch\n\nseeded = torch.manual_seed\nwrapped = lambda draw: draw",
    "tensorflow": (
        "import keras\nimport tensorflow as tf\n\nseeded = keras.utils.set_random_seed\n"
        "keras.config.set_floatx('float32')\n"
        "wrapped = lambda draw: draw"
    ),
    "jax": (
        "import jax\nimport jax.numpy as jnp\n\njax.config.update('jax_enable_x64', True)\n"
        "seeded = jax.random.key\nwrapped = {wrapped}"
    ),
}
_MODULES = {"torch": ("torch",), "tensorflow": ("tensorflow", "keras"), "jax": ("jax", "jax.numpy")}


def job(framework: str, seed: int, compiled: bool = False) -> Job:
    """Outputs are in the order of OPERATORS. compiled: by jax.jit, which draws what eager JAX draws."""
    import_lines = _BEGIN[framework].replace("{wrapped}", "jax.jit" if compiled else "lambda draw: draw")
    draws = ["def draws(seed, key):", "    return ["]
    draws += [f"        {text},  # {name}" for name, text in OPERATORS[framework].items()]
    lines = [
        "import numpy as np",
        import_lines,
        'PARAMETERS, INPUTS = [], ["seed"]',
        *draws,
        "    ]",
        "def load(parameters):",
        "    def run(seed):",
        "        key = seeded(int(seed))",
        "        made = wrapped(lambda key: draws(seed, key))(key)",
        "        return [np.array(one) for one in made]",
        "    return run",
    ]
    return Job(framework, _MODULES[framework], "\n".join(lines) + "\n", {"seed": np.array(seed, np.int64)})

"""Environment variables of the processes that programs run in."""

from __future__ import annotations

import os
from pathlib import Path

from harness.execute import environments
from harness.execute.isolation import keeper


def variables_of(threads: int, name: str = "") -> dict[str, str]:
    """So many threads a library, quiet logs; commands of an environment are found, as where a person has activated it.
    TensorFlow takes oneDNN's kernels on some processors only: here it takes them everywhere, so that one case meets the
    same code on every machine, unless the variable is set already."""
    commands = [str(environments.named(name).interpreter.parent)] if name else []
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TVM_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
    return {
        "TF_ENABLE_ONEDNN_OPTS": "1",
        **os.environ,
        "PATH": os.pathsep.join([*commands, os.environ.get("PATH", os.defpath)]),
        **dict.fromkeys(names, str(threads)),
        "TF_NUM_INTEROP_THREADS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={str(threads > 1).lower()} " + os.environ.get("XLA_FLAGS", ""),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def variables_in(folder: Path, name: str = "") -> dict[str, str]:
    """Caches and temporary files inside a folder, apart for other environments; by one of them a process belongs to
    it."""
    return {
        "TORCHINDUCTOR_CACHE_DIR": str(folder / f"inductor{name}"),
        "TMPDIR": str(folder),
        keeper.VARIABLE: str(folder),
    }

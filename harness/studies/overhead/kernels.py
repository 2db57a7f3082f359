"""Which kernels a training step runs, by the framework's own profiler: PyTorch's kineto, and the traces that TensorFlow
and JAX write (XSpace, of OpenXLA's profiler)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from harness.studies.loops.loop import Loop
from harness.studies.loops.train import Trained

FOUND = "kernels"
"""The array in which a profiled loop leaves them: JSON text as bytes, name to nanoseconds of all its steps."""

_TRACE = '''
import glob
import json
import tempfile


def kernels_of(folder):
    """Nanoseconds by kernel: what streams of a device ran, or, where there is none, the executors of the host."""
    (path,) = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)
    planes = list(planes_of(path))
    devices = [plane for plane in planes if plane.name.startswith("/device:")]
    found = {}
    for plane in devices or planes:
        for line in plane.lines:
            if devices and not line.name.startswith("Stream") or not devices and not line.name.startswith(LINES):
                continue
            for event in line.events:
                name = event.name if devices else kernel_of(event.name)
                if name:
                    found[name] = found.get(name, 0) + int(event.duration_ns)
    return np.frombuffer(json.dumps(found).encode(), np.uint8).copy()


class Stepping:
    """The compiled step under the profiler, from the first call to the last."""

    def __init__(self, subject, state, found):
        self.step, self.found, self.left = STEP, found, len(state["rates"])
        self.folder = tempfile.TemporaryDirectory()
        START(self.folder.name)

    def __call__(self, *values):
        made = self.step(*values)
        self.left -= 1
        if not self.left:
            ENDED
            STOP()
            self.found["kernels"] = kernels_of(self.folder.name)
            self.folder.cleanup()
        return made
'''

_TENSORFLOW = '''
from types import SimpleNamespace

from tensorflow.tsl.profiler.protobuf import xplane_pb2

LINES = ""  # with one thread the caller's own runs the operators


def planes_of(path):
    """Planes of a trace, their lines and events, with names and durations."""
    space = xplane_pb2.XSpace()
    with open(path, "rb") as file:
        space.ParseFromString(file.read())
    for plane in space.planes:
        names = {key: value.name for key, value in plane.event_metadata.items()}
        lines = [
            SimpleNamespace(
                name=line.name,
                events=[
                    SimpleNamespace(name=names[event.metadata_id], duration_ns=event.duration_ps / 1000)
                    for event in line.events
                ],
            )
            for line in plane.lines
        ]
        yield SimpleNamespace(name=plane.name, lines=lines)


def kernel_of(name):
    """The operator of an event of an executor, `node:operator`; nothing for events of the runtime."""
    node, _, kind = name.rpartition(":")
    return kind if node and not node.endswith(":") and " " not in name else ""
'''

_JAX = '''
LINES = "tf_XLA"


def planes_of(path):
    """Planes of a trace."""
    return list(jax.profiler.ProfileData.from_file(path).planes)


def kernel_of(name):
    """The operator of an event, without the number behind it; nothing for events of the runtime."""
    return "" if "::" in name or " " in name else name.rsplit(".", 1)[0] if name.rpartition(".")[2].isdigit() else name
'''

_TORCH = '''
import json


def steps(state, model, named, buffers, optimizer, found):
    """The steps under the profiler."""
    kinds = [torch.profiler.ProfilerActivity.CPU]
    kinds += [torch.profiler.ProfilerActivity.CUDA] if DEVICE == "cuda" else []
    with torch.profiler.profile(activities=kinds) as profile:
        yield from enumerate(state["rates"])
        if DEVICE == "cuda":
            torch.cuda.synchronize()
    times = {}
    for event in profile.key_averages():
        own = event.self_device_time_total if DEVICE == "cuda" else event.self_cpu_time_total
        if own > 0:
            times[event.key] = int(own * 1000)  # of microseconds
    found["kernels"] = np.frombuffer(json.dumps(times).encode(), np.uint8).copy()
'''

_STEPPING: Mapping[str, str] = {
    "torch": _TORCH,
    "tensorflow": _TENSORFLOW + _TRACE.replace("STEP,", "subject.step,")
    .replace("START(", "tf.profiler.experimental.start(")
    .replace("STOP(", "tf.profiler.experimental.stop(")
    .replace("ENDED", "[value.numpy() for value in made]"),
    "jax": _JAX + _TRACE.replace("STEP,", "subject,")
    .replace("START(", "jax.profiler.start_trace(")
    .replace("STOP(", "jax.profiler.stop_trace(")
    .replace("ENDED", "jax.block_until_ready(made)"),
}  # fmt: skip


def profiled(loop: Loop) -> Loop:
    """The loop under its framework's profiler; it leaves FOUND behind."""
    return replace(loop, stepping=_STEPPING[loop.framework], more=(FOUND,))


def read(trained: Trained) -> dict[str, int]:
    """Nanoseconds by kernel, of all steps of a profiled loop."""
    found: dict[str, int] = json.loads(trained.found[FOUND].astype("uint8").tobytes())
    return found

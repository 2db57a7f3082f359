"""A model that a function makes: `module:function`, executed in a worker, and saved as a file there.

The function returns a Keras model, a torch.nn.Module or an onnx.ModelProto, or a pair of one and the arrays that it
takes. Where it has a parameter `weights` (keras.applications, torchvision.models) that is None: random weights, and
statistics of batch normalisation that go with them. A module of PyTorch needs arrays to be traced with: those of the
pair, or of its attribute `example_inputs`, or one of shape (1, 3, 224, 224) where it stems from torchvision or timm."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.conversions.model_file import FormatError, why_not
from harness.execute.pool import Job, Pool
from oracles.judge.outcome import Value

NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
DIGITS = "digits"
"""The embedded default: a network that is trained on scikit-learn's digits."""

_MAKE = """
def example_of(made, function):
    examples = getattr(made, "example_inputs", None)
    if examples is not None:
        return tuple(examples)
    if SHAPES:
        return tuple(torch.rand(shape) for shape in SHAPES)
    if function.__module__.split(".")[0] in ("torchvision", "timm"):
        return (torch.rand(1, 3, 224, 224),)
    raise ValueError(
        "how large its inputs are is not known: return (module, inputs), set example_inputs, or give --input-shapes"
    )


def settle_keras(model):
    # the statistics of batch normalisation become those of a random batch: with the initial ones, scores of random
    # weights shrink layer by layer until rounding decides between classes
    layers = [layer for layer in model._flatten_layers() if type(layer).__name__ == "BatchNormalization"]
    momenta = [layer.momentum for layer in layers]
    for layer in layers:
        layer.momentum = 0.0
    if layers:
        batch = [np.random.normal(size=[d or 4 for d in x.shape]).astype("float32") for x in model.inputs]
        model(batch if len(batch) > 1 else batch[0], training=True)
    for layer, momentum in zip(layers, momenta):
        layer.momentum = momentum


def settle_torch(module, examples):
    layers = [layer for layer in module.modules() if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm)]
    momenta = [layer.momentum for layer in layers]
    for layer in layers:
        layer.momentum = 1.0
    if layers:
        with torch.no_grad():
            module.train()(*[torch.cat([torch.randn_like(x) for _ in range(4)]) for x in examples])
    for layer, momentum in zip(layers, momenta):
        layer.momentum = momentum
    module.eval()


def seed(name):
    if name in sys.modules and name == "torch":
        sys.modules[name].manual_seed(SEED)
    if name in sys.modules and name == "keras":
        sys.modules[name].utils.set_random_seed(SEED)


def load(parameters):
    def run():
        global torch
        os.environ.setdefault("KERAS_BACKEND", "tensorflow")
        np.random.seed(SEED)
        function = FUNCTION()
        seed("torch")
        seed("keras")
        weights = "weights" in inspect.signature(function).parameters
        made = function(weights=None) if weights else function()
        made, given = made if isinstance(made, tuple) else (made, None)
        kinds = {f"{kind.__module__.split('.')[0]}.{kind.__name__}" for kind in type(made).__mro__}
        if "keras.Model" in kinds:
            if WEIGHTS:
                made.load_weights(WEIGHTS)
            elif weights:
                settle_keras(made)
            path = STEM + ".keras"
            made.save(path)
        elif "torch.Module" in kinds:
            import torch

            if WEIGHTS:
                made.load_state_dict(torch.load(WEIGHTS, map_location="cpu", weights_only=True))
            made.eval()
            examples = example_of(made, function) if given is None else tuple(map(torch.as_tensor, given))
            if weights and not WEIGHTS:
                settle_torch(made, examples)
            path = STEM + ".pt2"
            torch.export.save(torch.export.export(made, examples), path)
        elif "onnx.ModelProto" in kinds:
            import onnx

            path = STEM + ".onnx"
            onnx.save(made, path)
        else:
            raise TypeError(f"it returns a {type(made).__name__}, no Keras model, torch.nn.Module or onnx.ModelProto")
        told = np.frombuffer(json.dumps(path).encode(), np.uint8)
        return [told, *(np.asarray(array) for array in given or ())]

    return run
"""

_IMPORTED = """
def FUNCTION():
    sys.path.insert(0, FOLDER)
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(MODULE)
    except ImportError as error:
        raise ValueError(f"{MODULE} cannot be imported: {error}") from error
    if not callable(getattr(module, NAME, None)):
        raise ValueError(f"{MODULE} has no function {NAME}")
    return getattr(module, NAME)
"""


@dataclass(frozen=True)
class Made:
    """A file that a factory's model was saved as, and the arrays that the factory gave with it."""

    path: Path
    inputs: tuple[np.ndarray, ...]


def program(name: str, stem: Path, seed: int, shapes: Sequence[Sequence[int]] = (), weights: Path | None = None) -> str:
    """The text that makes the model. name: `module:function` or DIGITS; stem: where it is saved, without the suffix;
    shapes: of the inputs that a PyTorch module is traced with; weights: a file that its weights are read from."""
    module, _, function = name.partition(":")
    settings: Mapping[str, object] = {
        "MODULE": module,
        "NAME": function,
        "FOLDER": str(Path.cwd()),
        "STEM": str(stem.resolve()),
        "SEED": seed,
        "SHAPES": [list(shape) for shape in shapes],
        "WEIGHTS": str(weights.resolve()) if weights else "",
        "INPUTS": [],
        "PARAMETERS": [],
    }
    given = "\n".join(f"{key} = {value!r}" for key, value in settings.items())
    digits = (Path(__file__).parents[1] / "helpers" / "digits.py").read_text(encoding="utf-8")
    how = f"{digits}\n\ndef FUNCTION():\n    return digits\n" if name == DIGITS else _IMPORTED
    imports = "import importlib\nimport inspect\nimport json\nimport os\nimport sys\n\nimport numpy as np\n"
    return f"{imports}\n{given}\n\n{how}\n{_MAKE}"


def make(
    pool: Pool, name: str, stem: Path, seed: int, shapes: Sequence[Sequence[int]] = (), weights: Path | None = None
) -> Made:
    """Run the factory in a worker and save what it makes. Raises FormatError with its first line where that fails."""
    module = Path.cwd() / name.partition(":")[0].replace(".", "/")  # a file of the user's, or in the user's package
    package = Path.cwd() / name.partition(".")[0]
    code = (module.with_suffix(".py"), *sorted(package.rglob("*.py")))
    reads = (*code, weights) if weights else code
    writes = tuple(stem.with_name(stem.name + suffix) for suffix in (".keras", ".pt2", ".onnx"))
    job = Job("factory", (), program(name, stem, seed, shapes, weights), {}, own=True, reads=reads, writes=writes)
    (outcome,) = pool.run([job], confirm=False)
    pool.restart_worker("factory")  # what it imported and set is not carried on
    if not isinstance(outcome, Value):
        raise FormatError(f"{name} makes no model: {why_not(outcome)}")
    told, *given = outcome.outputs
    return Made(Path(json.loads(np.asarray(told).tobytes().decode())), tuple(given))

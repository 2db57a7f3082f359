"""PyTorch: pipelines of replicas. Each two ranks have the two stages of a pipeline and a share of every batch; ranks
with the same stage share its gradients (DistributedDataParallel), or its parameters, too (`fully_shard`)."""

from __future__ import annotations

from generators.training.runs import Training
from harness.strategies.strategy import Strategy, first_reason
from harness.strategies.torch import pipeline
from harness.strategies.torch.ddp import DDP, START, SUMMED
from harness.strategies.torch.fsdp import FULLY, MESH, SHARDED, TENSOR, WHOLE

STAGES = 2
"""Of each pipeline: ranks of one are neighbours."""
_DISTRIBUTE = """
def distribute(model, rank, world):
    start(rank, world)
    mesh = init_device_mesh("cpu", (world // {stages}, {stages}), mesh_dim_names=("data", "stage"))
    subject = Pipeline(model, rank % {stages}, mesh)
    own = [p for name, p in model.named_parameters() if subject.owner(name) == rank % {stages}]
    return subject, optimizer_of(own)


class Pipeline:
    \"\"\"The stages, of which this rank has one, and a schedule for each shape of a batch.\"\"\"

    def __init__(self, model, stage, mesh):
        self.model, self.group = model, mesh["stage"].get_group()
        self.count, self.numbers = {stages}, [stage]
        self.parts = stages(model, self.count)
        part = self.parts[stage]
        self.own = {wrapped}
        self.schedules = {{}}

    def schedule(self, x):
        \"\"\"Batches go in parts of one size: as few as there are stages, or a little more.\"\"\"
        if x.shape not in self.schedules:
            count = next(n for n in range(self.count, len(x) + 1) if len(x) % n == 0)
            stage = PipelineStage(self.own, self.numbers[0], self.count, torch.device("cpu"), group=self.group)
            self.schedules[x.shape] = schedules.{schedule}(stage, count, criterion_of, scale_grads=False)
        return self.schedules[x.shape]

    def owner(self, name):
        \"\"\"The stage that trains a parameter: 0 for one that no stage uses.\"\"\"
        found = [k for k, part in enumerate(self.parts) if name in dict(part.named_parameters())]
        return found[0] if found else 0

    def train(self):
        self.model.train()

    def eval(self):
        self.model.eval()
"""
_SHARE = """
def share(part, rank, world):
    \"\"\"The samples of this rank's replica.\"\"\"
    return np.array_split(part, world // {stages})[rank // {stages}]
"""


def _enough(training: Training, world: int) -> str | None:
    """The smallest share of a replica goes through all stages."""
    few = min(training.settings.part_sizes) // (world // STAGES) < STAGES
    return "fewer samples of a replica than stages" if few else None


def _grid(name: str, wrapped: str, schedule: str = "ScheduleGPipe") -> Strategy:
    return Strategy(
        name, "torch", (*SHARDED, *pipeline.PIPELINES), (4, 8),
        {
            "start": START, "stages": pipeline.STAGES,
            "distribute": _DISTRIBUTE.format(stages=STAGES, wrapped=wrapped, schedule=schedule),
            "share": _SHARE.format(stages=STAGES), "backward": pipeline.BACKWARD, "summed": SUMMED,
            "gathered": pipeline.GATHERED, "gradients": pipeline.GRADIENTS, "parameters": pipeline.PARAMETERS,
            "states": pipeline.STATES, "predict": pipeline.PREDICT, "module": pipeline.MODULE, "whole": WHOLE,
        },
        imports=(*pipeline.IMPORTS, DDP, FULLY, TENSOR, MESH), factor=f"(world // {STAGES})", shards=False,
        policy="autocast",
        unsupported=first_reason(pipeline.plain, pipeline.layers_for(lambda world: STAGES), _enough),
    )  # fmt: skip


_BY_DEFAULT = 'DistributedDataParallel(part, process_group=mesh["data"].get_group())'
# without it, the reducer's buckets are rebuilt after a stage's second backward pass: an internal assertion fails
_REPLICATED = _BY_DEFAULT.replace("())", "(), find_unused_parameters=True)")
_SHARDED = 'fully_shard(part, mesh=mesh["data"])'
STRATEGIES = (
    _grid("torch-pipeline-ddp", _REPLICATED),
    # apart, since what it does wrong at the second batch is known
    _grid("torch-pipeline-ddp-by-default", _BY_DEFAULT),
    _grid("torch-pipeline-ddp-1f1b", _REPLICATED, "Schedule1F1B"),
    _grid("torch-pipeline-fully-shard", _SHARDED),
)

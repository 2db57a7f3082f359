"""Rejection  the run   torchrec-rows on 1 ranks vs one device

ran with numpy 2.4.6, torch 2.13.0+cpu, torchrec 1.8.0, fbgemm-gpu-cpu 1.8.0 (environment torchrec)
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['torch', 'torch.distributed', 'torch._dynamo', 'torch.nn', 'torch.nn.parallel', 'torch.distributed.optim', 'torchrec', 'torchrec.distributed', 'torchrec.quant']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import os

import numpy as np
import torch
import torch.distributed as dist
import torchrec
from torchrec.distributed import sharding_plan
from torchrec.distributed.model_parallel import DefaultDataParallelWrapper, DistributedModelParallel
from torchrec.distributed.types import ShardingEnv, ShardingPlan
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder

DTYPE = torch.float32
BATCHES = [(0, 2)]  # samples of each step: the first, and the one after the last
FROZEN = []
FACTOR = lambda world: world  # of the loss on each rank, so that what the ranks make of their gradients is the gradient


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = torch.nn.EmbeddingBag(5, 8, mode="mean")
        self.l2 = torch.nn.Linear(4, 8, bias=True)
        self.l4 = torch.nn.Linear(8, 3, bias=True)

    def forward(self, x):
        l0 = x[:, 0:4]
        l1 = self.l1(x[:, 4:6].round().long())
        l2 = self.l2(l0)
        l3 = l2 + l1
        l4 = self.l4(l3)
        return l4


def criterion(outputs, y, coefficient):
    """The sum of the samples' losses, each times its coefficient."""
    return (torch.nn.functional.cross_entropy(outputs, y, reduction="none") * coefficient).sum()


OPTIMIZER, OPTIONS = torch.optim.SGD, dict(lr=0.5, momentum=0.0, weight_decay=0.0, nesterov=False)


def optimizer_of(parameters):
    return OPTIMIZER(parameters, **OPTIONS)


def distribute(model, rank, world):
    start(rank, world)
    subject = tables_of(model, rank, world)
    return subject, optimizer_of(p for p in subject.parameters() if not hasattr(p, "_in_backward_optimizers"))

def share(part, rank, world):
    """The samples of a batch that this rank has: as even a split as there is, the first ranks' shares being larger."""
    return np.array_split(part, world)[rank]

def backward(subject, x, y, coefficient, last, world):
    """Adds the gradients of these samples; returns their part of the loss. last: the optimiser steps next."""
    loss = criterion(subject(x), y, coefficient)
    (loss * FACTOR(world)).backward()
    return loss.detach()

def summed(value, world):
    """The sum over all ranks."""
    value = value.clone()
    dist.all_reduce(value)
    return value

def predict(subject, x):
    return subject(x)

def module(subject):
    """The model itself, with the names that it was given."""
    return subject

def whole(value):
    """All of a tensor that may be spread over the ranks."""
    return value

def gradients(subject):
    own = {(n, ""): p.grad for n, p in subject.named_parameters() if p.requires_grad and p.grad is not None}
    return {name: value for (name, _), value in together(subject, own).items()}

def clip(subject, limit):
    """By the norm of all shards together; no rank has it."""
    norm = torch.sqrt(sum((value**2).sum() for value in gradients(subject).values()))
    for parameter in subject.parameters():
        if parameter.grad is not None:
            parameter.grad.mul_(torch.clamp(limit / (norm + 1e-6), max=1.0))

def parameters(subject):
    own = {(name, ""): parameter.detach() for name, parameter in subject.named_parameters()}
    return {name: value for (name, _), value in together(subject, own).items()}

def buffers(subject):
    return {}

def states(subject, optimizer):
    """What the optimiser keeps of each parameter."""
    own = {
        (name, key): value
        for name, parameter in subject.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, torch.Tensor)
    }
    return {f"{name}.{key}": value for (name, key), value in together(subject, own).items()}

def start(rank, world):
    """One group of processes for the whole life of this one."""
    torch.set_num_threads(1)
    if not dist.is_initialized():
        meeting = os.environ.get("RENDEZVOUS", "env://")
        dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world)

def sharder():
    """What spreads a collection of tables; with nothing told, results and gradients travel as they are."""
    return EmbeddingBagCollectionSharder()

def spread(world, columns):
    """Which ranks have what of a table of so many columns."""
    return sharding_plan.row_wise()

class Table(torch.nn.Module):
    """A table in the place of torch.nn.EmbeddingBag."""

    def __init__(self, bag):
        super().__init__()
        count, size = bag.weight.shape
        mode = torchrec.PoolingType.MEAN if bag.mode == "mean" else torchrec.PoolingType.SUM
        config = torchrec.EmbeddingBagConfig(
            name="table", num_embeddings=count, embedding_dim=size, feature_names=["bag"], pooling=mode
        )
        self.inner = torchrec.EmbeddingBagCollection(tables=[config], device=torch.device("cpu"))

    def forward(self, rows, begins=None):
        """Rows of a matrix, or between where bags begin."""
        if begins is None:
            lengths = torch.full((len(rows),), rows.shape[1])
        else:
            lengths = torch.diff(begins, append=torch.tensor([len(rows)]))
        bags = torchrec.KeyedJaggedTensor(keys=["bag"], values=rows.flatten(), lengths=lengths)
        return self.inner(bags).values()

def tables_of(model, rank, world):
    """The model over the ranks, its tables as they are spread, with the values that they had."""
    given, plans = {}, {}
    for name, bag in list(model.named_children()):
        if isinstance(bag, torch.nn.EmbeddingBag):
            given[name] = bag.weight.detach()
            table = Table(bag).requires_grad_(name + ".weight" not in FROZEN)
            plan = {"table": spread(world, bag.embedding_dim)}
            plans[f"{name}.inner"] = sharding_plan.construct_module_sharding_plan(
                table.inner, plan, sharder(), world, world, "cpu"
            )
            setattr(model, name, table)
    group = ShardingEnv.from_process_group(dist.group.WORLD)
    subject = DistributedModelParallel(
        model, group, torch.device("cpu"), ShardingPlan(plans), [sharder()],
        data_parallel_wrapper=DefaultDataParallelWrapper(find_unused_parameters=True),
    )
    subject.given = given
    with torch.no_grad():
        for name, parameter in subject.named_parameters():
            bag, own = named(name), place(subject, name)
            if own:
                parameter.copy_(given[bag][own].reshape(parameter.shape))
    return subject


def named(name):
    """The layer that a parameter is of."""
    return name.removeprefix("module.").split(".")[0]


def place(subject, name):
    """Which rows and columns of a table this rank has; None: none of them, or it is no table."""
    if named(name) not in subject.given:
        return None
    value = subject.state_dict()[name]
    if not hasattr(value, "local_shards"):
        return slice(None), slice(None)
    shards = [shard.metadata for shard in value.local_shards()]
    assert len(shards) <= 1
    return next((tuple(slice(o, o + s) for o, s in zip(m.shard_offsets, m.shard_sizes)) for m in shards), None)


def together(subject, own):
    """All of what ranks have, by the parameter's name and a key: own tensors, shards put together."""
    parts = [None] * dist.get_world_size()
    mine = [(name, key, place(subject, name), value) for (name, key), value in own.items()]
    dist.all_gather_object(parts, mine)
    found = {}
    for name, key, at, value in (entry for part in parts for entry in part):
        bag = named(name)
        if at and value.ndim:
            full = found.setdefault((f"{bag}.weight", key), torch.zeros_like(subject.given[bag]))
            full[at] = value.view_as(full[at])
        elif bag not in subject.given:
            found.setdefault((name.removeprefix("module."), key), value)
        elif at:
            found.setdefault((f"{bag}.weight", key), value)
    return found


def train(rank, world, arrays):
    """All that is compared, by name, whole on every rank."""
    torch.manual_seed(0)
    data = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
    x, y, coefficient = data["x"], data["y"], data["coefficient"]
    model = Model().to(DTYPE)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(data["initial." + name])
            parameter.requires_grad_(name not in FROZEN)
    subject, optimizer = distribute(model, rank, world)
    found = {}
    subject.train()
    for step, (first, last) in enumerate(BATCHES):
        optimizer.zero_grad()
        total = torch.zeros((), dtype=DTYPE)
        parts = np.array_split(np.arange(first, last), 3)
        for number, part in enumerate(parts):
            mine = share(part, rank, world)
            loss = backward(subject, x[mine], y[mine], coefficient[mine], number == len(parts) - 1, world)
            total += loss
        found[f"loss.{step}"] = summed(total, world)
        if step == 0:
            found |= {f"gradient.{name}": value for name, value in gradients(subject).items()}
        optimizer.step()
    subject.eval()
    with torch.no_grad():
        found["prediction"] = predict(subject, x)
    found |= {f"parameter.{name}": value for name, value in parameters(subject).items()}
    found |= {f"buffer.{name}": value for name, value in buffers(subject).items()}
    found |= {f"state.{name}": value for name, value in states(subject, optimizer).items()}
    return {name: value.detach().cpu().numpy().copy() for name, value in found.items()}


# ---- its arrays, and what a correct run returns: value, and how far from it (inf: anything) ----

import ctypes
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from numpy import array, inf, nan

WORLD = 1
VARIABLES = {}
SYMPTOM = 'rejected'
SECONDS = 60.0  # for all ranks
GRACE = 3.0  # for the others once one has ended in another way than well: they wait for it, as a rule
ZERO_SIGNS = False
ARRAYS = {
    'x': array([[-0.6485388875007629, 1.0817162990570068, 0.9966933727264404, 1.2161710262298584, 3.0, 3.0], [0.12324532866477966, 1.0878499746322632, -1.3261464834213257, 0.1754656732082367, 4.0, 2.0]], dtype='float32'),
    'y': array([2, 0], dtype='int64'),
    'coefficient': array([0.5, 0.5], dtype='float32'),
    'initial.l1.weight': array([[-0.29727229475975037, -0.20076127350330353, -0.23673191666603088, -0.2910952866077423, -0.25077947974205017, 0.08044460415840149, 0.1043875440955162, 0.42827674746513367], [0.11287441849708557, 0.5713422298431396, -0.8929740190505981, -0.09369580447673798, 0.11959300935268402, 0.08504340797662735, -0.247671976685524, 0.5702216625213623], [-0.16878001391887665, 1.0920536518096924, 0.670847475528717, 0.026299938559532166, -0.1411396712064743, 0.3238774538040161, -0.18769751489162445, -0.591722846031189], [-0.0589018277823925, -0.8960714936256409, -0.0005533887888304889, 0.1635250747203827, 0.3358663320541382, -0.11811269074678421, 0.07563700526952744, 0.02956339158117771], [-0.031085209921002388, -0.5240885615348816, -0.5391156673431396, 0.7279348969459534, -0.20160509645938873, -0.21374917030334473, 0.1333760917186737, 0.513159990310669]], dtype='float32'),
    'initial.l2.weight': array([[0.16504159569740295, -0.28903430700302124, -0.5121409893035889, 0.06526486575603485], [-0.08348939567804337, 0.08544784784317017, -0.28599169850349426, -0.6295766830444336], [-0.2317093014717102, -0.04986630752682686, -0.47938665747642517, -0.23023344576358795], [-0.38070330023765564, 0.7961452603340149, 0.05846002325415611, -0.26292684674263], [0.3041304349899292, -1.2314233779907227, 0.3302941918373108, 0.8864200711250305], [-0.5918294787406921, 0.861880898475647, -0.2420286387205124, 0.18647851049900055], [-0.4412989020347595, -0.02155548706650734, 0.06618793308734894, -0.3126126825809479], [0.6268010139465332, 0.26436275243759155, 0.016131097450852394, -0.4805770516395569]], dtype='float32'),
    'initial.l2.bias': array([0.14107142388820648, 0.05910844728350639, -0.058250945061445236, -0.07930716127157211, 0.11533892899751663, 0.02547609619796276, -0.004929740447551012, 0.1889122724533081], dtype='float32'),
    'initial.l4.weight': array([[0.20777584612369537, -0.0661930963397026, -0.26525288820266724, 0.16805149614810944, -0.14844633638858795, -0.4686644971370697, 0.16540499031543732, 0.1369711011648178], [0.5611271858215332, -0.4315408766269684, -0.6654332280158997, -0.18355008959770203, -0.5559190511703491, 0.03908218815922737, -0.19932639598846436, -0.6055507659912109], [-0.4866813123226166, 0.16228607296943665, -0.09128250926733017, -0.3159805238246918, 0.3096443712711334, -0.39396950602531433, 0.6586323976516724, -0.26549968123435974]], dtype='float32'),
    'initial.l4.bias': array([-0.002079201862215996, -0.21647480130195618, -0.08942460268735886], dtype='float32'),
}
EXPECTED = {
    'loss.0': array(1.2466819127518898, dtype='float64'),
    'gradient.l1.weight': array([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.03083605687867829, -0.04215544497827004, -0.04777544292666983, -0.05533981185175741, -0.04275077659998572, 0.06681627999948822, -0.03652093829203232, -0.10386432394087225], [0.3766022411056809, -0.1949198737118329, -0.18319780840661626, 0.09203316999315206, -0.29813924939822234, 0.11508633686219646, -0.2999112746266733, -0.05181651161304368], [0.03083605687867829, -0.04215544497827004, -0.04777544292666983, -0.05533981185175741, -0.04275077659998572, 0.06681627999948822, -0.03652093829203232, -0.10386432394087225]], dtype='float64'),
    'gradient.l2.weight': array([[-0.2366403985474953, 0.4744667898518701, 0.29357070107947886, 0.4688340730045701], [0.11602219470614747, -0.3025656039046687, -0.08246675611127056, -0.25184956990972407], [0.10703470252539914, -0.3021130840566054, -0.05587757027468371, -0.2395657671648351], [-0.07332783628036126, -0.02084904580270021, 0.23850624436399234, 0.09250760011418721], [0.182817230099556, -0.41551494794228705, -0.18376582992164006, -0.37759090449261856], [-0.0581683760977572, 0.269862943387534, -0.06251056027131806, 0.16341259550949314], [0.18550205430942315, -0.4038775176237023, -0.2020553520518929, -0.3775597446878419], [0.008003437314417824, -0.28202836950065613, 0.223833442171719, -0.09946698714929376]], dtype='float64'),
    'gradient.l2.bias': array([0.4382743548630375, -0.27923076366837296, -0.2787486942599559, -0.018646453710362762, -0.3836408025981938, 0.2487188968611729, -0.3729531512107379, -0.2595451594947882], dtype='float64'),
    'gradient.l4.weight': array([[-0.2170445762112567, -0.4028986563268886, -0.23628367665311392, -0.1926028224242338, 0.5274282937562673, -0.2527612665752994, 0.07768097351167154, -0.17496297889543336], [-0.10663528138846337, -0.31787660714345334, -0.07166444002090644, 0.5206724366827913, -0.3278247490034625, 0.6785318110342233, -0.059388269782455726, -0.02906982134122746], [0.32367985759972007, 0.7207752634703418, 0.30794811667402033, -0.32806961425855735, -0.19960354475280498, -0.42577054445892387, -0.01829270372921582, 0.20403280023666082]], dtype='float64'),
    'gradient.l4.bias': array([-0.18684424204067085, 0.5421121104369125, -0.3552678683962416], dtype='float64'),
    'prediction': array([[-1.190993913544897, -2.3947747952844924, 2.5879198649759485], [0.87811387297644, -2.0506083655882845, -1.5580878397790312]], dtype='float64'),
    'parameter.l1.weight': array([[-0.29727229475975037, -0.20076127350330353, -0.23673191666603088, -0.2910952866077423, -0.25077947974205017, 0.08044460415840149, 0.1043875440955162, 0.42827674746513367], [0.11287441849708557, 0.5713422298431396, -0.8929740190505981, -0.09369580447673798, 0.11959300935268402, 0.08504340797662735, -0.247671976685524, 0.5702216625213623], [-0.1841980423582158, 1.1131313742988274, 0.694735196992052, 0.05396984448541087, -0.11976428290648145, 0.290469313804272, -0.1694370457456083, -0.5397906840607528], [-0.24720294833523296, -0.7986115567697244, 0.09104551541447764, 0.11750848972380666, 0.48493595675324935, -0.17565585917788246, 0.22559264258286407, 0.05547164738769955], [-0.04650323836034154, -0.5030108390457466, -0.5152279458798047, 0.7556048028718321, -0.18022970815939587, -0.24715731030308885, 0.15163656086468985, 0.5650921522811051]], dtype='float64'),
    'parameter.l2.weight': array([[0.2833617949711506, -0.5262677019289563, -0.6589263398433283, -0.1691521707462502], [-0.1415004930311171, 0.2367306497955045, -0.24475832044785897, -0.5036518980895716], [-0.2852266527344098, 0.10119023450147585, -0.45144787233908334, -0.1104505621811704], [-0.34403938209747503, 0.806569783235365, -0.06079309892784006, -0.3091806467997236], [0.2127218199401512, -1.023665904019579, 0.4221771067981308, 1.0752155233713399], [-0.5627452906918136, 0.7269494267818799, -0.21077335858485335, 0.10477221274425398], [-0.5340499291894711, 0.1803832717453438, 0.1672156091132954, -0.12383281023702691], [0.6227992952893243, 0.4053769371879196, -0.0957856236350071, -0.43084355806491]], dtype='float64'),
    'parameter.l2.bias': array([-0.07806575354331227, 0.19872382911769287, 0.08112340206853272, -0.06998393441639073, 0.3071593302966135, -0.09888335223262369, 0.18154683515781794, 0.3186848522007022], dtype='float64'),
    'parameter.l4.weight': array([[0.31629813422932374, 0.1352562318237417, -0.1471110498761103, 0.2643529073602263, -0.4121604832667216, -0.34228386384942, 0.12656450355960155, 0.22445259061253447], [0.6144448265157649, -0.2726025730552417, -0.6296010080054464, -0.44388630793909767, -0.3920066766686179, -0.3001837173578843, -0.1696322610972365, -0.5910158553205972], [-0.6485212411224766, -0.19810155876573426, -0.24525656760434034, -0.1519457166954131, 0.4094461436475359, -0.1810842337958524, 0.6677787495162802, -0.36751608135269015]], dtype='float64'),
    'parameter.l4.bias': array([0.09134291915811943, -0.48753085652041245, 0.08820933151076193], dtype='float64'),
}
ALLOWED = {
    'loss.0': array(2.7132786501775743e-06, dtype='float64'),
    'gradient.l1.weight': array([[3.3042431746288514e-07, 3.3042431746288514e-07, 3.3042431746288514e-07, 3.3042431746288514e-07, 3.3042431746288514e-07, 3.3042431746288514e-07, 3.3042431746288514e-07, 3.3042431746288514e-07], [3.3042431746288514e-07, 3.3042431746288514e-07, 3.3042431746288514e-07, 3.3042431746288514e-07, 3.3042431746288514e-07, 3.3042431746288514e-07, 3.3042431746288514e-07, 3.3042431746288514e-07], [7.002040275185272e-07, 6.992101621061671e-07, 7.156020774192708e-07, 5.612467471960526e-07, 7.358714077949125e-07, 6.33003219556525e-07, 5.510332423778756e-07, 7.726429249229834e-07], [2.492548164661957e-06, 1.1264103075761835e-06, 1.589660794754676e-06, 9.762068174121505e-07, 1.4616937220401197e-06, 9.464422283710997e-07, 2.3561669182629292e-06, 1.1129052693593462e-06], [6.97239817391173e-07, 6.721677438015213e-07, 8.194635953053766e-07, 5.536608989131876e-07, 7.247831191742927e-07, 5.884114093122262e-07, 5.019737474114009e-07, 6.36006589676796e-07]], dtype='float64'),
    'gradient.l2.weight': array([[1.5179095268129548e-06, 3.4627695559232713e-06, 2.6988660220217568e-06, 1.9924424466749694e-06], [1.1036531213229946e-06, 1.7504773998827708e-06, 1.9019492481514705e-06, 1.4785702675850143e-06], [1.136044273084966e-06, 2.0500441377487655e-06, 2.266842664401215e-06, 1.8203969522028315e-06], [9.833486571365173e-07, 1.1446223951855799e-06, 1.939585112901724e-06, 1.3303465806881886e-06], [1.3661738836238001e-06, 2.2821411301178503e-06, 2.864014823704213e-06, 1.9847700691924935e-06], [9.492695024483683e-07, 1.7590076375752782e-06, 1.874172132934054e-06, 1.0823419220282458e-06], [1.7169682045681021e-06, 3.1730600227079482e-06, 2.285132529538619e-06, 2.692452642363329e-06], [9.778501732528046e-07, 2.5642381553169804e-06, 1.8746572405391061e-06, 1.504917635823707e-06]], dtype='float64'),
    'gradient.l2.bias': array([2.648954318652779e-06, 1.9322194131357903e-06, 1.902077634247014e-06, 7.738826401507011e-07, 2.0095384237273566e-06, 1.1457251933761831e-06, 1.7593228109225326e-06, 2.0614942011071523e-06], dtype='float64'),
    'gradient.l4.weight': array([[1.7262906489403125e-06, 2.4296705776778814e-06, 1.5804862094408192e-06, 2.163723767426504e-06, 2.9770180228392563e-06, 2.1806052920721406e-06, 1.0829888430212789e-06, 1.493455077646491e-06], [2.6386019299676997e-06, 4.770209065068595e-06, 2.6259717481797945e-06, 3.475858603105977e-06, 5.181581776513208e-06, 3.852400884261935e-06, 1.0542912576274235e-06, 2.2922219902977865e-06], [1.9376809093657173e-06, 4.946213256348353e-06, 1.6281394763484014e-06, 2.494579988360428e-06, 1.836341562242324e-06, 3.0750945514469656e-06, 1.1511739140015908e-06, 1.4828576338307985e-06]], dtype='float64'),
    'gradient.l4.bias': array([1.0976809164964895e-06, 3.528456589251503e-06, 2.4407279406536963e-06], dtype='float64'),
    'prediction': array([[7.603099387899535e-06, 1.9931174039537145e-05, 1.710083884284735e-05], [7.201138157619548e-06, 1.3044591914546732e-05, 8.813086333175482e-06]], dtype='float64'),
    'parameter.l1.weight': array([[7.104327148788059e-07, 6.19397416912193e-07, 5.821144923867649e-07, 7.670880028953775e-07, 7.020569712246072e-07, 3.5316500235360593e-07, 4.3848817787850436e-07, 1.0087253934365492e-06], [4.2525229770884465e-07, 1.2195672516313039e-06, 1.9242927153939604e-06, 3.628934591715094e-07, 4.6141857212855797e-07, 3.764228473368547e-07, 6.556871123830632e-07, 1.2104862587847265e-06], [5.536763918363175e-07, 2.2079589082363293e-06, 1.5666243323121366e-06, 3.41717783906575e-07, 4.850399109370939e-07, 8.095297804634371e-07, 5.410330328423911e-07, 1.0476899524299202e-06], [1.6828960179376522e-06, 1.4640144455106544e-06, 8.818305499316997e-07, 5.074923567345403e-07, 1.4055644602561563e-06, 7.296438085413234e-07, 1.4938359194207183e-06, 6.517501287978581e-07], [4.47482762945901e-07, 1.1989814020768597e-06, 1.1472287876944674e-06, 1.4569641001477335e-06, 7.270677549256176e-07, 7.334171017968727e-07, 4.6713786125882136e-07, 1.312360832591963e-06]], dtype='float64'),
    'parameter.l2.weight': array([[9.759546946527196e-07, 2.1043914753799902e-06, 1.419020310156069e-06, 1.1061930097924834e-06], [7.742380390070606e-07, 1.269094476489543e-06, 1.3944647329897022e-06, 1.5019177331668837e-06], [8.749436359247563e-07, 1.0767412641341967e-06, 1.4299686896307614e-06, 9.512624453026299e-07], [1.0769996994946743e-06, 1.8263907152135886e-06, 1.0711221629342089e-06, 1.020630373833702e-06], [9.170951768876002e-07, 1.8720804128895948e-06, 1.258673318329281e-06, 2.505143816503733e-06], [1.2708107823277527e-06, 1.8674245347709696e-06, 1.0357017747864046e-06, 6.285160387993345e-07], [1.6197857593325143e-06, 1.75264995593191e-06, 1.0507812753826422e-06, 1.4901005672851358e-06], [1.5373289811426154e-06, 1.533210009149717e-06, 8.819374326329089e-07, 1.2752698181440831e-06]], dtype='float64'),
    'parameter.l2.bias': array([1.2550313019839135e-06, 1.0421853366411753e-06, 9.108908958582303e-07, 3.5514088581754055e-07, 1.0383716474199575e-06, 4.749483484787173e-07, 9.360517925433166e-07, 8.962791469482989e-07], dtype='float64'),
    'parameter.l4.weight': array([[1.157871905499515e-06, 1.1900520043032397e-06, 8.474436688053054e-07, 1.4678301980225116e-06, 1.8479704520329016e-06, 1.0983467539007226e-06, 6.178537792081955e-07, 8.451051123551725e-07], [1.6099700027673696e-06, 2.1262279454956304e-06, 1.0766948675868832e-06, 1.5212269064136097e-06, 2.457845089021733e-06, 2.139681960815911e-06, 6.488286943006254e-07, 1.594476527701997e-06], [1.38467151870962e-06, 2.4177808277887016e-06, 8.622066750551943e-07, 1.3420557949366342e-06, 1.39640391588086e-06, 1.5519426161930032e-06, 1.6150715307512664e-06, 1.0424622720788123e-06]], dtype='float64'),
    'parameter.l4.bias': array([5.292127173711963e-07, 1.617282279047898e-06, 1.1316043203636045e-06], dtype='float64'),
}
TYPES = {'loss.0': ('float32', ()), 'gradient.l1.weight': ('float32', (5, 8)), 'gradient.l2.weight': ('float32', (8, 4)), 'gradient.l2.bias': ('float32', (8,)), 'gradient.l4.weight': ('float32', (3, 8)), 'gradient.l4.bias': ('float32', (3,)), 'prediction': ('float32', (2, 3)), 'parameter.l1.weight': ('float32', (5, 8)), 'parameter.l2.weight': ('float32', (8, 4)), 'parameter.l2.bias': ('float32', (8,)), 'parameter.l4.weight': ('float32', (3, 8)), 'parameter.l4.bias': ('float32', (3,))}


def wrong(output, expected, allowed, dtype, shape):
    """What is wrong with one output, or None."""
    if str(output.dtype) != dtype or output.shape != tuple(shape):
        return f"{output.dtype}{output.shape} instead of {dtype}{tuple(shape)}"
    if not shape and output.ndim == 0:
        output, expected, allowed = output.reshape(1), expected.reshape(1), allowed.reshape(1)
    if "complex" in dtype:  # the parts side by side: NaN and infinities in place, then the modulus of the difference
        got, bad, distance = output, np.zeros(output.shape, bool), np.zeros(output.shape)
        for a, b in ((output.real, expected.real), (output.imag, expected.imag)):
            bad |= (np.isnan(a) != np.isnan(b)) | ((np.isinf(a) | np.isinf(b)) & ~np.isnan(b) & (a != b))
            with np.errstate(all="ignore"):
                distance = np.hypot(distance, np.where(np.isfinite(a) & np.isfinite(b), a.astype("float64") - b, 0.0))
            if ZERO_SIGNS:
                bad |= (a == 0) & (b == 0) & (allowed == 0) & (np.signbit(a) != np.signbit(b))
        bad = ~np.isinf(allowed) & (bad | (distance > allowed))
    elif "float" in dtype:
        got = output.astype("float64")
        with np.errstate(all="ignore"):
            same = (got == expected) | (np.isnan(got) & np.isnan(expected))
            near = np.isfinite(got) & np.isfinite(expected) & (np.abs(got - expected) <= allowed)
        bad = ~np.isinf(allowed) & ~same & ~near
        if ZERO_SIGNS:
            bad |= (allowed == 0) & (got == 0) & (expected == 0) & (np.signbit(got) != np.signbit(expected))
    else:
        got, bad = output, ~np.isinf(allowed) & (output != expected)
    if not bad.any():
        return None
    at = tuple(int(i[0]) for i in np.nonzero(bad))
    detail = f"expected {expected[at]}, got {got[at]}, allowed {allowed[at]:.3g}"
    return f"{bad.sum()} of {bad.size} wrong, at {at}: {detail}"


def launched():
    """The number of this rank and how many there are, as this file, torchrun or TF_CONFIG says; None: not launched."""
    if "RANK" in os.environ:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if "TF_CONFIG" in os.environ:
        config = json.loads(os.environ["TF_CONFIG"])
        return config["task"]["index"], len(config["cluster"]["worker"])
    return None


def rank(number, world):
    """One rank: 1 where it returns something wrong."""
    try:
        found = train(number, world, ARRAYS)
    except Exception as error:
        print(f"rank {number}: {type(error).__name__}: {error}", flush=True)
        return 1 if SYMPTOM == "rejected" else 77
    if set(found) != set(EXPECTED):
        print(f"rank {number}: other names than expected: {sorted(set(found) ^ set(EXPECTED))}", flush=True)
        return 1
    problems = {name: wrong(found[name], EXPECTED[name], ALLOWED[name], *TYPES[name]) for name in EXPECTED}
    for name, problem in problems.items():
        if problem:
            print(f"rank {number}: {name}: {problem}", flush=True)
    return int(any(problems.values()))


def main():
    if launched():
        if "RENDEZVOUS" in os.environ and sys.platform == "linux":
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: no rank outlives the process that started it
        code = rank(*launched())
        sys.stdout.flush()
        os._exit(code)  # threads of a process group that is taken down at the end may abort a rank that is done
    with tempfile.TemporaryDirectory() as folder:
        meeting = {**VARIABLES, "RENDEZVOUS": f"file://{folder}/meet", "WORLD_SIZE": str(WORLD), "GLOO_SOCKET_IFNAME": "lo"}
        ranks = [
            subprocess.Popen([sys.executable, __file__], env={**os.environ, **meeting, "RANK": str(number)})
            for number in range(WORLD)
        ]
        deadline = time.monotonic() + SECONDS
        while None in (codes := [process.poll() for process in ranks]) and time.monotonic() < deadline:
            if any(codes):
                deadline = min(deadline, time.monotonic() + GRACE)
            time.sleep(0.02)
        for process in ranks:
            process.kill()
            process.wait()
    crashed, hanging = any(code is not None and code < 0 for code in codes), None in codes
    shown = {"crash": crashed, "timeout": hanging and not crashed}.get(SYMPTOM, 1 in codes)
    told = "reproduced" if shown else "could not be run" if any(code != 0 for code in codes) else "not reproduced"
    print(told, "- exit statuses of the ranks:", codes)
    return {"reproduced": 1, "not reproduced": 0}.get(told, 77)


if __name__ == "__main__":
    sys.exit(main())

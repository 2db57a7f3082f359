"""Rejection  the run   torchrec-rows-fused on 4 ranks vs one device

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
from torch.distributed.optim import _apply_optimizer_in_backward

DTYPE = torch.float32
BATCHES = [(0, 8)]  # samples of each step: the first, and the one after the last
FROZEN = []
FACTOR = lambda world: world  # of the loss on each rank, so that what the ranks make of their gradients is the gradient


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = torch.nn.EmbeddingBag(5, 8, mode="sum")
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
            _apply_optimizer_in_backward(OPTIMIZER, table.inner.parameters(), {"lr": OPTIONS["lr"]})
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
        parts = np.array_split(np.arange(first, last), 1)
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

WORLD = 4
VARIABLES = {}
SYMPTOM = 'rejected'
SECONDS = 60.0  # for all ranks
GRACE = 3.0  # for the others once one has ended in another way than well: they wait for it, as a rule
ZERO_SIGNS = False
ARRAYS = {
    'x': array([[-0.6485388875007629, 1.0817162990570068, 0.9966933727264404, 1.2161710262298584, 3.0, 3.0], [0.12324532866477966, 1.0878499746322632, -1.3261464834213257, 0.1754656732082367, 4.0, 2.0], [1.2572060823440552, 0.08347725123167038, -0.026002639904618263, 1.0280472040176392, 0.0, 4.0], [0.7222959995269775, -1.1646071672439575, 0.13009783625602722, -0.4263991415500641, 4.0, 0.0], [-0.2081262767314911, -0.24448838829994202, 1.5305595397949219, -1.0293759107589722, 1.0, 4.0], [0.0013682772405445576, 0.6564439535140991, 0.7252574563026428, -1.9005035161972046, 2.0, 1.0], [-0.08866328001022339, 0.7379218935966492, 0.23262818157672882, 0.46381664276123047, 2.0, 1.0], [0.2721187472343445, 1.856966257095337, 0.23587502539157867, -0.3369811475276947, 3.0, 0.0]], dtype='float32'),
    'y': array([2, 0, 2, 1, 2, 0, 0, 1], dtype='int64'),
    'coefficient': array([0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125], dtype='float32'),
    'initial.l1.weight': array([[-0.29727229475975037, -0.20076127350330353, -0.23673191666603088, -0.2910952866077423, -0.25077947974205017, 0.08044460415840149, 0.1043875440955162, 0.42827674746513367], [0.11287441849708557, 0.5713422298431396, -0.8929740190505981, -0.09369580447673798, 0.11959300935268402, 0.08504340797662735, -0.247671976685524, 0.5702216625213623], [-0.16878001391887665, 1.0920536518096924, 0.670847475528717, 0.026299938559532166, -0.1411396712064743, 0.3238774538040161, -0.18769751489162445, -0.591722846031189], [-0.0589018277823925, -0.8960714936256409, -0.0005533887888304889, 0.1635250747203827, 0.3358663320541382, -0.11811269074678421, 0.07563700526952744, 0.02956339158117771], [-0.031085209921002388, -0.5240885615348816, -0.5391156673431396, 0.7279348969459534, -0.20160509645938873, -0.21374917030334473, 0.1333760917186737, 0.513159990310669]], dtype='float32'),
    'initial.l2.weight': array([[0.16504159569740295, -0.28903430700302124, -0.5121409893035889, 0.06526486575603485], [-0.08348939567804337, 0.08544784784317017, -0.28599169850349426, -0.6295766830444336], [-0.2317093014717102, -0.04986630752682686, -0.47938665747642517, -0.23023344576358795], [-0.38070330023765564, 0.7961452603340149, 0.05846002325415611, -0.26292684674263], [0.3041304349899292, -1.2314233779907227, 0.3302941918373108, 0.8864200711250305], [-0.5918294787406921, 0.861880898475647, -0.2420286387205124, 0.18647851049900055], [-0.4412989020347595, -0.02155548706650734, 0.06618793308734894, -0.3126126825809479], [0.6268010139465332, 0.26436275243759155, 0.016131097450852394, -0.4805770516395569]], dtype='float32'),
    'initial.l2.bias': array([0.14107142388820648, 0.05910844728350639, -0.058250945061445236, -0.07930716127157211, 0.11533892899751663, 0.02547609619796276, -0.004929740447551012, 0.1889122724533081], dtype='float32'),
    'initial.l4.weight': array([[0.20777584612369537, -0.0661930963397026, -0.26525288820266724, 0.16805149614810944, -0.14844633638858795, -0.4686644971370697, 0.16540499031543732, 0.1369711011648178], [0.5611271858215332, -0.4315408766269684, -0.6654332280158997, -0.18355008959770203, -0.5559190511703491, 0.03908218815922737, -0.19932639598846436, -0.6055507659912109], [-0.4866813123226166, 0.16228607296943665, -0.09128250926733017, -0.3159805238246918, 0.3096443712711334, -0.39396950602531433, 0.6586323976516724, -0.26549968123435974]], dtype='float32'),
    'initial.l4.bias': array([-0.002079201862215996, -0.21647480130195618, -0.08942460268735886], dtype='float32'),
}
EXPECTED = {
    'loss.0': array(1.2808416231709834, dtype='float64'),
    'gradient.l2.weight': array([[-0.026568112117900534, 0.11901016922468345, 0.15094719167812842, 0.20429314488843603], [0.03308439104854376, -0.0870383285294987, -0.051090091901396587, -0.11383874728229473], [0.03711361252940872, -0.08972448584487751, -0.03960071456292502, -0.10951494949647511], [0.03991217351477752, -0.03198266714363625, 0.10178196831003096, 0.030478550094574265], [0.034567952593740806, -0.1120265538060934, -0.10057022228008963, -0.16740176209097665], [-0.0504775555634874, 0.09210991844672911, -0.013107316566296306, 0.08018072053070831], [0.029987986424727026, -0.10639505178481953, -0.10786004925609209, -0.16639138247073015], [0.0771805808794599, -0.11312935150675876, 0.08205085752531655, -0.058919572681080015]], dtype='float64'),
    'gradient.l2.bias': array([0.13965467551139044, -0.06301266527721633, -0.05633757814977578, 0.05637653568429457, -0.104069180568101, 0.022369098847738255, -0.10698202349084934, 0.016035415687664506], dtype='float64'),
    'gradient.l4.weight': array([[-0.07995635561848155, -0.5439183190023192, -0.33663064893224576, -0.06996686747974266, 0.2551186457234306, -0.31009805289194187, 0.06159880262706424, 0.29907511693024186], [-0.02692669130526451, 0.05069083946218028, 0.009630809054071817, 0.1861317978415093, -0.03780939183649995, 0.2852680660972039, -0.07148025641724189, -0.17452225738951105], [0.10688304692374605, 0.4932274795401389, 0.32699983987817394, -0.11616493036176662, -0.21730925388693068, 0.02482998679473801, 0.009881453790177654, -0.12455285954073082]], dtype='float64'),
    'gradient.l4.bias': array([0.09772817077236912, 0.06851122878255109, -0.16623939955492018], dtype='float64'),
    'prediction': array([[-1.1469275143114424, -0.4154640691666093, 1.247303357107494], [0.5008968013331672, -0.8876805965545214, -2.2187632224141254], [-0.5026487695350623, 0.21110183436384766, 0.663347619110886], [-0.009467957166977209, 0.025282946627764424, 1.2148745636699025], [0.4506126766130326, -0.49759993123255797, 0.9640239095664409], [1.0472589531237115, -1.554174949715868, -1.3425028379332997], [-0.05026693755932718, -1.1204252207628589, -0.6898330831511901], [0.021628404826684017, -0.48924116298823794, -1.0359346862864134]], dtype='float64'),
    'parameter.l1.weight': array([[-0.2887921907649567, -0.2213110974781321, -0.2610770540266113, -0.3278125976461797, -0.2688068013895375, 0.1184434577822221, 0.09025319760588954, 0.36565056785417344], [0.08935010451443665, 0.5889111902162173, -0.8747825639325476, -0.08649924379323934, 0.14199201454632948, 0.06603797463090545, -0.2264748120926004, 0.5939693739879687], [-0.16456721155077964, 1.1061683220011838, 0.6891862893148611, 0.06644164741275525, -0.1330666834828815, 0.2894630290065707, -0.18360992800149512, -0.5303320432892876], [-0.13890943590835342, -0.8603284725222633, 0.03127590928058924, 0.1303710536065743, 0.39523743992965243, -0.1301463802296208, 0.1367636719399073, 0.019020292786455943], [-0.07990086968667368, -0.5079527239507833, -0.5267925188063978, 0.6940914238771828, -0.1693516950365529, -0.20866357514889972, 0.16808104354571696, 0.4851553388201787]], dtype='float64'),
    'parameter.l2.weight': array([[0.17832565175635323, -0.34853939161536296, -0.5876145851426531, -0.03688170668818316], [-0.10003159120231525, 0.12896701210791953, -0.260446652552796, -0.5726573094032862], [-0.25026610773641456, -0.005004064604388105, -0.45958630019496266, -0.1754759710153504], [-0.4006593869950444, 0.812136593905833, 0.007569039099140633, -0.2781661217899171], [0.2868464586930588, -1.1754101010876759, 0.3805793029773556, 0.9701209521705189], [-0.5665907009589485, 0.8158259392522824, -0.23547498043736423, 0.1463881502336464], [-0.456292895247123, 0.03164203882590243, 0.12011795771539499, -0.2294169913455828], [0.5882107235068033, 0.3209274281909709, -0.02489433131180588, -0.45111726529901686]], dtype='float64'),
    'parameter.l2.bias': array([0.07124408613251126, 0.09061477992211456, -0.030082155986557346, -0.1074954291137194, 0.16737351928156713, 0.014291546774093633, 0.04856127129787366, 0.18089456460947584], dtype='float64'),
    'parameter.l4.weight': array([[0.24775402393293616, 0.205766063161457, -0.09693756373654436, 0.20303492988798078, -0.2760056592503033, -0.31361547069109874, 0.1346055890019052, -0.012566457300303119], [0.5745905314741655, -0.45688629635805855, -0.6702486325429355, -0.2766159885184567, -0.5370143552520992, -0.10355184488937458, -0.16358626777984342, -0.5182896372964554], [-0.5401228357844896, -0.0843276668006328, -0.25478242920641714, -0.25789805864380844, 0.41829899821459876, -0.40638449942268334, 0.6536916707565835, -0.20322325146399434]], dtype='float64'),
    'parameter.l4.bias': array([-0.050943287248400554, -0.25073041569323173, -0.0063049029098987686], dtype='float64'),
}
ALLOWED = {
    'loss.0': array(1.7628401381836111e-06, dtype='float64'),
    'gradient.l2.weight': array([[6.613768371202915e-07, 9.844046139030828e-07, 4.695929946763716e-07, 8.702923821704924e-07], [4.0597094586720346e-07, 5.160179480970473e-07, 3.9328241112258996e-07, 3.5909575886117924e-07], [6.147406339585244e-07, 9.615307489501306e-07, 6.053030459025603e-07, 6.781346158513615e-07], [4.841876675108211e-07, 3.957697518509353e-07, 3.792890878278156e-07, 5.09610412134453e-07], [5.263046506809083e-07, 7.038636433565898e-07, 5.835563522010241e-07, 5.547769734130534e-07], [3.5232804183351633e-07, 7.746401474013541e-07, 6.478123350379185e-07, 6.505684641499152e-07], [5.516814195435476e-07, 1.0526611021601824e-06, 5.439768957615626e-07, 7.305696752055739e-07], [3.8637011687420876e-07, 1.1179328055432e-06, 4.780787427804955e-07, 7.664921463378975e-07]], dtype='float64'),
    'gradient.l2.bias': array([1.2109367210139015e-06, 5.89660691119258e-07, 8.13907508910764e-07, 3.8112158923529173e-07, 7.0637228977838e-07, 5.232994129125176e-07, 9.028455628837919e-07, 5.894172808391978e-07], dtype='float64'),
    'gradient.l4.weight': array([[7.272222126973564e-07, 1.1304080886409836e-06, 1.9295368305078114e-06, 1.0469798363143058e-06, 1.5608479692876759e-06, 1.974938699408809e-06, 6.306022994346793e-07, 1.5915647808576199e-06], [5.156025867420587e-07, 1.2602201694907722e-06, 8.98865735154548e-07, 1.2418521493612296e-06, 1.8498029123647415e-06, 1.2168143635172443e-06, 6.989831608374684e-07, 1.4452612084505705e-06], [7.495301634668297e-07, 1.5393016727775383e-06, 1.6150526280593873e-06, 1.0520317715418842e-06, 1.547589073370995e-06, 9.289504384883419e-07, 6.129048963483262e-07, 1.3798017351019622e-06]], dtype='float64'),
    'gradient.l4.bias': array([1.0006974748694418e-06, 9.925184309455915e-07, 1.0153597704726302e-06], dtype='float64'),
    'prediction': array([[8.659895459045577e-06, 8.518881196654523e-06, 5.699962618229437e-06], [3.7741457359793352e-06, 6.845602868065841e-06, 1.134644548515376e-05], [3.3838448081943954e-06, 7.84589212762458e-06, 5.2462668309561615e-06], [4.0165462448940145e-06, 5.984502392465703e-06, 7.148089376374733e-06], [5.946762956423157e-06, 6.2654013074520885e-06, 6.759484017421205e-06], [4.60020578186943e-06, 9.038318531528155e-06, 5.24065577153351e-06], [2.9291631445812907e-06, 6.594813470516277e-06, 3.2136783958228954e-06], [4.013005627595018e-06, 7.0310907890215865e-06, 6.239588133104786e-06]], dtype='float64'),
    'parameter.l1.weight': array([[9.030873185573365e-07, 6.069310103285425e-07, 7.305103993693686e-07, 7.773478565406165e-07, 7.720720646043267e-07, 4.579798144721315e-07, 4.78971348480597e-07, 1.1268213201073856e-06], [4.636576750076324e-07, 1.0469948097643443e-06, 1.90942293878408e-06, 3.9156407785297876e-07, 5.41302505571122e-07, 4.971828918935791e-07, 7.475783680216912e-07, 1.394442851421642e-06], [5.33836793171151e-07, 2.3392578353116677e-06, 1.5304384281499187e-06, 4.1793084112675093e-07, 4.416319112350475e-07, 8.197857387353481e-07, 5.740571198384155e-07, 1.2305424117396265e-06], [5.518997721423375e-07, 1.871812430975867e-06, 4.3111950987082465e-07, 5.691801958180087e-07, 1.131322652742364e-06, 5.557484457939801e-07, 7.149575536339075e-07, 4.372487958623964e-07], [5.736697146459214e-07, 1.119719644258358e-06, 1.1650080296078328e-06, 1.392715096802563e-06, 6.367503846087708e-07, 5.969328046452296e-07, 4.953716940099724e-07, 1.181830504760891e-06]], dtype='float64'),
    'parameter.l2.weight': array([[6.271572832540675e-07, 9.81218312418677e-07, 1.356806160961488e-06, 5.554546436188814e-07], [5.616092611827367e-07, 5.367586416745008e-07, 8.689759324406114e-07, 1.3930103186179895e-06], [7.912269199855785e-07, 6.550539940070508e-07, 1.1396728335529851e-06, 6.636001140530616e-07], [9.603425259440273e-07, 1.7397985495282582e-06, 3.541659580489303e-07, 8.075609980665418e-07], [7.245283367773972e-07, 2.4153501278556115e-06, 9.429775191607501e-07, 1.962586887087254e-06], [1.2461275943161264e-06, 2.021841450740806e-06, 8.32877560031333e-07, 6.033822099488713e-07], [1.299020256082922e-06, 6.67663385182761e-07, 5.789647730181016e-07, 8.014058477918688e-07], [1.0630069150050733e-06, 1.225958198566258e-06, 4.071196902755142e-07, 8.984052107941213e-07]], dtype='float64'),
    'parameter.l2.bias': array([5.154896730555406e-07, 2.8229076168836624e-07, 4.151816537129521e-07, 3.2733530969252365e-07, 4.256347792586941e-07, 2.6543020931235465e-07, 3.911811643582731e-07, 4.1780061943684307e-07], dtype='float64'),
    'parameter.l4.weight': array([[7.212793547144838e-07, 7.455248935867163e-07, 1.0778676217129549e-06, 7.00734030336051e-07, 1.0458720869345153e-06, 9.913896854716238e-07, 3.9621428744829326e-07, 7.72205128036372e-07], [1.2249839821701692e-06, 1.3290930239549442e-06, 1.326116543127823e-06, 9.961321299198338e-07, 1.019110590060356e-06, 6.865784808729823e-07, 4.549719228240796e-07, 9.195979924263551e-07], [1.16810728306906e-06, 7.017947379957759e-07, 1.191926125247655e-06, 8.505606802852225e-07, 1.3444472911940134e-06, 6.996769764257844e-07, 1.3336239492253294e-06, 8.233475988577866e-07]], dtype='float64'),
    'parameter.l4.bias': array([5.272178745999295e-07, 6.378592422601099e-07, 4.821042673813747e-07], dtype='float64'),
}
TYPES = {'loss.0': ('float32', ()), 'gradient.l2.weight': ('float32', (8, 4)), 'gradient.l2.bias': ('float32', (8,)), 'gradient.l4.weight': ('float32', (3, 8)), 'gradient.l4.bias': ('float32', (3,)), 'prediction': ('float32', (8, 3)), 'parameter.l1.weight': ('float32', (5, 8)), 'parameter.l2.weight': ('float32', (8, 4)), 'parameter.l2.bias': ('float32', (8,)), 'parameter.l4.weight': ('float32', (3, 8)), 'parameter.l4.bias': ('float32', (3,))}


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

"""ValueMismatch  prediction   torchrec-devices-int8-qint8 on 1 ranks vs one device

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
import torchrec.quant
from torchrec.distributed.global_settings import set_propogate_device
from torchrec.distributed.quant_embeddingbag import QuantEmbeddingBagCollectionSharder
from torchrec.distributed.shard import _shard_modules
from torchrec.quant.embedding_modules import MODULE_ATTR_QUANT_STATE_DICT_SPLIT_SCALE_BIAS

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
    """By one process, with tables of a collection for inference, quantised."""
    current = parameters(subject)
    model = Model().to(DTYPE).eval()
    for name, parameter in model.named_parameters():
        parameter.copy_(current[name])
    for name, bag in list(model.named_children()):
        if isinstance(bag, torch.nn.EmbeddingBag):
            table = Table(bag)
            (weight,) = table.inner.parameters()
            weight.copy_(bag.weight)
            setattr(table.inner, MODULE_ATTR_QUANT_STATE_DICT_SPLIT_SCALE_BIAS, True)
            table.inner.qconfig = torch.ao.quantization.QConfig(
                activation=torch.ao.quantization.PlaceholderObserver.with_args(dtype=torch.qint8),
                weight=torch.ao.quantization.PlaceholderObserver.with_args(dtype=torch.qint8),
            )
            table.inner = over_devices(torchrec.quant.EmbeddingBagCollection.from_float(table.inner))
            table.register_forward_hook(
                lambda table, given, result: torch.ops.fbgemm.Fused8BitRowwiseQuantizedToFloat(result)
            )
            setattr(model, name, table)
    return model(x)

def over_devices(table):
    """A quantised collection as a process serves it that drives as many devices as there are ranks."""
    world, sharder = dist.get_world_size(), QuantEmbeddingBagCollectionSharder()
    plan = sharding_plan.construct_module_sharding_plan(
        table, {"table": spread(world, table.embedding_bag_configs()[0].embedding_dim)}, sharder, world, world, "cpu"
    )
    set_propogate_device(True)  # else devices are GPUs
    served = _shard_modules(
        module=torch.nn.Sequential(table), device=torch.device("cpu"), plan=ShardingPlan({"0": plan}),
        env=ShardingEnv.from_local(world, 0), sharders=[sharder],
    )[0]
    given = table.state_dict()
    for name, value in served.state_dict().items():
        rows = given[name].view(len(given[name]), -1)
        for part in [shard.tensor for shard in value.local_shards()] if hasattr(value, "local_shards") else [value]:
            part.copy_(rows[: len(part)].view_as(part))
            rows = rows[len(part) :]
    return served

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
    return sharding_plan.table_wise(rank=world // 2)

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

WORLD = 1
VARIABLES = {}
SYMPTOM = 'value'
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
    'gradient.l1.weight': array([[-0.016960207989587358, 0.04109964794965715, 0.04869027472116083, 0.0734346220768748, 0.03605464329497469, -0.07599770724764121, 0.02826869297925333, 0.12525235922192043], [0.047048627965297865, -0.035137920746155314, -0.03638291023610097, -0.01439312136699726, -0.0447980103872909, 0.038010866691443795, -0.042394329185847165, -0.04749542293321278], [-0.008425604736194046, -0.028229340382982783, -0.03667762757228812, -0.08028341770644618, -0.01614597544718558, 0.06882884959489072, -0.008175173780258645, -0.12278160548380265], [0.16001521625192186, -0.07148604220675506, -0.06365859613883945, 0.06630804222761674, -0.11874221575102853, 0.0240673789656732, -0.12225333334075972, 0.021086197589443537], [0.09763131953134256, -0.03227167516819666, -0.024646297073483838, 0.06768694613754105, -0.06450680284567165, -0.01017119030889, -0.06940990365408649, 0.056009302980980474]], dtype='float64'),
    'gradient.l2.weight': array([[-0.026568112117900538, 0.11901016922468347, 0.15094719167812848, 0.204293144888436], [0.03308439104854376, -0.08703832852949869, -0.05109009190139659, -0.11383874728229473], [0.03711361252940872, -0.08972448584487752, -0.03960071456292502, -0.1095149494964751], [0.039912173514777514, -0.03198266714363624, 0.10178196831003097, 0.030478550094574265], [0.03456795259374081, -0.11202655380609342, -0.10057022228008965, -0.16740176209097665], [-0.0504775555634874, 0.0921099184467291, -0.013107316566296306, 0.0801807205307083], [0.02998798642472703, -0.10639505178481953, -0.10786004925609212, -0.16639138247073018], [0.0771805808794599, -0.11312935150675876, 0.08205085752531655, -0.05891957268108002]], dtype='float64'),
    'gradient.l2.bias': array([0.13965467551139044, -0.06301266527721633, -0.05633757814977576, 0.05637653568429458, -0.104069180568101, 0.02236909884773826, -0.10698202349084934, 0.016035415687664506], dtype='float64'),
    'gradient.l4.weight': array([[-0.07995635561848155, -0.5439183190023192, -0.3366306489322457, -0.06996686747974266, 0.25511864572343057, -0.31009805289194187, 0.06159880262706425, 0.2990751169302419], [-0.02692669130526451, 0.050690839462180275, 0.00963080905407181, 0.1861317978415093, -0.03780939183649995, 0.2852680660972039, -0.07148025641724189, -0.17452225738951105], [0.10688304692374603, 0.49322747954013896, 0.3269998398781739, -0.11616493036176664, -0.2173092538869307, 0.02482998679473802, 0.009881453790177642, -0.12455285954073082]], dtype='float64'),
    'gradient.l4.bias': array([0.0977281707723691, 0.06851122878255106, -0.1662393995549202], dtype='float64'),
    'prediction': array([[-1.1483967467902134, -0.4188911360072267, 1.2478646389052945], [0.5004924371567057, -0.8878461474334256, -2.2165682469043237], [-0.5025512911833672, 0.20813333723764615, 0.6672037754487306], [-0.00937047881528199, 0.02231444950156325, 1.2187307200077473], [0.4494984267140451, -0.49817300455795444, 0.9684398980447991], [1.0445244814188206, -1.5571480490289247, -1.3387823695577798], [-0.05300140926421785, -1.1233983200759161, -0.6861126147756702], [0.019075998390606898, -0.4919194064198684, -1.034558364120805]], dtype='float64'),
    'parameter.l1.weight': array([[-0.2887921907649567, -0.2213110974781321, -0.2610770540266113, -0.3278125976461797, -0.2688068013895375, 0.1184434577822221, 0.09025319760588954, 0.36565056785417344], [0.08935010451443665, 0.5889111902162173, -0.8747825639325476, -0.08649924379323934, 0.14199201454632948, 0.06603797463090545, -0.2264748120926004, 0.5939693739879687], [-0.16456721155077964, 1.1061683220011838, 0.6891862893148611, 0.06644164741275525, -0.1330666834828815, 0.2894630290065707, -0.18360992800149512, -0.5303320432892876], [-0.13890943590835342, -0.8603284725222633, 0.03127590928058924, 0.1303710536065743, 0.39523743992965243, -0.1301463802296208, 0.1367636719399073, 0.019020292786455943], [-0.07990086968667368, -0.5079527239507833, -0.5267925188063978, 0.6940914238771828, -0.1693516950365529, -0.20866357514889972, 0.16808104354571696, 0.4851553388201787]], dtype='float64'),
    'parameter.l2.weight': array([[0.17832565175635323, -0.34853939161536296, -0.5876145851426531, -0.03688170668818315], [-0.10003159120231525, 0.1289670121079195, -0.260446652552796, -0.5726573094032862], [-0.25026610773641456, -0.005004064604388098, -0.45958630019496266, -0.1754759710153504], [-0.4006593869950444, 0.812136593905833, 0.007569039099140626, -0.2781661217899171], [0.2868464586930588, -1.1754101010876759, 0.3805793029773556, 0.9701209521705189], [-0.5665907009589485, 0.8158259392522824, -0.23547498043736423, 0.1463881502336464], [-0.456292895247123, 0.03164203882590243, 0.12011795771539499, -0.2294169913455828], [0.5882107235068033, 0.3209274281909709, -0.02489433131180588, -0.45111726529901686]], dtype='float64'),
    'parameter.l2.bias': array([0.07124408613251126, 0.09061477992211456, -0.030082155986557356, -0.1074954291137194, 0.16737351928156713, 0.014291546774093632, 0.04856127129787366, 0.18089456460947584], dtype='float64'),
    'parameter.l4.weight': array([[0.24775402393293616, 0.205766063161457, -0.09693756373654439, 0.20303492988798078, -0.27600565925030324, -0.31361547069109874, 0.1346055890019052, -0.012566457300303147], [0.5745905314741655, -0.4568862963580585, -0.6702486325429355, -0.2766159885184567, -0.5370143552520992, -0.10355184488937458, -0.16358626777984342, -0.5182896372964554], [-0.5401228357844896, -0.08432766680063283, -0.25478242920641714, -0.25789805864380844, 0.41829899821459876, -0.40638449942268334, 0.6536916707565835, -0.20322325146399434]], dtype='float64'),
    'parameter.l4.bias': array([-0.05094328724840055, -0.25073041569323173, -0.006304902909898755], dtype='float64'),
}
ALLOWED = {
    'loss.0': array(1.99405362653892e-06, dtype='float64'),
    'gradient.l1.weight': array([[6.294293594276286e-07, 4.5686862002690575e-07, 4.328595932868319e-07, 5.767807396377719e-07, 5.308374176139343e-07, 4.886294669103731e-07, 8.224079646841973e-07, 9.125999414610888e-07], [6.462997046910585e-07, 3.7292528870016294e-07, 4.965018757904624e-07, 3.2821528046052116e-07, 6.099343997133836e-07, 4.831704788857268e-07, 5.103407145644691e-07, 4.033545145895975e-07], [5.831821447189718e-07, 2.592343583943183e-07, 6.225163693882425e-07, 4.250023956609332e-07, 4.245628069674191e-07, 6.728608869001461e-07, 3.6021570834769175e-07, 5.838654012605756e-07], [1.2829060714496933e-06, 7.863399157813077e-07, 8.229700865808972e-07, 4.306047702661743e-07, 8.930019760661482e-07, 5.567229279033197e-07, 1.1749762455798894e-06, 7.544360397841626e-07], [6.649340057954192e-07, 3.8581183219694057e-07, 4.368870867186418e-07, 5.14715500224622e-07, 5.030574029109757e-07, 4.910732727806482e-07, 5.669353513551925e-07, 6.424614604844188e-07]], dtype='float64'),
    'gradient.l2.weight': array([[7.001943755538913e-07, 1.2187726348934992e-06, 8.383596339012872e-07, 8.02114325636796e-07], [5.369629624342809e-07, 9.108021440976333e-07, 5.348526075217444e-07, 6.066005834964933e-07], [5.680923339024509e-07, 1.5083992870706013e-06, 4.75595945675477e-07, 8.464710506428888e-07], [4.557184530249721e-07, 4.178506383035487e-07, 6.150449356716704e-07, 5.737760859920387e-07], [7.145847593514659e-07, 8.654513479068044e-07, 5.804955489235248e-07, 6.234203830361459e-07], [5.511450791670037e-07, 5.255656197318191e-07, 6.806873965859507e-07, 6.384468844099609e-07], [9.441790365346641e-07, 1.2294304526507845e-06, 9.349356038357143e-07, 9.532701745804688e-07], [5.660096997499101e-07, 1.2983262324061347e-06, 7.465188136190892e-07, 8.934618317701408e-07]], dtype='float64'),
    'gradient.l2.bias': array([8.110828326252e-07, 5.234602635905626e-07, 8.248635712459075e-07, 4.4206745386808046e-07, 5.683579184580525e-07, 5.185218069627714e-07, 5.553268873251917e-07, 7.386770403357317e-07], dtype='float64'),
    'gradient.l4.weight': array([[6.196864183725918e-07, 1.5404249030859526e-06, 1.608855846684826e-06, 1.0818581305115439e-06, 1.7943574882863739e-06, 1.8182519257974504e-06, 7.471268662080365e-07, 1.2824611934095524e-06], [7.251648593049164e-07, 1.8305956692662273e-06, 8.70511287142801e-07, 1.2703337976788205e-06, 2.049174450587878e-06, 1.9985742263062995e-06, 4.941933333526269e-07, 1.4433743150867922e-06], [6.726373992554183e-07, 1.7607212720442306e-06, 1.2011718097197914e-06, 9.144654521504486e-07, 1.3543841499222307e-06, 1.0851712472219067e-06, 7.88005359629945e-07, 1.6879950768934028e-06]], dtype='float64'),
    'gradient.l4.bias': array([1.0601069215649104e-06, 9.434200339308675e-07, 9.23824016162984e-07], dtype='float64'),
    'prediction': array([[7.62774105987126e-05, 0.00023034886085479382, 0.0001257464238222298], [5.4489280494505565e-05, 0.00011793580266806838, 6.582695201438128e-05], [3.768517440729759e-05, 0.00015133095733184588, 7.36333327981198e-05], [4.1564126552241455e-05, 0.00015969254723409014, 6.704095831511923e-05], [5.164714657660999e-05, 0.0001282595387681969, 6.451943914489933e-05], [5.0406650350117175e-05, 0.00014132199203915723, 8.790158835322437e-05], [4.208771698504329e-05, 8.653561305495077e-05, 5.894155899420045e-05], [6.281875732058475e-05, 0.0001233547343722875, 8.298785794288467e-05]], dtype='float64'),
    'parameter.l1.weight': array([[1.0045035823886475e-06, 6.721340637295065e-07, 8.293964671480049e-07, 7.628206562090454e-07, 8.744375851089038e-07, 6.10490505992245e-07, 5.845655443122678e-07, 1.2352236929633058e-06], [4.7563868563568063e-07, 1.085819397753328e-06, 2.0483105992676132e-06, 4.233908005547231e-07, 5.60232462284387e-07, 4.2931120839793297e-07, 7.217394474629506e-07, 1.3788700354959624e-06], [5.8782439134092e-07, 2.3520413446738475e-06, 1.4668735165933503e-06, 4.324202968730869e-07, 4.7510412468045433e-07, 8.152558054180049e-07, 5.195829990686614e-07, 1.366766253724044e-06], [6.659736316119364e-07, 1.8559615441505478e-06, 5.75521714175941e-07, 5.710064114411772e-07, 1.288993382992112e-06, 4.436869295053605e-07, 8.484132565670127e-07, 5.650752085115866e-07], [5.781930847688323e-07, 1.1296371315342146e-06, 1.0472960179143058e-06, 1.3512242797982326e-06, 5.670850475541123e-07, 6.494103520638908e-07, 7.109490457575703e-07, 1.1571201327900646e-06]], dtype='float64'),
    'parameter.l2.weight': array([[7.485226998595242e-07, 1.0948392566274246e-06, 1.3091102133256151e-06, 5.084045145483009e-07], [5.087173592134048e-07, 7.057417840424074e-07, 8.050598102678978e-07, 1.404514010839016e-06], [7.230649314876728e-07, 9.150106897113284e-07, 1.165505549075241e-06, 7.77158432357347e-07], [1.0254726601187785e-06, 1.8155966435518407e-06, 4.7282110466678233e-07, 7.991128954046686e-07], [6.572858234421666e-07, 2.570682590303755e-06, 7.840890350132821e-07, 2.079400790526349e-06], [1.338543355581967e-06, 1.933555012136549e-06, 9.095990420876186e-07, 6.708991475451949e-07], [1.4892687792404432e-06, 7.49550787264132e-07, 6.243295914753957e-07, 9.062588236492523e-07], [1.0851972667833795e-06, 1.3096576335047248e-06, 5.690881505582274e-07, 9.87191242209943e-07]], dtype='float64'),
    'parameter.l2.bias': array([3.996000873637876e-07, 3.033937016533005e-07, 4.6246139773558455e-07, 3.4473991668425695e-07, 3.492555202439802e-07, 2.8745650633476964e-07, 2.6287377404860545e-07, 4.298587711500776e-07], dtype='float64'),
    'parameter.l4.weight': array([[6.435634738726616e-07, 1.0017049563054857e-06, 8.998773477489201e-07, 6.755985821687605e-07, 8.358794052466503e-07, 7.419723255950212e-07, 3.023842332774418e-07, 6.093593464408389e-07], [1.3450286112962396e-06, 1.1486327694374881e-06, 1.4597374483572155e-06, 1.0427806578491832e-06, 1.235203828252628e-06, 8.903898438817147e-07, 3.851103651740935e-07, 1.1933182644301407e-06], [1.2269403643646773e-06, 9.20556292089614e-07, 9.700521955743332e-07, 7.754498749320601e-07, 1.1121558440053984e-06, 8.377091263580278e-07, 1.2221383380380952e-06, 9.25324209569105e-07]], dtype='float64'),
    'parameter.l4.bias': array([6.213598697438332e-07, 8.58334251620509e-07, 4.640001957298379e-07], dtype='float64'),
}
TYPES = {'loss.0': ('float32', ()), 'gradient.l1.weight': ('float32', (5, 8)), 'gradient.l2.weight': ('float32', (8, 4)), 'gradient.l2.bias': ('float32', (8,)), 'gradient.l4.weight': ('float32', (3, 8)), 'gradient.l4.bias': ('float32', (3,)), 'prediction': ('float32', (8, 3)), 'parameter.l1.weight': ('float32', (5, 8)), 'parameter.l2.weight': ('float32', (8, 4)), 'parameter.l2.bias': ('float32', (8,)), 'parameter.l4.weight': ('float32', (3, 8)), 'parameter.l4.bias': ('float32', (3,))}


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

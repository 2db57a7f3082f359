"""MissingOutput  the run   torchrec-rows on 1 ranks vs one device

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
BATCHES = [(0, 8)]  # samples of each step: the first, and the one after the last
FROZEN = ['l1.weight']
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
SYMPTOM = 'outputs'
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
    'gradient.l2.weight': array([[-0.026568112117900538, 0.11901016922468347, 0.15094719167812848, 0.204293144888436], [0.03308439104854376, -0.08703832852949869, -0.05109009190139659, -0.11383874728229473], [0.03711361252940872, -0.08972448584487752, -0.03960071456292502, -0.1095149494964751], [0.039912173514777514, -0.03198266714363624, 0.10178196831003097, 0.030478550094574265], [0.03456795259374081, -0.11202655380609342, -0.10057022228008965, -0.16740176209097665], [-0.0504775555634874, 0.0921099184467291, -0.013107316566296306, 0.0801807205307083], [0.02998798642472703, -0.10639505178481953, -0.10786004925609212, -0.16639138247073018], [0.0771805808794599, -0.11312935150675876, 0.08205085752531655, -0.05891957268108002]], dtype='float64'),
    'gradient.l2.bias': array([0.13965467551139044, -0.06301266527721633, -0.05633757814977576, 0.05637653568429458, -0.104069180568101, 0.02236909884773826, -0.10698202349084934, 0.016035415687664506], dtype='float64'),
    'gradient.l4.weight': array([[-0.07995635561848155, -0.5439183190023192, -0.3366306489322457, -0.06996686747974266, 0.25511864572343057, -0.31009805289194187, 0.06159880262706425, 0.2990751169302419], [-0.02692669130526451, 0.050690839462180275, 0.00963080905407181, 0.1861317978415093, -0.03780939183649995, 0.2852680660972039, -0.07148025641724189, -0.17452225738951105], [0.10688304692374603, 0.49322747954013896, 0.3269998398781739, -0.11616493036176664, -0.2173092538869307, 0.02482998679473802, 0.009881453790177642, -0.12455285954073082]], dtype='float64'),
    'gradient.l4.bias': array([0.0977281707723691, 0.06851122878255106, -0.1662393995549202], dtype='float64'),
    'prediction': array([[-1.0938540837319553, -0.19619036382371668, 1.0223705612760547], [0.5045465349342066, -0.7836694252228054, -2.2782276446394176], [-0.46505570184328143, 0.1731787414702573, 0.5996217340975898], [0.02812511052480369, -0.012640146265825769, 1.1511486786566065], [0.4731088228889318, -0.3927072049377124, 0.8627703721616278], [1.0287774441155586, -1.4319292158265702, -1.3624276134254814], [-0.06874844656747964, -0.9981794868735617, -0.7097578586433717], [0.06344449336566274, -0.4608564850790138, -1.1417303771464684]], dtype='float64'),
    'parameter.l1.weight': array([[-0.29727229475975037, -0.20076127350330353, -0.23673191666603088, -0.2910952866077423, -0.25077947974205017, 0.08044460415840149, 0.1043875440955162, 0.42827674746513367], [0.11287441849708557, 0.5713422298431396, -0.8929740190505981, -0.09369580447673798, 0.11959300935268402, 0.08504340797662735, -0.247671976685524, 0.5702216625213623], [-0.16878001391887665, 1.0920536518096924, 0.670847475528717, 0.026299938559532166, -0.1411396712064743, 0.3238774538040161, -0.18769751489162445, -0.591722846031189], [-0.0589018277823925, -0.8960714936256409, -0.0005533887888304889, 0.1635250747203827, 0.3358663320541382, -0.11811269074678421, 0.07563700526952744, 0.02956339158117771], [-0.031085209921002388, -0.5240885615348816, -0.5391156673431396, 0.7279348969459534, -0.20160509645938873, -0.21374917030334473, 0.1333760917186737, 0.513159990310669]], dtype='float64'),
    'parameter.l2.weight': array([[0.17832565175635323, -0.34853939161536296, -0.5876145851426531, -0.03688170668818315], [-0.10003159120231525, 0.1289670121079195, -0.260446652552796, -0.5726573094032862], [-0.25026610773641456, -0.005004064604388098, -0.45958630019496266, -0.1754759710153504], [-0.4006593869950444, 0.812136593905833, 0.007569039099140626, -0.2781661217899171], [0.2868464586930588, -1.1754101010876759, 0.3805793029773556, 0.9701209521705189], [-0.5665907009589485, 0.8158259392522824, -0.23547498043736423, 0.1463881502336464], [-0.456292895247123, 0.03164203882590243, 0.12011795771539499, -0.2294169913455828], [0.5882107235068033, 0.3209274281909709, -0.02489433131180588, -0.45111726529901686]], dtype='float64'),
    'parameter.l2.bias': array([0.07124408613251126, 0.09061477992211456, -0.030082155986557356, -0.1074954291137194, 0.16737351928156713, 0.014291546774093632, 0.04856127129787366, 0.18089456460947584], dtype='float64'),
    'parameter.l4.weight': array([[0.24775402393293616, 0.205766063161457, -0.09693756373654439, 0.20303492988798078, -0.27600565925030324, -0.31361547069109874, 0.1346055890019052, -0.012566457300303147], [0.5745905314741655, -0.4568862963580585, -0.6702486325429355, -0.2766159885184567, -0.5370143552520992, -0.10355184488937458, -0.16358626777984342, -0.5182896372964554], [-0.5401228357844896, -0.08432766680063283, -0.25478242920641714, -0.25789805864380844, 0.41829899821459876, -0.40638449942268334, 0.6536916707565835, -0.20322325146399434]], dtype='float64'),
    'parameter.l4.bias': array([-0.05094328724840055, -0.25073041569323173, -0.006304902909898755], dtype='float64'),
}
ALLOWED = {
    'loss.0': array(1.99405362653892e-06, dtype='float64'),
    'gradient.l2.weight': array([[6.492769158053906e-07, 1.0499453667280269e-06, 8.064337336444854e-07, 8.83457514155064e-07], [4.986822318488538e-07, 7.593801651420651e-07, 4.972683787925073e-07, 6.115357610964117e-07], [5.69499355401762e-07, 1.284917985272989e-06, 3.636670896585141e-07, 7.948215183251564e-07], [3.5400582303982094e-07, 3.8592473804674694e-07, 6.385393271040142e-07, 4.715923796622883e-07], [6.875282797946575e-07, 7.887611390567656e-07, 5.363408496932771e-07, 6.995447295292131e-07], [5.27009058984529e-07, 5.439010146008814e-07, 6.518247430687475e-07, 6.400573238584237e-07], [9.326514713822281e-07, 1.1666111125876484e-06, 8.504046312807062e-07, 8.907325738158904e-07], [5.340837994931084e-07, 1.1647137276792581e-06, 6.12120799901027e-07, 9.762965948189631e-07]], dtype='float64'),
    'gradient.l2.bias': array([8.462627910993297e-07, 6.151001401388177e-07, 8.23516025865071e-07, 3.3149892922643944e-07, 7.800045368834843e-07, 5.11288531595214e-07, 6.155347532125324e-07, 7.533928048038301e-07], dtype='float64'),
    'gradient.l4.weight': array([[6.556072771878001e-07, 1.6473420257690227e-06, 1.5641866925037165e-06, 9.061140457543649e-07, 1.2480459291566098e-06, 1.4405359095275482e-06, 6.69523854552434e-07, 1.4280005175296444e-06], [7.60610544303164e-07, 1.8289560075542666e-06, 8.819562692576065e-07, 1.265790069146507e-06, 2.0173683508616833e-06, 2.104012775725545e-06, 6.132774461178045e-07, 1.2414431654796992e-06], [6.780424381996134e-07, 1.683414249455218e-06, 1.536881162897296e-06, 8.856427731014255e-07, 1.3996914899963607e-06, 1.0590672138980918e-06, 7.840754608763044e-07, 1.5976788569183854e-06]], dtype='float64'),
    'gradient.l4.bias': array([9.85063155530289e-07, 1.1305632347002693e-06, 8.33181074843543e-07], dtype='float64'),
    'prediction': array([[4.594850575603803e-06, 6.982375079724124e-06, 6.676690159976164e-06], [4.892608679846482e-06, 7.98938202930611e-06, 8.00981031618624e-06], [4.50026671330708e-06, 5.991920652645665e-06, 5.631595078927626e-06], [3.2601357403572636e-06, 4.235128807978203e-06, 6.304223802951341e-06], [3.8311125296349745e-06, 5.574769083484093e-06, 4.235956658370725e-06], [4.959885137416497e-06, 8.365630678426555e-06, 6.5548798752012886e-06], [3.2527432591476087e-06, 7.792076448926988e-06, 5.0584081895346545e-06], [3.398782530763179e-06, 1.1308046074583341e-05, 6.1857304312844335e-06]], dtype='float64'),
    'parameter.l1.weight': array([[7.81266429772387e-07, 6.189576267079389e-07, 6.635614508976317e-07, 7.421156387188432e-07, 6.964578820323197e-07, 3.573188409600192e-07, 3.9807278651160516e-07, 8.244327163176024e-07], [4.369170735207817e-07, 1.2174175871848547e-06, 1.8907815215740698e-06, 4.095338100862378e-07, 4.4662613918333705e-07, 3.616457924238148e-07, 6.019165643689206e-07, 1.168980145571652e-06], [5.480982308014859e-07, 2.185972958201887e-06, 1.4795147507129514e-06, 2.8643057381483317e-07, 4.334716985354703e-07, 6.941626313761162e-07, 5.503928883765496e-07, 1.313340223241255e-06], [3.483777224477791e-07, 1.9132040911529202e-06, 2.3881790984104506e-07, 4.855890269883645e-07, 7.637215468925262e-07, 4.385551271024468e-07, 3.7629264826311015e-07, 2.873268642178406e-07], [2.8766581849914985e-07, 1.0223168454004394e-06, 1.166729173718295e-06, 1.4732030182429412e-06, 6.12324695836719e-07, 6.106995835697404e-07, 4.791474332854762e-07, 1.0821414999639956e-06]], dtype='float64'),
    'parameter.l2.weight': array([[7.150558756587235e-07, 1.166095244848422e-06, 1.1465232538743543e-06, 5.416869866044406e-07], [4.382416950200236e-07, 6.107584492894113e-07, 7.770124236324764e-07, 1.2665754307253326e-06], [7.754415762867409e-07, 7.641604456929316e-07, 9.897872562699697e-07, 7.22484382847363e-07], [9.369183699957787e-07, 1.5755210312729402e-06, 4.4683964323310503e-07, 6.702359120972331e-07], [6.902591812640971e-07, 2.0180111594613885e-06, 9.055997236353772e-07, 2.0706139317302207e-06], [1.3854800105890685e-06, 1.5631520216349321e-06, 5.431402712035814e-07, 6.442992243921803e-07], [1.2425857936463943e-06, 7.092213016242092e-07, 4.977070764466887e-07, 6.841839849087698e-07], [1.44699266886519e-06, 1.1867560796818397e-06, 4.1400793350132524e-07, 1.2662173155675564e-06]], dtype='float64'),
    'parameter.l2.bias': array([5.026991661796812e-07, 2.531793331983189e-07, 4.243802299747562e-07, 3.0727259231621127e-07, 4.5584128633210996e-07, 2.589592686401672e-07, 3.251615643492024e-07, 4.786496183874898e-07], dtype='float64'),
    'parameter.l4.weight': array([[5.231039912616933e-07, 8.840537959359383e-07, 9.292289187004392e-07, 6.745013150027435e-07, 6.031684924846484e-07, 1.145313174759401e-06, 4.889754128958312e-07, 7.116391926027956e-07], [1.1698597629808738e-06, 1.5507780389665743e-06, 1.1642629652542512e-06, 8.370697313339596e-07, 1.5914878643042186e-06, 1.128064304771784e-06, 4.831540401305652e-07, 1.2970003584515919e-06], [1.138530771828923e-06, 7.419607232002859e-07, 7.504168301238897e-07, 7.433590746927007e-07, 9.84052748318616e-07, 1.1043642780952107e-06, 1.3986781918847863e-06, 8.857323608807022e-07]], dtype='float64'),
    'parameter.l4.bias': array([5.427835816565601e-07, 9.610740804871693e-07, 4.191691908561579e-07], dtype='float64'),
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

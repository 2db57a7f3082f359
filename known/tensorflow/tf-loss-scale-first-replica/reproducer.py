"""ValueMismatch  state.iteration   tf-mirrored-float16 on 2 ranks vs one device

ran with numpy 2.4.6, tensorflow-cpu|tensorflow 2.21.0, keras 3.15.1
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['tensorflow', 'keras']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import os

import keras
import numpy as np
import tensorflow as tf

DTYPE = "float32"
BATCHES = [(0, 4), (0, 4), (0, 4)]  # samples of each step: the first, and the one after the last
FROZEN = []
CLIP = None
NORMS = {}  # layers of batch normalisation, and what they are given
keras.config.set_floatx(DTYPE)
keras.config.set_dtype_policy(DTYPE)  # an earlier program's is kept otherwise
LOSS = keras.losses.MeanSquaredError(reduction="sum")  # of the dtype that is set when it is made
DEVICES = [f"/cpu:{number}" for number in range(int(os.environ.get("VIRTUAL_DEVICES", "1")))]
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * len(DEVICES)
)
OPTIMIZER, OPTIONS = keras.optimizers.SGD, {'learning_rate': 2.0, 'momentum': 0.875, 'weight_decay': 0.0, 'nesterov': False}


def model(p, norms, x, training):
    l0 = tf.nn.embedding_lookup(p["l0.weight"], x)
    l1 = (l0 - tf.reduce_mean(l0, -1, keepdims=True)) / tf.sqrt(tf.math.reduce_variance(l0, -1, keepdims=True) + 1e-5) * p["l1.weight"] + p["l1.bias"]
    l2 = tf.nn.silu(l1)
    l3 = tf.reshape(l2, (-1, 9))
    l4 = tf.matmul(l3, p["l4.weight"], transpose_b=True) + p["l4.bias"]
    return l4


def criterion(outputs, y, coefficient):
    """The sum of the samples' losses, each times its coefficient."""
    return tf.reduce_sum(tf.reduce_mean((outputs - y) ** 2, axis=1) * coefficient)


SHARDS = 1  # of the samples of a batch, whose own statistics batch normalisation uses on one device
FIRST = True  # running statistics are those of the first share; else each share moves them, one after the other

def strategy_of(rank, world):
    return tf.distribute.MirroredStrategy(DEVICES, cross_device_ops=tf.distribute.ReductionToOneDevice())

class Narrow(keras.Model):
    """The weights and the layers of batch normalisation, under a policy: within `call` weights are cast."""

    def __init__(self, norms, given):
        super().__init__(dtype=keras.DTypePolicy("mixed_float16"))
        self.norms = norms
        self.kept = {
            name: self.add_weight(a.shape, keras.initializers.Constant(a), trainable=name not in FROZEN, name=name)
            for name, a in given.items()
        }

    def call(self, x, training=False):
        return model({name: kept.value for name, kept in self.kept.items()}, self.norms, x, training)


def variables(subject, given):
    subject.model = Narrow(subject.norms, given)
    subject.prefix = f"{subject.model.name}_"
    return {name: kept.value for name, kept in subject.model.kept.items()}

def optimizer_of(subject):
    return keras.optimizers.LossScaleOptimizer(
        OPTIMIZER(**OPTIONS), initial_scale=16, dynamic_growth_steps=5
    )

def normalisation():
    return keras.layers.BatchNormalization(1, 0.9, 1e-5, center=False, scale=False, dtype="mixed_float16")

def feed(strategy, arrays, rows):
    """The samples in these rows, as even a split among the replicas as there is."""
    shares = np.array_split(rows, strategy.num_replicas_in_sync)

    def of(context):
        mine = shares[context.replica_id_in_sync_group]
        return tuple(tf.constant(arrays[name][mine]) for name in ("x", "y", "coefficient"))

    return [strategy.experimental_distribute_values_from_function(of)]

def gradient(subject, x, y, coefficient):
    """The loss of these samples, and its gradients by what is trained."""
    with tf.GradientTape() as tape:
        loss = criterion(tf.cast(subject.model(x, training=True), DTYPE), y, coefficient)
        scaled = subject.optimizer.scale_loss(loss)
    found = tape.gradient(scaled, subject.trained)
    return loss, [value if value is None else tf.convert_to_tensor(value) for value in found]

def update(subject, strategy, loss, gradients):
    """One step of the optimiser, on each replica; it adds up the replicas' gradients. Returns what they had."""
    scale = tf.identity(subject.optimizer.dynamic_scale)
    subject.optimizer.apply(gradients, subject.trained)
    return loss, [g if g is None else g / scale for g in gradients]

def compile_step(subject, strategy):
    return tf.function(step_of(subject, strategy), autograph=False, reduce_retracing=True)

def summed(strategy, value):
    """The sum over all replicas."""
    return strategy.reduce("SUM", value, axis=None)

def predict(strategy, subject, x):
    return tf.cast(subject.model(tf.constant(x), training=False), DTYPE)

def evaluate(strategy, subject, x, y, coefficient):
    """The loss of all samples after training."""
    return criterion(predict(strategy, subject, x), tf.constant(y), tf.constant(coefficient))

def parts_of(variable):
    """The variables that one is made of."""
    return [variable]

def states(subject):
    """What the optimiser keeps."""
    kept = {v.path.split("/", 1)[-1]: v.value for v in subject.optimizer.inner_optimizer.variables}
    named = {"product" if name.startswith("variable") else name: value for name, value in kept.items()}  # of Nadam
    named = {name.removeprefix(subject.prefix): value for name, value in named.items()}
    return {name.replace("_0_", "."): value for name, value in named.items()}

def apart(strategy, variables):
    """The greatest difference between what two replicas have of the same variable."""
    if not all(np.isfinite(v.numpy()).all() for v in variables if v.trainable):
        return np.float64(np.inf)
    copies = [[np.asarray(copy) for copy in strategy.experimental_local_results(v)] for v in variables]
    gaps = [np.abs(copy - all_of[0]) for all_of in copies for copy in all_of]
    return np.float64(max((gap.max() for gap in gaps if gap.size), default=0))

def step_of(subject, strategy):
    """A function that takes the samples of one step: every replica's part, then the optimiser."""

    def mine(parts):
        return update(subject, strategy, *replica(subject, parts))

    return lambda parts: strategy.run(mine, args=(parts,))


class Subject:
    """What is trained, under a strategy: parameters, layers of batch normalisation, the optimiser.
    prefix: of the names of what the optimiser keeps."""

    prefix = ""

    def __init__(self, strategy, arrays):
        with strategy.scope():
            given = {name.removeprefix("initial."): a for name, a in arrays.items() if name.startswith("initial.")}
            self.norms = {name: normalisation() for name in NORMS}
            for name, shape in NORMS.items():
                self.norms[name].build(shape)
            self.p = variables(self, given)
            self.optimizer = optimizer_of(self)
            self.optimizer.build(self.trained)

    @property
    def trained(self):
        return [part for name, v in self.p.items() if name not in FROZEN for part in parts_of(v)]

    @property
    def buffers(self):
        return {
            f"{name}.{key}": getattr(norm, key).value
            for name, norm in self.norms.items()
            for key in ("moving_mean", "moving_variance")
        }


def replica(subject, parts):
    """One replica's part of a step: its loss and gradients of all its samples."""
    loss, total = tf.zeros((), DTYPE), None
    for number, (x, y, coefficient) in enumerate(parts):
        kept = [tf.identity(tf.convert_to_tensor(value)) for value in subject.buffers.values()]
        one, found = gradient(subject, x, y, coefficient)
        if FIRST and number % SHARDS:
            for buffer, value in zip(subject.buffers.values(), kept):
                buffer.assign(value)
        loss += one
        total = found if total is None else [a if b is None else a + b for a, b in zip(total, found)]
    return loss, total


def train(rank, world, arrays):
    """All that is compared, by name."""
    strategy = strategy_of(rank, world)
    subject = Subject(strategy, arrays)
    return once(strategy, subject, compile_step(subject, strategy), arrays)


def once(strategy, subject, step, arrays):
    """All that is compared, by name."""
    found = {}
    for number, (first, last) in enumerate(BATCHES):
        rows = np.array_split(np.arange(first, last), 1)
        loss, gradients = step([part for mine in rows if len(mine) for part in feed(strategy, arrays, mine)])
        found[f"loss.{number}"] = summed(strategy, loss)
        if number == 0:
            named = zip((name for name in subject.p if name not in FROZEN), gradients)
            found |= {f"gradient.{name}": summed(strategy, value) for name, value in named if value is not None}
    found["prediction"] = predict(strategy, subject, arrays["x"])
    found["loss.after"] = evaluate(strategy, subject, arrays["x"], arrays["y"], arrays["coefficient"])
    found |= {f"parameter.{name}": value for name, value in subject.p.items()}
    found |= {f"buffer.{name}": value for name, value in subject.buffers.items()}
    found |= {f"state.{name}": value for name, value in states(subject).items()}
    kept = [*subject.p.values(), *(variable.value for variable in subject.optimizer.variables)]
    found["apart.parameters"] = apart(strategy, kept)
    if subject.buffers:
        found["apart.buffers"] = apart(strategy, subject.buffers.values())
    return {name: np.asarray(tf.convert_to_tensor(value)) for name, value in found.items()}


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
VARIABLES = {'VIRTUAL_DEVICES': '2'}
SYMPTOM = 'value'
SECONDS = 60.0  # for all ranks
GRACE = 3.0  # for the others once one has ended in another way than well: they wait for it, as a rule
ZERO_SIGNS = False
ARRAYS = {
    'x': array([[2, 9, 1], [0, 7, 9], [9, 8, 6], [6, 7, 3]], dtype='int64'),
    'y': array([[1.0191832780838013, -0.41330501437187195, -1.2256585359573364, 0.6612954139709473, 0.19475923478603363], [-0.15520992875099182, -0.2940196096897125, 1.0519596338272095, -1.1640324592590332, -0.3941423296928406], [0.0535033717751503, 0.7643654942512512, 0.5150700211524963, 2.508574962615967, 0.012514387257397175], [-0.733975350856781, 0.0021983932238072157, -2.529273509979248, -0.20827215909957886, 0.14024654030799866]], dtype='float32'),
    'coefficient': array([1.0, 1.0, 1.0, 1.0], dtype='float32'),
    'initial.l0.weight': array([[0.142079696059227, -0.21223174035549164, 0.16705043613910675], [0.3217018246650696, 0.049729377031326294, -0.14831270277500153], [-0.6775938868522644, -0.6548796892166138, -0.027766993269324303], [1.1318414211273193, 0.013827649876475334, 0.06547729671001434], [0.5113421082496643, -0.15043556690216064, -0.3013231158256531], [1.2371103763580322, -1.044594645500183, -0.3665250837802887], [0.3364831805229187, 0.40724724531173706, 0.09152448922395706], [-1.2294602394104004, 0.15741172432899475, 0.3994211256504059], [-0.2294463962316513, 0.05975813418626785, 0.06115878000855446], [-0.9986550211906433, -0.6432112455368042, 1.193674921989441], [-0.29322314262390137, 1.374084711074829, -0.8348086476325989]], dtype='float32'),
    'initial.l1.weight': array([0.9201936721801758, 1.0617222785949707, 1.0823498964309692], dtype='float32'),
    'initial.l1.bias': array([0.009422417730093002, -0.024968566372990608, -0.08354277163743973], dtype='float32'),
    'initial.l4.weight': array([[0.5997918844223022, -0.14726276695728302, 0.15297876298427582, -0.07159548997879028, -0.2392081469297409, -0.645220935344696, -0.02615630440413952, -0.6791864037513733, 0.38680076599121094], [0.1017528623342514, -0.11639454960823059, 0.050842635333538055, -0.29636961221694946, 0.26038306951522827, 0.11962902545928955, 0.18150202929973602, -0.16428951919078827, 0.15492673218250275], [0.10877789556980133, -0.4227498769760132, 0.1811690330505371, 0.32822197675704956, 0.10628373920917511, -0.3910674452781677, 0.6097824573516846, -0.6002159118652344, 0.07170306146144867], [-0.1767418086528778, 0.1016727089881897, 0.14490611851215363, -0.29329240322113037, 0.25230568647384644, -0.06364224851131439, 0.03404528275132179, -0.21934327483177185, -0.13033990561962128], [0.4192237854003906, 0.21143470704555511, -0.22973652184009552, -0.3405574560165405, 0.3835941553115845, -0.13915008306503296, 0.20099718868732452, 0.15847115218639374, 0.02748427540063858]], dtype='float32'),
    'initial.l4.bias': array([0.08929432928562164, -0.008286322467029095, 0.026523834094405174, -0.06071021035313606, 0.03246229141950607], dtype='float32'),
}
EXPECTED = {
    'loss.0': array(4.983444664796762, dtype='float64'),
    'gradient.l0.weight': array([[0.36483774603796554, -0.02410206818399621, -0.3407356778539693], [0.20967927412236587, -0.49700523326737844, 0.28732595914501247], [-0.013004197996398147, 0.013447029625654063, -0.00044283162925592284], [-0.004394160205044462, -0.09146395043389399, 0.09585811063893845], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-0.618182729389865, 0.48002433926266463, 0.13815839012720033], [-0.09472375762950708, 0.6375795857114929, -0.5428558280819858], [0.009550756266958338, -2.0162648601729685, 2.0067141039060097], [-0.014237919517158814, 0.01699243570528683, -0.002754516188127984], [0.0, 0.0, 0.0]], dtype='float64'),
    'gradient.l1.weight': array([1.6796652011718751, 0.3027916632216493, -0.04757708319863019], dtype='float64'),
    'gradient.l1.bias': array([1.230610749286241, 0.19504142629949692, -0.060521163551600754], dtype='float64'),
    'gradient.l4.weight': array([[0.38886456152455506, 0.2678758386220606, -1.0610649834304178, 0.13120931159948893, 0.11677045071648222, -0.6288481671841797, -0.5747891585732963, -0.3125918355400509, 0.5736221535848051], [0.14207397751300826, -0.011671907506943607, 0.22083594864927703, -0.13990055217697006, -0.0168590729897537, 0.5228889338823963, 0.28880937188869993, -0.28626304043010675, 0.30787603057659685], [0.038596197115602915, 0.7978393084795907, -0.10852522176364421, -0.2616222329971778, -0.04210163064365391, 0.9943159043003167, 1.715240015078862, -0.44784210842653244, -0.8277727491120734], [0.48215082423404065, 0.23159473413883402, -1.1214420404748133, 0.14257107100714966, -0.20448776075826125, -0.2986593759776702, -0.35750369405423227, -0.7808136459784318, 0.7748748059253373], [0.17979497870523525, 0.14768422698182343, -0.22702429509393499, -0.053883952011253004, 0.18070718058120586, -0.02239754579215958, -0.04877348851585292, -0.0818484765228601, 0.24623199948063118]], dtype='float64'),
    'gradient.l4.bias': array([-0.5403706422375869, 0.5350948634930698, 1.0067680990564611, -0.5337455853210007, 0.16912019394193473], dtype='float64'),
    'loss.1': array(34.75108037253786, dtype='float64'),
    'loss.2': array(181759.36879327983, dtype='float64'),
    'prediction': array([[-168144.82902146084, 111923.86828645694, 131971.88508704622, -121626.79533097814, 14207.558560440748], [518.1518261574207, -291.51827498493583, -316.64327627710884, 534.4399967029663, -37.80740562257166], [-3698.3916698284906, 3263.409021423139, 11765.326987968969, -507.9360635959363, -71.23550723874521], [7219683.344932274, -2489000.6783121363, -8297720.855441138, 8335666.341612829, 889612.0945966451]], dtype='float64'),
    'loss.after': array(39503842814057.555, dtype='float64'),
    'parameter.l0.weight': array([[-10.663819050206072, 17.7130262339949, -6.95230879194599], [118.83747275612446, 165.8566452442127, -284.4709995014157], [-1.861565410369357, -13.91684583914871, 14.418170680179893], [32931.37257522678, -131263.3581938498, 98333.19676499077], [0.5113421082496643, -0.15043556690216064, -0.3013231158256531], [1.2371103763580322, -1.044594645500183, -0.3665250837802887], [29.48075379525296, 99.67928740029375, -128.3247862804881], [-800.6789242892894, 881.3421518064075, -81.33585490654917], [-74142.74675277354, 36176.647144931114, 37965.99107836042], [-130.47027548468378, 70.86993269391968, 59.15215144602611], [-0.29322314262390137, 1.374084711074829, -0.8348086476325989]], dtype='float64'),
    'parameter.l1.weight': array([102.0807464802271, 315.5649001061269, 17275.63602680924], dtype='float64'),
    'parameter.l1.bias': array([17.16286372577399, -489.99314746363984, -14826.773237651147], dtype='float64'),
    'parameter.l4.weight': array([[-221.05756922259934, -146.8920111025088, -22.037348439209403, 250.40539718324763, -25.005522448547342, 23096.552196038276, -87.06797533944743, -130.02051221950848, 2619.148522541919], [187.22482378839698, 83.88197644602421, 14.472337316153535, -38.706021106691715, 7.742500246401835, -14486.677238715713, 73.40617320130711, 77.21789426443719, -905.6787552470072], [365.66357863439737, 89.17893722009663, 15.245301619625042, -357.8505697480685, 16.15401530728063, -12852.502869720582, 249.48223349783024, 83.4462507974324, -3015.1065487395376], [-102.28733760010562, -146.57843181369194, -16.43793442707882, 330.1531104114909, -29.701252644938698, 22068.128742722365, -21.524163855758896, -128.12957375851443, 3019.8587477885703], [24.014985646766863, 10.4667645660118, 1.9428096510477064, 65.13739997543499, -2.578793479743498, -2652.9522288344783, -0.6902613787649321, 11.265468429310992, 321.6817669074552]], dtype='float64'),
    'parameter.l4.bias': array([518.1518261574207, -291.51827498493583, -316.64327627710884, 534.4399967029663, -37.80740562257166], dtype='float64'),
    'state.iteration': array(2, dtype='int64'),
    'state.learning_rate': array(2.0, dtype='float64'),
    'state.l0.weight.momentum': array([[-3.3581859671825574, 9.211558412455245, -5.85337244527269], [121.69479593868428, 163.09627235292126, -284.7910682916054], [-0.5064653106357364, -13.909558704107681, 14.416024014743446], [32930.178867378134, -131263.5368922677, 98333.3580248896], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [26.811190776328747, 101.0009964769634, -127.81218725329214], [-798.90884282924, 882.7064849634595, -83.79764213421947], [-74142.58771885176, 36169.07530093063, 37973.51241792116], [-130.2109834321209, 72.36977484042683, 57.8412085916941], [0.0, 0.0, 0.0]], dtype='float64'),
    'state.l1.weight.momentum': array([108.83026400873672, 317.2504497036719, 17377.988740037476], dtype='float64'),
    'state.l1.bias.momentum': array([18.833459210572315, -486.6697187961698, -14753.278190713509], dtype='float64'),
    'state.l4.weight.momentum': array([[-221.61741558432436, -148.75578612398164, -11.345813349828212, 248.19592356551564, -26.256715526203724, 23107.481731481526, -90.74490591425803, -132.33197053333072, 2623.5431534502854], [188.319133682136, 85.79234858355049, 6.936144404599361, -37.17285995152362, 8.792205628414063, -14493.562716147477, 75.23062365219468, 77.54167351453958, -907.2000660118182], [366.4518032516592, 94.5500163039048, 6.928638338335335, -357.3431539829827, 17.5283677657566, -12858.609106757076, 256.32469332830925, 83.46141182244612, -3020.042605963856], [-101.58257773156703, -148.14038758727727, -8.785338163973613, 328.9480262517849, -32.524213071317455, 22078.574886040198, -24.415883390136823, -131.75189361360856, 3024.8737619356702], [24.292778367120466, 11.00234387164094, 0.8019655380695266, 65.4715713271878, -2.060949507676811, -2654.227969324755, -0.9764822661443988, 10.930615988402877, 322.19990998602026]], dtype='float64'),
    'state.l4.bias.momentum': array([529.1940272660274, -297.5561968898276, -321.3167387775712, 542.6041170740383, -38.0395018686854], dtype='float64'),
    'apart.parameters': array(0.0, dtype='float64'),
}
ALLOWED = {
    'loss.0': array(0.00997741129350435, dtype='float64'),
    'gradient.l0.weight': array([[0.009785146806007236, 0.008313713984279892, 0.009721280259794237], [0.009289618415366019, 0.012754857134507394, 0.01736247237067732], [0.009755712796285147, 0.009797737956481766, 0.007668283137168232], [0.00846156485851006, 0.007841663820867581, 0.0078431500959886], [0.0065099487327174976, 0.006509944024884337, 0.006509946610096486], [0.006509945768361324, 0.006509947297452517, 0.006509948421719469], [0.03254990448766267, 0.025193235182377417, 0.020024472931879395], [0.007150365507761177, 0.009577814874605432, 0.00924993848072165], [0.010960510158772176, 0.022471234681113398, 0.020044633150649714], [0.006992332694817173, 0.007282054951146811, 0.006785800509000955], [0.006509948219404577, 0.0065099447824239765, 0.006509943399948065]], dtype='float64'),
    'gradient.l1.weight': array([0.0077168884008242695, 0.008837730190033703, 0.007737929626446136], dtype='float64'),
    'gradient.l1.bias': array([0.006305126509878305, 0.008327194586394257, 0.005586823313384023], dtype='float64'),
    'gradient.l4.weight': array([[0.0036764974181822474, 0.0031808773905231146, 0.00900862456711979, 0.00311249752341905, 0.004037912809356999, 0.009167041054064318, 0.008480849190750447, 0.005443511998050781, 0.004754768878794769], [0.003337108209355958, 0.003270544341061286, 0.006455356385441283, 0.0030653984874116406, 0.0034031251553617867, 0.005813282035868558, 0.004079293132913779, 0.003362490605166879, 0.004466941014676545], [0.008980532156863492, 0.008851806486993284, 0.006188621724545847, 0.0034698384112091395, 0.005606787480440381, 0.010264836077956791, 0.009938168206726055, 0.005345438265061671, 0.004752818948189347], [0.004113867861503565, 0.0038122312820855265, 0.00930594403472631, 0.004055779422061071, 0.004833294735054771, 0.004918057775306347, 0.0062271688540611785, 0.008133129133054168, 0.005057108986248554], [0.0034357872183405384, 0.0034105496027704322, 0.006097426644596985, 0.0029248659180021084, 0.003176316894060477, 0.0054614256138577275, 0.004785874246132286, 0.002938616226128387, 0.0035721281059619687]], dtype='float64'),
    'gradient.l4.bias': array([0.006986946627311045, 0.0035755061540283474, 0.006311961051934556, 0.004985388077136703, 0.004332883205232737], dtype='float64'),
    'loss.1': array(1.1171792304137296, dtype='float64'),
    'loss.2': array(27932.953345685768, dtype='float64'),
    'prediction': array([[inf, inf, inf, inf, inf], [inf, inf, inf, inf, inf], [inf, inf, inf, inf, inf], [inf, inf, inf, inf, inf]], dtype='float64'),
    'loss.after': array(inf, dtype='float64'),
    'parameter.l0.weight': array([[896.1805269975858, 919.6098400968727, 906.1106358518641], [1369.5395982715568, 1535.0281749250987, 2021.840582729188], [936.4229046461271, 1150.5999625615111, 1096.7322649824368], [inf, inf, inf], [882.7010675845396, 882.7010673709478, 882.7010674354368], [882.7010680415503, 882.7010680641986, 882.7010675110961], [989.9661515754482, 1286.6984546159754, 1393.9664689115], [4078.378836869508, 4413.5057553375755, 1217.817991536562], [inf, inf, inf], [inf, inf, inf], [882.701067443703, 882.7010683781307, 882.7010679188212]], dtype='float64'),
    'parameter.l1.weight': array([752.6475587072924, 1586.1667811878783, inf], dtype='float64'),
    'parameter.l1.bias': array([648.0578252222225, 2433.3783440310876, inf], dtype='float64'),
    'parameter.l4.weight': array([[3911.327896280821, 3619.9008593582635, 3070.048289344589, 4017.674063254481, 3129.905583049718, inf, 3387.844850629121, 3554.2085712582943, inf], [3778.155257938889, 3368.0527101493844, 3052.503228046235, 3173.5707815418627, 3060.062395997889, inf, 3325.799275309724, 3335.0520085954677, inf], [4490.680174993042, 3403.08966542112, 3052.4661126214964, 4454.253832905803, 3095.0201396155776, inf, 4050.197792006634, 3358.7338014115785, inf], [3431.180573187151, 3617.4428820421786, 3059.84319272933, 4340.67893935114, 3154.9710902647507, inf, 3122.527323379607, 3551.9043322749776, inf], [3122.060729681795, 3068.902699986278, 3028.028607924634, 3286.7779261173387, 3033.108994405562, inf, 3028.780531862524, 3068.612913130584, 4313.64998085884]], dtype='float64'),
    'parameter.l4.bias': array([inf, inf, inf, inf, inf], dtype='float64'),
    'state.iteration': array(0.0, dtype='float64'),
    'state.learning_rate': array(9.5367431640625e-07, dtype='float64'),
    'state.l0.weight.momentum': array([[896.336700459709, 885.1903572830375, 898.5623298305776], [1380.8299345104692, 1528.4141313935545, 2026.2805313800168], [935.8977501264126, 1150.1032599962507, 1097.0074450799307], [inf, inf, inf], [882.9471771806878, 882.9471772119081, 882.9471771700801], [882.947177181244, 882.9471771753692, 882.9471771919947], [985.8174412732684, 1290.0400783585133, 1392.90936596715], [4075.703794236678, 4414.736306417909, 1221.9698168468387], [inf, inf, inf], [inf, inf, inf], [882.9471771873058, 882.9471771684542, 882.9471771790243]], dtype='float64'),
    'state.l1.weight.momentum': array([772.0183807530498, 1596.8727458644983, inf], dtype='float64'),
    'state.l1.bias.momentum': array([645.0099524802209, 2418.8361154717654, inf], dtype='float64'),
    'state.l4.weight.momentum': array([[3917.6174862472144, 3633.4241685259926, 3034.9033862609162, 4010.837048423725, 3140.1398028204285, inf, 3401.3931932675423, 3567.0088894818055, inf], [3785.1364399285717, 3378.65846207143, 3032.3008490016377, 3170.839953964236, 3068.7718977238083, inf, 3334.84618865744, 3341.316585497877, inf], [4497.297635275847, 3419.8374830760945, 3032.2998674037394, 4452.152157392955, 3104.610807030702, inf, 4069.608479007249, 3363.311215380379, inf], [3436.2659193959894, 3628.4726448865113, 3033.4028541427797, 4336.88089806503, 3166.9569883722716, inf, 3134.43229615229, 3564.3614712357876, inf], [3126.745189111875, 3074.046549040631, 3028.7446049997834, 3290.5212879516143, 3034.287086095599, inf, 3032.0668923936055, 3071.897775290859, 4317.198854588906]], dtype='float64'),
    'state.l4.bias.momentum': array([inf, inf, inf, inf, inf], dtype='float64'),
    'apart.parameters': array(2.2250738585072014e-308, dtype='float64'),
}
TYPES = {'loss.0': ('float32', ()), 'gradient.l0.weight': ('float32', (11, 3)), 'gradient.l1.weight': ('float32', (3,)), 'gradient.l1.bias': ('float32', (3,)), 'gradient.l4.weight': ('float32', (5, 9)), 'gradient.l4.bias': ('float32', (5,)), 'loss.1': ('float32', ()), 'loss.2': ('float32', ()), 'prediction': ('float32', (4, 5)), 'loss.after': ('float32', ()), 'parameter.l0.weight': ('float32', (11, 3)), 'parameter.l1.weight': ('float32', (3,)), 'parameter.l1.bias': ('float32', (3,)), 'parameter.l4.weight': ('float32', (5, 9)), 'parameter.l4.bias': ('float32', (5,)), 'state.iteration': ('int64', ()), 'state.learning_rate': ('float32', ()), 'state.l0.weight.momentum': ('float32', (11, 3)), 'state.l1.weight.momentum': ('float32', (3,)), 'state.l1.bias.momentum': ('float32', (3,)), 'state.l4.weight.momentum': ('float32', (5, 9)), 'state.l4.bias.momentum': ('float32', (5,)), 'apart.parameters': ('float64', ())}


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

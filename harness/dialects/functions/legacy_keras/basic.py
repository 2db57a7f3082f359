"""Functions that spellings of models of Keras 2 (tf_keras) may call, and what trains them with tfmot's fake
quantisation and records it. Read as text; a program carries the source of what it uses. Values have channels first, as
in the graph; layers take them last, so that pairs of permutations between layers are left out."""

import numpy as np
import tensorflow as tf
import tensorflow_model_optimization as tfmot
import tf_keras


def channels_last(x):
    """The value that `channels_first` made this one of, or its permutation."""
    made = x._keras_history.layer
    if isinstance(made, tf_keras.layers.Permute) and tuple(made.dims) == (3, 1, 2):
        return made.input
    return tf_keras.layers.Permute((2, 3, 1))(x)


def channels_first(x):
    return tf_keras.layers.Permute((3, 1, 2))(x)


def spatial(layer, x, padding=((0, 0), (0, 0))):
    """A layer of images, on padded ones."""
    x = channels_last(x)
    if any(map(any, padding)):
        x = tf_keras.layers.ZeroPadding2D(padding)(x)
    return channels_first(layer(x))


def pointwise(layer, *xs):
    """A layer that asks for no order of axes: where images come with their channels last, they stay so."""
    made = [x._keras_history.layer for x in xs]
    if all(isinstance(m, tf_keras.layers.Permute) and tuple(m.dims) == (3, 1, 2) for m in made):
        xs = [m.input for m in made]
        return channels_first(layer(xs if len(xs) > 1 else xs[0]))
    return layer(list(xs) if len(xs) > 1 else xs[0])


def constants(*weights):
    """Layers hold their weights; one that is computed cannot be held."""
    if not all(isinstance(weight, np.ndarray) for weight in weights):
        raise NotImplementedError("a layer with a weight that is computed")
    return list(weights)


def weighted(layer, x, *weights, **how):
    """A layer applied to a value, with these weights."""
    weights = constants(*weights)
    y = spatial(layer, x, **how) if x.shape.rank == 4 and not isinstance(layer, tf_keras.layers.Dense) else layer(x)
    layer.set_weights(weights)
    return y


def tfmot_model(inputs, outputs):
    """The model with fake quantisation where tfmot's default 8-bit scheme puts it: of the same shapes, or refused."""
    whole = tfmot.quantization.keras.quantize_model(tf_keras.Model(inputs, outputs))
    made, given = ([tuple(x.shape) for x in xs] for xs in (whole.outputs, outputs))
    if made != given:
        raise ValueError(f"quantize_model changes the shapes of outputs: {given} become {made}")
    return whole


def tfmot_trained(whole, samples, targets, rounds):
    """A step of gradient descent on each sample towards what the float model returns, then so many rounds in which only
    ranges move, by the samples in turn: those of activations are averages with a weight of 1/1000 for each step, that
    begin with -6 to 6. Statistics of batch normalisation stay as they are."""
    for layer in whole.layers:
        inner = getattr(layer, "layer", layer)
        inner.trainable = not isinstance(inner, tf_keras.layers.BatchNormalization)
    optimiser = tf_keras.optimizers.legacy.SGD(1e-3)
    for sample, wanted in zip(samples, targets):
        with tf.GradientTape() as tape:
            found = tf.nest.flatten(whole(sample, training=True))
            loss = sum(tf.reduce_mean((a - b) ** 2) for a, b in zip(found, wanted))
        slopes = tape.gradient(loss, whole.trainable_variables)
        pairs = zip(slopes, whole.trainable_variables)
        optimiser.apply_gradients([(slope, variable) for slope, variable in pairs if slope is not None])

    watched = tf.function(lambda: [whole(sample, training=True) for sample in samples], autograph=False)
    for _ in range(rounds):
        watched()


def tfmot_ranges(whole):
    """All fake quantisation by name: of which layer it is, and, for a weight, which ranges of activations come behind
    its layer (the first one, and those that a fused activation has); their ranges, low ends before high ones; the
    weights, with the batch normalisation behind them. A weight that has no range has one of zeros, and is marked."""
    listed, ranges, arrays = {}, {}, {}

    def add(name, kind, layer, made, **further):
        listed[name] = {"kind": kind, "layer": type(getattr(layer, "layer", layer)).__name__, **further}
        ends = [made[end].numpy() for end in ("min_var", "max_var")] if made else [0, 0]
        ranges[name] = np.array([np.reshape(end, -1) for end in ends], np.float32)

    for layer in whole.layers:
        if getattr(layer, "quantizer", None):
            add(layer.name, "input", layer, layer.quantizer_vars, of=layer._inbound_nodes[0].inbound_layers.name)
        for activation in getattr(layer, "_quantize_activations", []):
            if hasattr(activation, "_post_activation_vars"):
                add(f"{layer.name}.post", "activation", layer, activation._post_activation_vars)
        if getattr(layer, "_output_quantizers", None):
            add(f"{layer.name}.output", "activation", layer, layer._output_quantizer_vars)
    for layer in whole.layers:
        inner = getattr(layer, "layer", layer)
        held = [(weight, made) for weight, _, made in getattr(layer, "_weight_vars", [])]
        if not held and isinstance(inner, tf_keras.layers.DepthwiseConv2D):
            held = [(inner.depthwise_kernel, None)]
        elif not held and isinstance(inner, (tf_keras.layers.Conv2D, tf_keras.layers.Dense)):
            held = [(inner.kernel, None)]
        for weight, made in held:
            name, behind, norm = f"{layer.name}.weight", layer, None
            while not {f"{behind.name}.post", f"{behind.name}.output"} & set(listed) and behind._outbound_nodes:
                behind = behind._outbound_nodes[0].outbound_layer
                inner = getattr(behind, "layer", None)
                norm = inner if isinstance(inner, tf_keras.layers.BatchNormalization) else norm
            near = [behind, *(node.outbound_layer for node in behind._outbound_nodes)]
            ends = [end for one in near for end in (f"{one.name}.post", f"{one.name}.output") if end in listed]
            epsilon = norm.epsilon if norm else 0.0
            add(name, "weight", layer, made, behind=ends, epsilon=epsilon, absent=made is None)
            arrays[name] = weight.numpy()
            if norm:
                arrays[f"{name}.gamma"], arrays[f"{name}.variance"] = norm.gamma.numpy(), norm.moving_variance.numpy()
    return listed, ranges, arrays

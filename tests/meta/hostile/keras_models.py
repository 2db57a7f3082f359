"""Models as Keras saves them: such that nobody should refuse, and such that run code of their author."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hostile.edit import Build


def _saved(make: Callable[[Any, Any], Any]) -> Build:
    """make: takes keras and keras.layers, and returns a model."""

    def build(folder: Path, marker: Path) -> Path:
        import keras

        path = folder / "model.keras"
        make(keras, keras.layers).save(path)
        return path

    return build


def _layers(shape: tuple[int, ...], make: Callable[[Any], list[Any]], dtype: str | None = None) -> Build:
    return _saved(lambda keras, layers: keras.Sequential([keras.Input(shape, dtype=dtype), *make(layers)]))


def _several(keras: Any, layers: Any) -> Any:
    """Inputs and outputs by name, a model inside, a layer that is used twice, operations, a constant."""
    a, b, dense = keras.Input((4,), name="a"), keras.Input((4,), name="b"), layers.Dense(4)
    inner = keras.Model(a, dense(dense(a)))
    y = inner(a) + inner(b) * 2.0 + np.arange(4, dtype="float32")
    z = keras.ops.where(y > 0.5, keras.ops.sin(a), keras.ops.zeros_like(y))[:, :2]
    return keras.Model({"a": a, "b": b}, {"y": y, "z": [keras.ops.einsum("ij,ij->i", y, y), z]})


def _compiled(keras: Any, layers: Any) -> Any:
    dense = layers.Dense(
        4,
        kernel_initializer=keras.initializers.VarianceScaling(2.0),
        kernel_regularizer=keras.regularizers.L1L2(0.1, 0.1),
        kernel_constraint=keras.constraints.MaxNorm(2),
        activity_regularizer=keras.regularizers.L2(0.1),
    )
    model = keras.Sequential([keras.Input((4,)), dense, layers.Dense(2, name="p")])
    rate = keras.optimizers.schedules.CosineDecay(0.1, 10)
    metrics = ["mae", keras.metrics.RootMeanSquaredError(), keras.metrics.mean_squared_error]
    model.compile(keras.optimizers.AdamW(rate), loss={"p": keras.losses.Huber()}, metrics={"p": metrics})
    return model


def _adapted(keras: Any, layers: Any) -> Any:
    words = layers.TextVectorization(max_tokens=10, output_sequence_length=4)
    words.adapt(["a b c", "d"])
    return keras.Sequential([keras.Input((1,), dtype="string"), words, layers.Embedding(10, 3, mask_zero=True)])


def _normalised(keras: Any, layers: Any) -> Any:
    numbers = layers.Normalization()
    numbers.adapt(np.ones((3, 4), "float32"))
    return keras.Sequential([keras.Input((4,)), numbers, layers.Discretization(bin_boundaries=[0.0, 1.0])])


def _mixed(keras: Any, layers: Any) -> Any:
    dense = layers.Dense(3, dtype="mixed_float16")
    return keras.Sequential([keras.Input((4,)), dense, layers.Activation("softmax", dtype="float32")])


def _quantised(keras: Any, layers: Any) -> Any:
    model = keras.Sequential([keras.Input((16,)), layers.Dense(8), layers.EinsumDense("ab,bc->ac", 4)])
    model.quantize("int8")
    return model


def _adapter(keras: Any, layers: Any) -> Any:
    dense = layers.Dense(8)
    model = keras.Sequential([keras.Input((16,)), dense])
    dense.enable_lora(2)
    return model


def _attention(keras: Any, layers: Any) -> Any:
    x = keras.Input((4, 6))
    y = layers.MultiHeadAttention(2, 3)(x, x) + layers.AdditiveAttention()([x, x])
    return keras.Model(x, layers.LayerNormalization()(layers.GroupQueryAttention(3, 2, 1)(y, y)))


def _own(registered: bool) -> Build:
    def make(keras: Any, layers: Any) -> Any:
        own = type("Own", (layers.Layer,), {"call": lambda self, x: x + 1})
        if registered:
            keras.saving.register_keras_serializable("own")(own)
        return keras.Sequential([keras.Input((4,)), own()])

    return _saved(make)


def _scaled(keras: Any, layers: Any) -> Any:
    """ConvNeXt, whose LayerScale is a class of keras.applications."""
    from keras.src.applications.convnext import ConvNeXt

    return ConvNeXt([1, 1, 1, 1], [4, 4, 4, 4], weights=None, input_shape=(32, 32, 3), classes=2)


HARMLESS: dict[str, Build] = {
    "several": _saved(_several),
    "compiled": _saved(_compiled),
    "words": _saved(_adapted),
    "normalised": _saved(_normalised),
    "mixed": _saved(_mixed),
    "quantised": _saved(_quantised),
    "adapter": _saved(_adapter),
    "attention": _saved(_attention),
    "images": _layers(
        (16, 16, 3),
        lambda layers: [
            layers.RandomFlip(),
            layers.RandomRotation(0.1),
            layers.Rescaling(1 / 255),
            layers.Conv2D(4, 3, padding="same", kernel_regularizer="l2"),
            layers.BatchNormalization(),
            layers.ReLU(6),
            layers.DepthwiseConv2D(3),
            layers.SpatialDropout2D(0.1),
            layers.Conv2DTranspose(2, 2),
            layers.MaxPooling2D(),
            layers.UpSampling2D(interpolation="bilinear"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(2, "softmax"),
        ],
    ),
    "recurrent": _layers(
        (6, 4),
        lambda layers: [
            layers.Masking(),
            layers.Bidirectional(layers.LSTM(3, return_sequences=True)),
            layers.RNN([layers.GRUCell(2), layers.LSTMCell(3)], return_sequences=True),
            layers.TimeDistributed(layers.Dense(2)),
            layers.SimpleRNN(3),
        ],
    ),
    "lookup": _layers(
        (4,), lambda layers: [layers.StringLookup(vocabulary=["a", "b"]), layers.CategoryEncoding(3)], "string"
    ),
    "volumes": _layers(
        (6, 6, 6, 2),
        lambda layers: [
            layers.Conv3D(2, 2),
            layers.ZeroPadding3D(),
            layers.AveragePooling3D(2),
            layers.Flatten(),
            layers.PReLU(),
        ],
    ),
    "network": _saved(lambda keras, layers: keras.applications.MobileNetV2((32, 32, 3), weights=None, classes=10)),
    "scale": _saved(_scaled),
}
HOSTILE: dict[str, Build] = {
    "lambda": _layers((4,), lambda layers: [layers.Lambda(lambda x: x * 2)]),
    "own": _own(False),
    "own_registered": _own(True),
}

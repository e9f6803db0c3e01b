"""Models of TensorFlow and Keras, written by tf2onnx; it needs tensorflow (or tensorflow-cpu) and tf2onnx."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from tests.onnx_front.exporters.fixture import write

tf: Any = import_module("tensorflow")
tf2onnx: Any = import_module("tf2onnx")
layers: Any = tf.keras.layers


def keras(shape: Sequence[int], *parts: Any) -> Any:
    """Return a network of layers one after the other; moving averages are no longer 0 and 1."""
    model = tf.keras.Sequential([tf.keras.Input(shape), *parts])
    generator = np.random.default_rng(1)
    for weight in model.weights:
        low = 0.5 if "variance" in weight.name or "gamma" in weight.name else -0.5
        weight.assign(generator.uniform(low, low + 1, weight.shape).astype(np.float32))
    return model


def convolutions() -> Any:
    return keras(
        (9, 11, 3),
        layers.Conv2D(4, 3, strides=2, padding="same"),
        layers.BatchNormalization(),
        layers.ReLU(max_value=6),
        layers.DepthwiseConv2D(3, padding="same", depth_multiplier=2),
        layers.Activation("relu"),
        layers.MaxPooling2D(2, padding="same"),
        layers.SeparableConv2D(6, 3, padding="same"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(5),
    )


def even_windows() -> Any:
    """SAME pads more behind than before where a window or stride is even."""
    return keras(
        (8, 10, 2),
        layers.Conv2D(4, 2, padding="same"),
        layers.AveragePooling2D(3, strides=2, padding="same"),
        layers.LeakyReLU(),
        layers.Conv2D(4, 3, dilation_rate=2, padding="same"),
        layers.ELU(),
    )


def padded() -> Any:
    return keras(
        (7, 7, 3),
        layers.ZeroPadding2D(((0, 1), (0, 1))),
        layers.Conv2D(4, 3, strides=2),
        layers.BatchNormalization(),
        layers.Activation("relu"),
        layers.Conv2DTranspose(3, 3, strides=2, padding="same"),
        layers.Cropping2D(((1, 0), (0, 1))),
    )


def upsampled() -> Any:
    return keras(
        (4, 5, 3),
        layers.UpSampling2D(2),
        layers.Conv2D(3, 1),
        layers.UpSampling2D(2, interpolation="bilinear"),
    )


def squeezed() -> Any:
    """A block of MobileNetV3: hard swish, squeeze and excite, and the sum with the input."""
    x = tf.keras.Input((6, 6, 8))
    y = layers.Conv2D(8, 1, use_bias=False)(x)
    y = layers.Activation("hard_swish")(y)
    s = layers.GlobalAveragePooling2D(keepdims=True)(y)
    s = layers.Conv2D(4, 1, activation="relu")(s)
    s = layers.Conv2D(8, 1, activation="hard_sigmoid")(s)
    y = layers.Multiply()([y, s])
    y = layers.Add()([x, y])
    return tf.keras.Model(x, layers.Concatenate()([x, y]))


def dense() -> Any:
    return keras(
        (4, 6),
        layers.Flatten(),
        layers.Dense(8, activation="tanh"),
        layers.Dropout(0.5),
        layers.LayerNormalization(),
        layers.Reshape((2, 4)),
        layers.Permute((2, 1)),
        layers.Dense(3, activation="sigmoid"),
        layers.PReLU(),
    )


def recurrent() -> Any:
    return keras((5, 4), layers.LSTM(3, return_sequences=True), layers.GRU(3))


def both_ways() -> Any:
    return keras((5, 4), layers.Bidirectional(layers.LSTM(3)))


def attention() -> Any:
    x = tf.keras.Input((5, 8))
    y = layers.MultiHeadAttention(2, 4)(x, x)
    y = layers.LayerNormalization()(layers.Add()([x, y]))
    return tf.keras.Model(x, layers.Dense(8, activation="silu")(y))


def aligned(x: Any) -> Any:
    """The resizing of TensorFlow 1, which later ones keep for old models."""
    up = tf.compat.v1.image.resize_bilinear(x, (9, 13), align_corners=True)
    return tf.compat.v1.image.resize_nearest_neighbor(up, (18, 26))


def old_corners(x: Any) -> Any:
    return tf.compat.v1.image.resize_bilinear(x, (8, 12))


def half_pixels(x: Any) -> Any:
    return tf.image.resize(x, (10, 9))


def nearest_pixels(x: Any) -> Any:
    return tf.image.resize(tf.image.resize(x, (9, 7), method="nearest"), (4, 3), method="nearest")


def slices(x: Any) -> Any:
    a, b = tf.split(x, [1, 2], axis=3)
    y = tf.concat([b, a], 3)[:, 1:, ::2, :]
    y = tf.pad(y, [[0, 0], [1, 1], [0, 2], [0, 0]], mode="REFLECT")
    y = tf.reshape(y, [tf.shape(y)[0], -1, 3])
    return tf.squeeze(tf.reduce_max(tf.stack([y, 2 * y], 1), axis=1, keepdims=True), 1)


def blocks(x: Any) -> Any:
    y = tf.nn.space_to_depth(x, 2)
    return tf.nn.depth_to_space(tf.nn.relu6(y) + tf.math.l2_normalize(y, -1), 2)


def normalized(x: Any) -> Any:
    y = tf.nn.local_response_normalization(x, 1, 1.0, 0.1, 0.5)
    return tf.nn.softmax(y) + tf.math.squared_difference(y, tf.reduce_mean(y, [1, 2], keepdims=True))


NETWORKS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "convolutions": (convolutions, (1, 9, 11, 3)),
    "even_windows": (even_windows, (2, 8, 10, 2)),
    "padded": (padded, (1, 7, 7, 3)),
    "nearest": (lambda: keras((4, 5, 3), layers.UpSampling2D(2), layers.Conv2D(3, 1)), (1, 4, 5, 3)),
    "upsampled": (upsampled, (1, 4, 5, 3)),
    "squeezed": (squeezed, (1, 6, 6, 8)),
    "dense": (dense, (2, 4, 6)),
    "recurrent": (recurrent, (2, 5, 4)),
    "both_ways": (both_ways, (1, 5, 4)),
    "attention": (attention, (1, 5, 8)),
}
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "aligned": (aligned, (1, 5, 7, 2)),
    "old_corners": (old_corners, (1, 4, 6, 2)),
    "half_pixels": (half_pixels, (1, 5, 6, 2)),
    "nearest_pixels": (nearest_pixels, (1, 5, 6, 2)),
    "slices": (slices, (2, 4, 6, 3)),
    "blocks": (blocks, (1, 4, 6, 4)),
    "normalized": (normalized, (1, 4, 5, 6)),
}
OPSETS = {"nearest": (9, 10), "convolutions": (9, 11, 13, 17), "recurrent": (9, 15)}


def main() -> None:
    """Write every model."""
    made = {name: (make(), shape) for name, (make, shape) in NETWORKS.items()}
    for name, (network, shape) in {**made, **FUNCTIONS}.items():
        function = tf.function(network)
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        y = function(x).numpy()
        for opset in OPSETS.get(name, (13,)):
            signature = [tf.TensorSpec([None, *shape[1:]], tf.float32, name="x")]
            model, _ = tf2onnx.convert.from_function(function, signature, opset=opset)
            write("tf2onnx", f"{name}-{opset}", model.SerializeToString(), [x], [y])


if __name__ == "__main__":
    main()

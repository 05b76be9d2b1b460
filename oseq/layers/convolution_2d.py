"""Convolution over time and frequency."""

from __future__ import annotations

import functools
from collections.abc import Callable

import keras
import tensorflow as tf

from oseq.layers import masks
from oseq.layers.linear import add_bias, map_rows, own_initializer
from oseq.layers.window import Window

Pair = tuple[int, int]

# Bins and input channels of a kernel up to which oneDNN is quick with its gradient.
_WIDEST = 14
_DEEPEST = 64


class Convolution2D(keras.layers.Layer):
    """Two-dimensional convolution whose result does not depend on the other examples.

    Args:
      units: number of channels of the output.
      kernel_size: of time and of frequency, k each.
      stride: of time and of frequency.
      padding: of both axes, see ``Window``.
      use_bias: False leaves the bias out.
      initializer: Keras initializer of the kernel; None is Glorot uniform.
      regularizer: Keras regularizer of the kernel, applied to its FP32 master.
    """

    def __init__(
        self,
        units: int,
        kernel_size: Pair,
        stride: Pair = (1, 1),
        *,
        padding: str = "SAME",
        use_bias: bool = True,
        initializer: keras.initializers.Initializer | None = None,
        regularizer: keras.regularizers.Regularizer | None = None,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        self.units = units
        self.time, self.frequency = (
            Window(*sizes, padding=padding)
            for sizes in zip(kernel_size, stride, strict=True)
        )
        self.use_bias = use_bias
        self.initializer = own_initializer(initializer)
        self.regularizer = regularizer

    def build(self, input_shape):
        self.kernel = self.add_weight(
            name="kernel",
            shape=(self.time.size, self.frequency.size, input_shape[-1], self.units),
            initializer=self.initializer,
            regularizer=self.regularizer,
        )
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias", shape=(self.units,), initializer="zeros"
            )

    def call(self, inputs: tf.Tensor, length: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Convolves; what lies beyond ``length`` counts as zeros, inf and NaN too.

        Args:
          inputs: [B, T, F, C].
          length: [B] int32.

        Returns:
          Outputs [B, T', F', units] in the same dtype, at least one frame, which mean
          nothing beyond their length, and that length [B] int32.
        """
        shape = tf.shape(inputs)
        inputs = masks.zero_padding(inputs, tf.sequence_mask(length, shape[1]))
        zeros = [self.time.zeros(shape[1]), self.frequency.zeros(inputs.shape[2])]
        padded = tf.pad(inputs, [[0, 0], *zeros, [0, 0]])
        stride = self.time.stride, self.frequency.stride
        outputs = _convolve(padded, tf.convert_to_tensor(self.kernel), stride)
        # oneDNN's shape of an empty batch is wrong.
        width = (tf.shape(padded)[1] - self.time.size) // self.time.stride + 1
        num_bins = self.frequency.num_outputs(inputs.shape[2])
        outputs = tf.reshape(outputs, [shape[0], width, num_bins, self.units])
        if self.use_bias:
            bias = tf.convert_to_tensor(self.bias)
            outputs = map_rows(lambda rows: add_bias(rows, bias), outputs)
        return outputs, self.time.num_outputs(length)


def _convolve(inputs: tf.Tensor, kernel: tf.Tensor, stride: Pair) -> tf.Tensor:
    """Args: inputs: [B, T, F, C]; kernel: [k, k, C, units]. Returns: as inputs."""
    dtype = inputs.dtype
    if not is_exact(dtype):
        inputs, kernel = tf.cast(inputs, tf.float32), tf.cast(kernel, tf.float32)
    num_bins = kernel.shape[1]
    if inputs.shape[2] < num_bins + stride[1]:
        # One output bin, where strides mean nothing, and oneDNN's are wrong.
        inputs, stride = inputs[:, :, :num_bins], (stride[0], 1)
    on_gpu = tf.config.get_visible_devices("GPU")
    if not on_gpu and num_bins > _WIDEST:
        outputs = _convolve_with(_sum_by_convolution, inputs, kernel, stride)
    elif not on_gpu and inputs.shape[3] > _DEEPEST:
        outputs = _convolve_with(_sum_by_products, inputs, kernel, stride)
    else:
        outputs = tf.nn.conv2d(inputs, kernel, stride, "VALID")
    return tf.cast(outputs, dtype)


def _convolve_with(
    sum_kernel: Callable[[tf.Tensor, tf.Tensor, tf.TensorShape, Pair], tf.Tensor],
    inputs: tf.Tensor,
    kernel: tf.Tensor,
    stride: Pair,
) -> tf.Tensor:
    """``tf.nn.conv2d`` whose kernel gets the gradient that ``sum_kernel`` makes.

    Of wide or deep kernels that takes a third to a fifth of oneDNN's time.
    """

    @tf.custom_gradient
    def convolve(inputs: tf.Tensor, kernel: tf.Tensor):
        def gradient(upstream: tf.Tensor):
            inputs_gradient = tf.raw_ops.Conv2DBackpropInput(
                input_sizes=tf.shape(inputs),
                filter=kernel,
                out_backprop=upstream,
                strides=[1, *stride, 1],
                padding="VALID",
            )
            kernel_gradient = tf.cond(
                tf.size(upstream) > 0,
                lambda: sum_kernel(inputs, upstream, kernel.shape, stride),
                lambda: tf.zeros_like(kernel),
            )
            return inputs_gradient, kernel_gradient

        return tf.nn.conv2d(inputs, kernel, stride, "VALID"), gradient

    return convolve(inputs, kernel)


def _sum_by_convolution(
    inputs: tf.Tensor, upstream: tf.Tensor, shape: tf.TensorShape, stride: Pair
) -> tf.Tensor:
    """Returns [k, k, C, units], made by a convolution of ``inputs`` with ``upstream``.

    Examples take the place of channels, and channels that of examples.
    """
    images = tf.transpose(inputs, [3, 1, 2, 0])  # [C, T, F, B]
    kernels = tf.transpose(upstream, [1, 2, 0, 3])  # [T', F', B, units]
    sums = tf.nn.conv2d(images, kernels, 1, "VALID", dilations=stride)
    # More than k where the stride leaves the last inputs out.
    return tf.transpose(sums[:, : shape[0], : shape[1]], [1, 2, 0, 3])


def _sum_by_products(
    inputs: tf.Tensor, upstream: tf.Tensor, shape: tf.TensorShape, stride: Pair
) -> tf.Tensor:
    """Returns [k, k, C, units], made by a product for each row of the kernel.

    Inputs are taken in blocks of the strides' size, whose slices are cheap to copy;
    those with steps, which make windows otherwise, are not.
    """
    size = tf.shape(inputs)[1], inputs.shape[2]
    outputs = tf.shape(upstream)[1], upstream.shape[2]
    more = [(shape[axis] - 1) // stride[axis] for axis in (0, 1)]  # blocks of windows
    counts = [
        tf.maximum(outputs[axis] + more[axis], -(-size[axis] // stride[axis]))
        for axis in (0, 1)
    ]
    paddings = [[0, counts[axis] * stride[axis] - size[axis]] for axis in (0, 1)]
    padded = tf.pad(inputs, [[0, 0], *paddings, [0, 0]])
    block = stride[1] * shape[2]
    blocks = tf.reshape(padded, [-1, counts[0], stride[0], counts[1], block])
    rows = tf.reshape(upstream, [-1, shape[3]])
    sums = []
    for place in range(shape[0]):
        first, step = divmod(place, stride[0])
        row = blocks[:, first : first + outputs[0], step]  # [B, T', blocks, s * C]
        windows = tf.concat(
            [
                row[:, :, i : i + outputs[1], : shape[1] * shape[2] - i * block]
                for i in range(more[1] + 1)
            ],
            axis=-1,
        )
        windows = tf.reshape(windows, [-1, shape[1] * shape[2]])
        sums.append(tf.matmul(windows, rows, transpose_a=True))
    return tf.reshape(tf.stack(sums), shape)


def is_exact(dtype: tf.DType) -> bool:
    """Returns whether two-dimensional convolutions sum their gradients in float32.

    On GPUs they do (K20). On CPUs float16 is summed in float16, and slower than
    float32; bfloat16 is exact, and faster, where oneDNN makes it.
    """
    if dtype == tf.float32 or tf.config.get_visible_devices("GPU"):
        return True
    return dtype == tf.bfloat16 and _bfloat16_is_exact()


@functools.cache
def _bfloat16_is_exact() -> bool:
    """Tries it: sums of ones in bfloat16 get stuck at 256."""
    with tf.init_scope(), tf.device("CPU"):
        channels, size = 4096, 4
        gradient = tf.raw_ops.Conv2DBackpropInput(
            input_sizes=[1, size, size, 1],
            filter=tf.ones([3, 3, 1, channels], tf.bfloat16),
            out_backprop=tf.ones([1, size - 2, size - 2, channels], tf.bfloat16),
            strides=[1, 1, 1, 1],
            padding="VALID",
        )
        # The middle sees all of the kernel that fits: 2 x 2 outputs.
        return float(gradient[0, 1, 1, 0]) == 4 * channels

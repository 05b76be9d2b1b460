"""Convolutions over time: full, depthwise and separable."""

from __future__ import annotations

import abc

import keras
import tensorflow as tf

from oseq.layers.composite import Composite
from oseq.layers.linear import add_bias, map_rows, own_initializer
from oseq.layers.masks import zero_padding
from oseq.layers.window import Window


class _TimeConvolution(keras.layers.Layer):
    """Common part: windows of inputs, and what is the same in all of them.

    Args:
      kernel_size, stride, dilation, padding, is_causal: of the ``Window``.
      use_bias: False leaves the bias out.
      initializer: Keras initializer of the kernel; None is Glorot uniform.
      regularizer: Keras regularizer of the kernel, applied to its FP32 master.
    """

    units: int  # channels of the output

    def __init__(
        self,
        kernel_size: int,
        stride: int = 1,
        dilation: int = 1,
        *,
        padding: str = "SAME",
        is_causal: bool = False,
        use_bias: bool = True,
        initializer: keras.initializers.Initializer | None = None,
        regularizer: keras.regularizers.Regularizer | None = None,
        name: str,
        dtype: str,
    ):
        super().__init__(name=name, dtype=dtype)
        self.window = Window(kernel_size, stride, dilation, padding, is_causal)
        self.use_bias = use_bias
        self.initializer = own_initializer(initializer)
        self.regularizer = regularizer

    def call(self, inputs: tf.Tensor, valid: tf.Tensor | None = None) -> tf.Tensor:
        """Convolves; what is not valid counts as zeros, inf and NaN too.

        Args:
          inputs: [B, T, C].
          valid: [B, T] bool; None: everything is.

        Returns:
          [B, T', units], same dtype; at least one output, valid or not.
        """
        shape, window = tf.shape(inputs), self.window
        if valid is not None:
            inputs = zero_padding(inputs, valid)
        inputs = tf.pad(inputs, [[0, 0], window.zeros(shape[1]), [0, 0]])
        outputs = self._convolve(inputs)
        # oneDNN's shape of an empty batch is wrong.
        width = (tf.shape(inputs)[1] - window.reach - 1) // window.stride + 1
        outputs = tf.reshape(outputs, [shape[0], width, self.units])
        if self.use_bias:
            bias = tf.convert_to_tensor(self.bias)
            outputs = map_rows(lambda rows: add_bias(rows, bias), outputs)
        return outputs

    @abc.abstractmethod
    def _convolve(self, inputs: tf.Tensor) -> tf.Tensor:
        """Args: inputs: [B, T, C], padded. Returns: [B, T', units], without padding."""

    def _add_weights(self, kernel_shape: tuple[int, ...]) -> None:
        self.kernel = self.add_weight(
            name="kernel",
            shape=kernel_shape,
            initializer=self.initializer,
            regularizer=self.regularizer,
        )
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias", shape=(self.units,), initializer="zeros"
            )


class TimeConvolution(_TimeConvolution):
    """Each output sees all channels of k inputs; with k = 1 it is a linear map.

    Args:
      units: channels of the output.
      kernel_size, stride, dilation, options: see ``_TimeConvolution``.
    """

    def __init__(self, units: int, *args, **options):
        super().__init__(*args, **options)
        self.units = units

    def build(self, input_shape):
        shape = (self.window.size, input_shape[-1], self.units)
        self._add_weights(shape)

    def _convolve(self, inputs: tf.Tensor) -> tf.Tensor:
        kernel, window = tf.convert_to_tensor(self.kernel), self.window
        if window.size == 1:
            return map_rows(
                lambda rows: tf.matmul(rows, kernel[0]), inputs[:, :: window.stride]
            )
        return convolve(inputs, kernel, window.stride, window.dilation)


class DepthwiseTimeConvolution(_TimeConvolution):
    """Each channel of an output sees its own of k inputs; in float32 (K20)."""

    def build(self, input_shape):
        self.units = input_shape[-1]
        # The middle axis tells initializers that an output sees no other channel.
        self._add_weights((self.window.size, 1, self.units))

    def _convolve(self, inputs: tf.Tensor) -> tf.Tensor:
        kernel = tf.cast(self.kernel, tf.float32)  # [k, 1, C]
        values = tf.cast(inputs, tf.float32)
        stride = self.window.stride
        if self.window.dilation == 1:
            outputs = tf.nn.depthwise_conv2d(
                values[:, tf.newaxis],
                tf.transpose(kernel, [1, 0, 2])[..., tf.newaxis],
                [1, stride, stride, 1],
                "VALID",
            )[:, 0]
        else:
            outputs = self._convolve_columns(values, kernel)
        return tf.cast(outputs, inputs.dtype)

    def _convolve_columns(self, values: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        """Dilated, in rows of ``dilation`` inputs: each output's are in one column.

        Args:
          values: [B, T, C] float32.
          kernel: [k, 1, C] float32.

        Returns:
          [B, T', C] float32.
        """
        shape, dilation = tf.shape(values), self.window.dilation
        num_rows = -(-shape[1] // dilation)
        padding = num_rows * dilation - shape[1]
        rows = tf.reshape(
            tf.pad(values, [[0, 0], [0, padding], [0, 0]]),
            [shape[0], num_rows, dilation, values.shape[-1]],
        )
        outputs = tf.nn.depthwise_conv2d(
            rows, kernel[..., tf.newaxis], [1, 1, 1, 1], "VALID"
        )
        width = (num_rows - self.window.size + 1) * dilation
        outputs = tf.reshape(outputs, [shape[0], width, values.shape[-1]])
        return outputs[:, : shape[1] - self.window.reach]


class SeparableTimeConvolution(Composite):
    """A depthwise convolution and a linear map of its channels.

    "QuartzNet", Kriman et al. 2019, section 3.1: far fewer weights than a full one.

    Args:
      units, kernel_size, stride, dilation, options: see ``TimeConvolution``.
    """

    def __init__(
        self,
        units: int,
        kernel_size: int,
        stride: int = 1,
        dilation: int = 1,
        *,
        use_bias: bool = True,
        name: str,
        dtype: str,
        **options,
    ):
        super().__init__(name=name, dtype=dtype)
        self.depthwise = DepthwiseTimeConvolution(
            kernel_size,
            stride,
            dilation,
            use_bias=False,
            name="depthwise",
            dtype=dtype,
            **options,
        )
        self.pointwise = TimeConvolution(
            units,
            1,
            use_bias=use_bias,
            initializer=options.get("initializer"),
            regularizer=options.get("regularizer"),
            name="pointwise",
            dtype=dtype,
        )

    def call(self, inputs: tf.Tensor, valid: tf.Tensor | None = None) -> tf.Tensor:
        """Args: see ``TimeConvolution``. Returns: [B, T', units], same dtype."""
        return self.pointwise(self.depthwise(inputs, valid))

    @property
    def window(self) -> Window:
        """What one output sees."""
        return self.depthwise.window


def convolve(
    inputs: tf.Tensor, kernel: tf.Tensor, stride: int, dilation: int
) -> tf.Tensor:
    """Convolution without padding whose gradients are summed in float32 (K20).

    On CPUs they are written out. TensorFlow's own are inexact in 16 bits, and slow
    beyond measure, where oneDNN does not make them; the kernel's is slower than one
    product for each of its positions even where it does; and none is dilated.

    Args:
      inputs: [B, T, C].
      kernel: [k, C, units].
      stride, dilation: one of them is 1.

    Returns:
      [B, (T - (k - 1) * dilation - 1) // stride + 1, units], same dtype.
    """
    if tf.config.get_visible_devices("GPU"):
        return tf.nn.conv1d(inputs, kernel, stride, "VALID", dilations=dilation)
    return _convolve_on_cpu(inputs, kernel, stride, dilation)


def _convolve_on_cpu(
    inputs: tf.Tensor, kernel: tf.Tensor, stride: int, dilation: int
) -> tf.Tensor:
    size = kernel.shape[0]
    reach = (size - 1) * dilation

    @tf.custom_gradient
    def convolve(inputs: tf.Tensor, kernel: tf.Tensor):
        outputs = tf.nn.conv1d(inputs, kernel, stride, "VALID", dilations=dilation)

        def gradient(upstream: tf.Tensor):
            shape = tf.shape(inputs)
            spread = _spread(upstream, stride, shape[1])
            # All examples in one row of frames; between them ``spread`` is zero. These
            # slices of it need no copies.
            frames = tf.reshape(inputs, [-1, kernel.shape[1]])
            rows = tf.reshape(spread, [-1, kernel.shape[2]])
            count = tf.maximum(tf.shape(rows)[0] - reach, 0)
            kernel_gradient = [
                tf.matmul(frames[i : i + count], rows[:count], transpose_a=True)
                for i in range(0, reach + 1, dilation)
            ]
            turned = tf.transpose(tf.reverse(kernel, [0]), [0, 2, 1])
            padded = tf.pad(spread, [[0, 0], [reach, 0], [0, 0]])
            values = tf.nn.conv1d(padded, turned, 1, "VALID", dilations=dilation)
            return tf.reshape(values, shape), tf.stack(kernel_gradient)

        return outputs, gradient

    return convolve(inputs, kernel)


def _spread(upstream: tf.Tensor, stride: int, width: tf.Tensor) -> tf.Tensor:
    """Returns [B, width, units] of ``upstream`` [B, T', units].

    Each output stands where the first of its inputs stands, with zeros around.
    """
    shape = tf.shape(upstream)
    if stride > 1:
        spaces = [[0, 0], [0, 0], [0, stride - 1], [0, 0]]
        upstream = tf.pad(upstream[:, :, tf.newaxis], spaces)
        upstream = tf.reshape(upstream, [shape[0], shape[1] * stride, shape[2]])
    right = tf.maximum(width - shape[1] * stride, 0)
    return tf.pad(upstream, [[0, 0], [0, right], [0, 0]])[:, :width]

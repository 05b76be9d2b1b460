"""From sound to what a model reads, and from ids to text, inside a TensorFlow graph."""

from __future__ import annotations

import tensorflow as tf

from oseq.contracts import Source
from oseq.data.audio_features import AudioFeatures
from oseq.data.graph_resampling import resample
from oseq.data.graph_tokenizer import GraphTokenizer
from oseq.data.graph_wav import decode_wav


class GraphAudioFrontEnd(tf.Module):
    """Does with sound what infer mode does with audio files.

    Args:
      features: of the data that the model was trained on.
      tokenizer: of its transcripts.

    Attributes:
      sample_freq: Hz.
      window_size: samples of a frame of features.
      stride: samples from one frame to the next.
    """

    def __init__(self, features: AudioFeatures, tokenizer: GraphTokenizer):
        super().__init__()
        self._features = features
        self._tokenizer = tokenizer
        self.sample_freq = features.sample_freq
        self.window_size = features.window_size
        self.stride = features.stride

    def read_wav(self, files: tf.Tensor) -> tf.RaggedTensor:
        """Returns the samples of WAV files, see ``decode_wav``.

        Channels are averaged, other sample rates are changed to ``sample_freq``.

        Args:
          files: [B] string, the bytes of each.

        Returns:
          [B, (N)] float32.
        """
        spec = tf.RaggedTensorSpec([None], tf.float32, ragged_rank=0)
        return tf.map_fn(self._read_one, files, fn_output_signature=spec)

    def as_source(self, samples: tf.RaggedTensor) -> Source:
        """Returns the features of samples [B, (N)] float32."""
        length = tf.cast(samples.row_lengths(), tf.int32)
        features, length = self._features(samples.to_tensor(), length)
        return {"features": features, "length": length}

    def num_frames(self, num_samples: tf.Tensor) -> tf.Tensor:
        """Returns how many frames of features so many samples give, both [B] int32."""
        return self._features.num_frames(num_samples)

    def decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Returns the text of target ids: [rows, (T)] int32 to [rows] string.

        As of the data layer, there is one space between words and none around them.
        """
        text = tf.strings.regex_replace(self._tokenizer.decode(ids), " +", " ")
        return tf.strings.regex_replace(text, "^ | $", "")

    def _read_one(self, file: tf.Tensor) -> tf.Tensor:
        channels, rate = decode_wav(file)  # [N, channels]
        samples = tf.reduce_mean(channels, axis=1)
        return tf.cond(
            rate == self.sample_freq,
            lambda: samples,
            lambda: resample(samples, rate, self.sample_freq),
        )

"""A trained speech model with its front end as one graph that stands alone."""

from __future__ import annotations

import tensorflow as tf

from oseq.config.params import ConfigError
from oseq.contracts import Batch
from oseq.data.graph_audio_front_end import GraphAudioFrontEnd
from oseq.export.compiled import compile_for_sources, rows_of
from oseq.export.sub_batches import SubBatchLimits, generate_in_sub_batches
from oseq.models.speech2text import Speech2Text
from oseq.search.ctc_search import CTCSearch


class Transcriber(tf.Module):
    """Answers sound with text, at any size of the batch.

    What is given is treated as infer mode treats audio files; what holds no sample is
    answered by blank text without the model.

    Args:
      model: with trained weights.
      front_end: of the data that the model was trained on.
      num_features: F, of the same data.
      limits: of what the model answers at once; its tokens are frames of features.

    Attributes:
      num_best: K, the hypotheses of an utterance.
      signatures: names of the methods that are to be saved; the first is the default.

    Raises:
      ConfigError: the search cannot be part of a graph.
    """

    def __init__(
        self,
        model: Speech2Text,
        front_end: GraphAudioFrontEnd,
        num_features: int,
        limits: SubBatchLimits,
    ):
        super().__init__()
        search = model.search
        is_ctc = isinstance(search, CTCSearch)
        if is_ctc and not search.is_exportable:
            raise ConfigError(
                f"search: {type(search).__name__} runs outside of TensorFlow's graph "
                "and cannot be exported; CTCGreedySearch can"
            )
        # Variables are what has to be saved. The model itself is not tracked, or
        # loading would look for the classes of its layers.
        self._variables = [weight.value for weight in model.variables]
        self._front_end = front_end
        self._limits = limits
        source = {"features": tf.TensorSpec([None, None, num_features], tf.float32)}
        self._generate, predictions = compile_for_sources(model.generate, source)
        self.num_best = predictions["score"].shape[1]
        self.signatures: tuple[str, ...] = ("transcribe", "transcribe_wav")
        if is_ctc:
            self.signatures += ("frames", "text")

            def log_probabilities(batch: Batch) -> dict[str, tf.Tensor]:
                encoded = model.encoder(batch["source"], training=False)
                frames = model.score_frames(encoded)
                return {
                    "log_probabilities": tf.nn.log_softmax(frames["logits"]),
                    "length": frames["length"],
                }

            self._frames, _ = compile_for_sources(log_probabilities, source)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None], tf.float32, "samples"),
            tf.TensorSpec([None], tf.int32, "length"),
        ],
        autograph=False,
    )
    def transcribe(self, samples: tf.Tensor, length: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns what is said in samples at the model's own sample rate.

        Args:
          samples: [B, N] float32, between -1 and 1.
          length: [B] int32; what lies beyond is not looked at.

        Returns:
          text: [B, K] string, best first; "" where nothing was to be heard.
          score: [B, K] float32; 0 where ``length`` was 0.
        """
        return self._answer(rows_of(samples, length, "samples"))

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string, "wav")], autograph=False
    )
    def transcribe_wav(self, wav: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns what is said in WAV files.

        Args:
          wav: [B] string, the bytes of each: PCM of 8, 16, 24 or 32 bits or float of 32
            or 64; any rate, any number of channels.

        Returns:
          As ``transcribe``.
        """
        return self._answer(self._front_end.read_wav(wav))

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None], tf.float32, "samples"),
            tf.TensorSpec([None], tf.int32, "length"),
        ],
        autograph=False,
    )
    def frames(self, samples: tf.Tensor, length: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns how likely each symbol is in each frame: what a stream is made of.

        Args:
          samples, length: as of ``transcribe``.

        Returns:
          log_probabilities: [B, S', V] float32.
          length: [B] int32.
        """
        source = self._front_end.as_source(_finite(rows_of(samples, length, "samples")))
        places = tf.range(tf.size(length, tf.int64))
        return self._frames({"source": source, "id": places})

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None], tf.int32, "ids"),
            tf.TensorSpec([None], tf.int32, "length"),
        ],
        autograph=False,
    )
    def text(self, ids: tf.Tensor, length: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the text [B] string of ids [B, T] int32."""
        return {"text": self._front_end.decode(rows_of(ids, length, "ids"))}

    def _answer(self, samples: tf.RaggedTensor) -> dict[str, tf.Tensor]:
        found = generate_in_sub_batches(
            self._generate,
            _finite(samples),
            self._front_end.as_source,
            self.num_best,
            self._limits,
            self._front_end.num_frames,
        )
        shape = tf.shape(found.score)
        return {
            "text": tf.reshape(self._front_end.decode(found.ids), shape),
            "score": found.score,
        }


def _finite(samples: tf.RaggedTensor) -> tf.RaggedTensor:
    """Returns the samples, which have to be numbers."""
    is_finite = tf.reduce_all(tf.math.is_finite(samples.flat_values))
    message = "samples must be numbers, neither NaN nor infinite"
    with tf.control_dependencies([tf.debugging.Assert(is_finite, [message])]):
        return samples.with_flat_values(tf.identity(samples.flat_values))

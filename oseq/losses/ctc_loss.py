"""The loss of connectionist temporal classification."""

from __future__ import annotations

import tensorflow as tf

from oseq.contracts import DecoderOutput, LossOutput, Target
from oseq.losses.loss import Loss

# A softmax of float32 holds all that is at most so far below its greatest value, and a
# sum as likely as this misses nothing of what it does not hold.
_CERTAIN = 60.0


class CTCLoss(Loss):
    """Negative logarithm of the probability that the frames spell the label.

    "Connectionist Temporal Classification", section 4: the sum over all paths of one
    symbol per frame that are the label once repeats are merged and blanks left out.
    The blank is ``spec.pad_id``; the EOS at the end of a target is no part of its
    label. An empty label is legal: its one path is all blanks.

    The total is a sum over utterances, the weight their number. A label that has more
    symbols, with a blank between equal neighbours, than there are frames has no path
    at all: it has no loss, no gradient and no weight, and is counted.

    In parts: ``num_impossible``, the number of such labels.
    """

    scores = frozenset({"frames"})
    works_in_xla = False  # no compiler of TensorFlow's knows its kernel

    def __call__(self, outputs: DecoderOutput, target: Target) -> LossOutput:
        """Args: outputs: ``logits`` [B, S', V] and ``length``, in frames."""
        logits, num_frames = outputs["logits"], outputs["length"]
        length = tf.maximum(target["length"] - 1, 0)  # without EOS
        is_possible = length + _num_repeats(target["ids"], length) <= num_frames
        # What has no path is not given to any operation: it may hold anything.
        spoken = tf.where(is_possible & (length > 0))[:, 0]
        silent = tf.where(length == 0)[:, 0]
        total = self._loss_of_labels(
            tf.gather(logits, spoken),
            tf.gather(num_frames, spoken),
            tf.gather(target["ids"], spoken),
            tf.gather(length, spoken),
        ) + self._loss_of_silence(
            tf.gather(logits, silent), tf.gather(num_frames, silent)
        )
        num_possible = tf.reduce_sum(tf.cast(is_possible, tf.float32))
        num_impossible = tf.reduce_sum(tf.cast(~is_possible, tf.float32))
        return LossOutput(total, num_possible, {"num_impossible": num_impossible})

    def _loss_of_labels(
        self,
        logits: tf.Tensor,
        num_frames: tf.Tensor,
        ids: tf.Tensor,
        length: tf.Tensor,
    ) -> tf.Tensor:
        """Returns the sum over utterances whose labels are not empty, float32.

        TensorFlow's kernel for CPUs takes 20 ms for 16 utterances of 400 frames on two
        cores, ``tf.nn.ctc_loss`` with dense labels 650. A machine with GPUs calls it as
        well: cuDNN's takes no label of more than 256 symbols.

        The kernel takes logarithms of probabilities in float32, of which the smallest
        are 0. Utterances where that can matter are computed by the slow one.

        Args:
          logits: [B, S', V] float32.
          num_frames: [B] int32.
          ids: [B, T] int32, of which the first ``length`` [B] int32 are the label.
        """
        # Its blank is the last class: the classes after ours come first.
        first = self.spec.pad_id + 1
        frames = tf.transpose(tf.roll(logits, -first, axis=2), [1, 0, 2])  # [S', B, V]
        places = tf.where(tf.sequence_mask(length, tf.shape(ids)[1]))  # [P, 2]
        labels = (tf.gather_nd(ids, places) - first) % logits.shape[2]

        def kernel() -> tf.Tensor:
            losses, _ = tf.raw_ops.CTCLoss(
                inputs=frames,
                labels_indices=places,
                labels_values=labels,
                sequence_length=num_frames,
            )
            is_unsure = (losses > _CERTAIN) & (_contrast(logits, num_frames) > _CERTAIN)
            unsure = tf.where(is_unsure)[:, 0]

            def in_logarithms() -> tf.Tensor:
                losses = tf.nn.ctc_loss(
                    tf.gather(ids, unsure),
                    tf.gather(logits, unsure),
                    tf.gather(length, unsure),
                    tf.gather(num_frames, unsure),
                    logits_time_major=False,
                    blank_index=self.spec.pad_id,
                )
                return tf.reduce_sum(losses)

            sure = tf.reduce_sum(tf.where(is_unsure, 0.0, losses))
            return sure + tf.cond(tf.size(unsure) > 0, in_logarithms, _nothing)

        # It refuses an empty batch.
        return tf.cond(tf.size(frames) > 0, kernel, _nothing)

    def _loss_of_silence(self, logits: tf.Tensor, num_frames: tf.Tensor) -> tf.Tensor:
        """Returns the sum over utterances without any symbol; the kernel takes none.

        Args:
          logits: [B, S', V] float32.
          num_frames: [B] int32.
        """
        places = tf.where(tf.sequence_mask(num_frames, tf.shape(logits)[1]))
        log_probabilities = tf.nn.log_softmax(tf.gather_nd(logits, places))  # [P, V]
        return -tf.reduce_sum(log_probabilities[:, self.spec.pad_id])


def _nothing() -> tf.Tensor:
    return tf.zeros([])


def _contrast(logits: tf.Tensor, num_frames: tf.Tensor) -> tf.Tensor:
    """Returns [B]: how far below the greatest logit of its frame one is, at most."""
    contrast = tf.reduce_max(logits, axis=2) - tf.reduce_min(logits, axis=2)
    is_frame = tf.sequence_mask(num_frames, tf.shape(logits)[1])
    return tf.reduce_max(tf.where(is_frame, contrast, 0.0), axis=1)


def _num_repeats(ids: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
    """Returns [B] int32: neighbours that are equal among the first ``length`` ids."""
    is_repeat = ids[:, 1:] == ids[:, :-1]  # [B, T - 1]
    is_label = tf.sequence_mask(length - 1, tf.shape(is_repeat)[1])
    return tf.reduce_sum(tf.cast(is_repeat & is_label, tf.int32), axis=1)

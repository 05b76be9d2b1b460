"""The contract of a CTC search: from the logits of frames to the best sequences."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from oseq.config.params import Component, check_params
from oseq.contracts import DataSpec, Predictions


class CTCSearch(Component, abc.ABC):
    """Looks for the best sequences under a CTC model (Graves et al. 2006).

    A path has one class for each frame. It stands for the sequence that is left when
    repetitions are taken for one and blanks are dropped; the probability of a
    sequence is the sum over its paths. Probabilities are the softmax over all V
    classes, as in the loss, so a score is minus the loss of its hypothesis. EOS, BOS
    and UNK are classes, too, but no label has them, and no search puts them out.

    Args:
      params: the user's values; checked and completed here.
      spec: vocabulary size and special ids. PAD is the blank.
    """

    is_exportable = True  # False, if the search needs Python

    def __init__(self, params: Mapping[str, Any], spec: DataSpec):
        self.params = check_params(type(self), params)
        self.spec = spec

    @abc.abstractmethod
    def search_frames(self, logits: tf.Tensor, length: tf.Tensor) -> Predictions:
        """Returns the best sequences of every utterance, whatever else is in the batch.

        Args:
          logits: [B, S', V] float32; B and S' may be 0. What lies beyond ``length``
            is not read.
          length: [B] int32, frames; 0 gives the empty hypothesis.

        Returns:
          ids [B, K, T] with T the length of the longest hypothesis.
        """


def never_put_out(spec: DataSpec) -> list[int]:
    """Returns the classes that no path has: EOS, BOS and UNK.

    BOS is PAD, the blank, in a vocabulary without it, and UNK may be -1.
    """
    specials = {spec.eos_id, spec.bos_id, spec.unk_id} - {spec.pad_id, -1}
    return sorted(specials)


def classes_of_paths(spec: DataSpec) -> np.ndarray:
    """Returns [V] bool: what a path is made of, which is symbols and the blank."""
    is_allowed = np.ones(spec.target_vocab_size, bool)
    is_allowed[never_put_out(spec)] = False
    return is_allowed

"""CTC prefix beam search, with a language model where one is given."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from oseq.config.params import ConfigError, Param
from oseq.contracts import DataSpec, Predictions
from oseq.ngram.kenlm_model import load_language_model
from oseq.search.ctc_prefixes import Hypothesis, PrefixBeam, symbols_of_frames
from oseq.search.ctc_search import CTCSearch, classes_of_paths
from oseq.search.fusion import Fusion, as_unit

_ENOUGH_WORDS = 20  # different ones, to tell what the language model is not made of
_log = logging.getLogger(__name__)


class CTCBeamSearch(CTCSearch):
    """Keeps the likeliest prefixes, each with the sum over its paths.

    The score of a hypothesis is its log-probability, a sum over the paths that the
    beam has not lost; with a language model, ``alpha`` times the text's natural
    log-probability by that model and ``beta`` for each of its words are added. Of
    hypotheses that spell the same words the best one counts.

    It runs in Python, one utterance after the other, in graphs through
    ``tf.numpy_function``: so it is no part of exports.
    """

    is_exportable = False

    def __init__(self, params: Mapping[str, Any], spec: DataSpec):
        super().__init__(params, spec)
        if self.params["num_best"] > self.params["beam_width"]:
            raise ConfigError(
                f"num_best: {self.params['num_best']} hypotheses are more than "
                f"beam_width {self.params['beam_width']}"
            )
        self._fusion = _make_fusion(self.params, spec)
        self._is_symbol = classes_of_paths(spec)
        self._is_symbol[spec.pad_id] = False
        self._unknown: set[str] = set()  # as long as no other words were decoded
        self._knows_words = False

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            "beam_width": Param(int, "prefixes kept", 64, minimum=1),
            "num_best": Param(int, "hypotheses returned, best first", 1, minimum=1),
            "language_model": Param(str, "ARPA file or binary of KenLM"),
            "language_model_unit": Param(
                ["word", "symbol"],
                "what the language model is of: words between spaces, or the symbols "
                "of the vocabulary, with \u2581 for space",
                "word",
            ),
            "alpha": Param(float, "weight of the language model", 0.5, minimum=0),
            "beta": Param(
                float, "added for each unit that the language model scores", 1.0
            ),
            "min_symbol_log_probability": Param(
                float, "less likely symbols are left out of a frame", -10.0, maximum=0
            ),
            "max_symbols": Param(
                int, "most symbols of a frame, the likeliest", 40, minimum=1
            ),
        }

    def search_frames(self, logits: tf.Tensor, length: tf.Tensor) -> Predictions:
        ids, lengths, scores = tf.numpy_function(
            self._search_batch,
            [tf.nn.log_softmax(logits), length],
            [tf.int32, tf.int32, tf.float32],
        )
        num_best = self.params["num_best"]
        return {
            "ids": tf.ensure_shape(ids, [logits.shape[0], num_best, None]),
            "length": tf.ensure_shape(lengths, [logits.shape[0], num_best]),
            "score": tf.ensure_shape(scores, [logits.shape[0], num_best]),
        }

    def _search_batch(
        self, log_probabilities: np.ndarray, length: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the arrays of ``Predictions``; -inf where there is no hypothesis."""
        found = [
            self._search_utterance(frames[:size])
            for frames, size in zip(log_probabilities, length, strict=True)
        ]
        shape = (len(found), self.params["num_best"])
        lengths = np.zeros(shape, np.int32)
        scores = np.full(shape, -np.inf, np.float32)
        longest = max((len(ids) for row in found for ids, _ in row), default=0)
        all_ids = np.full((*shape, longest), self.spec.pad_id, np.int32)
        for row, hypotheses in enumerate(found):
            for rank, (ids, score) in enumerate(hypotheses):
                all_ids[row, rank, : len(ids)] = ids
                lengths[row, rank] = len(ids)
                scores[row, rank] = score
        return all_ids, lengths, scores

    def _search_utterance(self, frames: np.ndarray) -> list[Hypothesis]:
        """Returns the best hypotheses of [S', V] float32 log-probabilities."""
        frames = frames.astype(np.float64)
        symbols = symbols_of_frames(
            frames,
            self._is_symbol,
            self.params["min_symbol_log_probability"],
            self.params["max_symbols"],
        )
        beam = PrefixBeam(
            len(frames),
            self.spec.target_vocab_size,
            self.params["beam_width"],
            self.spec.pad_id,
            self._fusion,
        )
        for frame, of_frame in zip(frames, symbols, strict=True):
            beam.advance(frame, of_frame)
        best = list(
            itertools.islice(self._distinct(beam.best()), self.params["num_best"])
        )
        self._check_language_model(self._words(best[0].ids))
        return best

    def _distinct(self, hypotheses: Iterable[Hypothesis]) -> Iterator[Hypothesis]:
        """Yields the first of those that spell the same words."""
        seen = set()
        for hypothesis in hypotheses:
            words = self._words(hypothesis.ids)
            if words not in seen:
                seen.add(words)
                yield hypothesis

    def _words(self, ids: Sequence[int]) -> tuple[Any, ...]:
        """Returns the words of a text, or its ids where nobody knows their text."""
        if not self.spec.symbols:
            return tuple(ids)
        return tuple("".join(self.spec.symbols[i] for i in ids).split())

    def _check_language_model(self, words: Sequence[str]) -> None:
        """Warns once where the language model knows none of the first words."""
        is_of_words = self.params["language_model_unit"] == "word"
        if self._fusion is None or not is_of_words or self._knows_words:
            return
        if any(map(self._fusion.knows, words)):
            self._knows_words = True
            return
        self._unknown.update(words)
        if len(self._unknown) >= _ENOUGH_WORDS:
            self._knows_words = True  # no more of it
            _log.warning(
                "language_model: %s knows none of the first %d words that were "
                "decoded, such as %r; it must be of the transcripts' alphabet and case",
                self.params["language_model"],
                len(self._unknown),
                min(self._unknown),
            )


def _make_fusion(params: Mapping[str, Any], spec: DataSpec) -> Fusion | None:
    if params["language_model"] is None:
        return None
    if len(spec.symbols) != spec.target_vocab_size:
        raise ConfigError(
            "language_model: the data layer does not tell the text of its ids"
        )
    model = load_language_model(params["language_model"])
    unit = params["language_model_unit"]
    if unit == "symbol" and not any(as_unit(text) in model for text in spec.symbols):
        raise ConfigError(
            f"language_model: {params['language_model']} knows none of the symbols of "
            "the vocabulary; a model of words is for language_model_unit: word"
        )
    return Fusion(model, spec.symbols, unit, params["alpha"], params["beta"])

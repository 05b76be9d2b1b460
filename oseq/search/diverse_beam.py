"""Diverse beam search: groups of beams that keep away from each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from oseq.config.params import ConfigError, Param
from oseq.contracts import DataSpec, Predictions
from oseq.search.beam import Beams, BeamSearch, Finished, Live
from oseq.search.continuations import Continuations, continue_with
from oseq.search.ranking import best_first
from oseq.search.restrictions import IMPOSSIBLE
from oseq.search.sentences import Sentences
from oseq.search.top_k import Best, top_k_of_beams


class Groups(NamedTuple):
    """The hypotheses of G groups of W beams: ``B * G * W`` are the N of a step."""

    beams: Beams  # leaves [B, G, W, ...] for [B, K, ...]
    penalties: tf.Tensor  # [B, G, W] float32, of each hypothesis, for its diversity
    overlap: tf.Tensor  # [B, G, G] float32, likeness of the groups so far

    @property
    def tokens(self) -> tf.Tensor:
        return self.beams.tokens


class DiverseBeamSearch(BeamSearch):
    """Beam searches side by side, of which each avoids the tokens of those before it.

    Vijayakumar et al. 2016: ``beam_size`` beams are ``num_groups`` groups. In every
    step the groups choose one after the other. For group g a token costs
    ``diversity_strength`` times the sum of ``1 + overlap[g, h]`` over the beams of
    each earlier group h that took it in this step; EOS is a token, too. After each
    step ``overlap[g, h] = diversity_discount * (overlap[g, h] + n)``, where n beams of
    h took the same token as those of g at the same rank. With a discount of 0 this is
    the paper's Hamming diversity; with 1, the cumulative diversity of fairseq, groups
    that were alike in the past keep away from each other more.

    The penalties stay with a hypothesis and count when its group chooses. They are no
    part of its score: the outcome is ranked by the score of ``BeamSearch``.

    Each group keeps its own best complete hypotheses, as many as it has beams if
    ``num_best`` asks for them, and the outcome is the best ``num_best`` of all groups:
    ``num_best`` should be ``beam_size`` to see them all. Two groups may find the same
    one. A group that has found its own goes on while another has not, since what it
    chooses changes what those after it choose. ``patience`` counts in each group.
    """

    def __init__(self, params: Mapping[str, Any], spec: DataSpec):
        super().__init__(params, spec)
        self._num_groups = self.params["num_groups"]
        self._beam_size, rest = divmod(self.params["beam_size"], self._num_groups)
        if rest:
            raise ConfigError(
                f"num_groups: {self._num_groups} groups cannot have equally many of "
                f"the {self.params['beam_size']} beams of beam_size"
            )
        self._num_best = min(self._num_best, self._beam_size)

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return {"num_groups": Param(int, "groups; divides beam_size", minimum=1)}

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            "diversity_strength": Param(
                float, "what the token of another group costs", 0.5, minimum=0
            ),
            "diversity_discount": Param(
                float,
                "how much of the past counts; 0: Hamming, 1: cumulative",
                0.0,
                minimum=0,
            ),
            **BeamSearch.get_optional_params(),
        }

    def start(self, sentences: Sentences, size: tf.Tensor) -> Any:
        """Returns ``Groups``, which the other methods take and return."""
        beams = tf.nest.map_structure(
            lambda leaf: tf.repeat(leaf[:, tf.newaxis], self._num_groups, axis=1),
            super().start(sentences, size),
        )
        batch_size = tf.size(sentences.id)
        return Groups(
            beams,
            tf.zeros([batch_size, self._num_groups, self._beam_size]),
            tf.zeros([batch_size, self._num_groups, self._num_groups]),
        )

    def advance(
        self,
        logits: tf.Tensor,
        hypotheses: Any,
        sentences: Sentences,
        index: tf.Tensor,
        alignment: tf.Tensor | None,
    ) -> tuple[Any, tf.Tensor]:
        # To most of a beam search, groups are sentences.
        beams, groups = self._as_rows(hypotheses.beams), self._of_groups(sentences)
        continuations = continue_with(logits, beams.live.scores, self.spec)
        restricted = self._restrict(continuations, beams.live.ids, groups, index)
        best, costs, overlap = self._choose(restricted, hypotheses)
        beams, past = self._proceed(
            beams, best, continuations.eos, groups, index, alignment
        )
        beams, past = self._of_sentences((beams, past))
        penalties = tf.gather(hypotheses.penalties, past, batch_dims=2)
        penalties += tf.gather(costs, beams.tokens, batch_dims=2)
        past += tf.range(self._num_groups)[:, tf.newaxis] * self._beam_size
        past = tf.reshape(past, [-1, self.num_beams])
        return Groups(beams, penalties, overlap), past

    def is_alive(self, hypotheses: Any) -> tf.Tensor:
        return tf.reduce_any(hypotheses.beams.live.scores > IMPOSSIBLE, axis=[1, 2])

    def outcome(self, hypotheses: Any) -> Predictions:
        # Only here are the complete hypotheses of one group mixed with those of others.
        of_groups = self._of_sentences(super().outcome(self._as_rows(hypotheses.beams)))
        of_all = tf.nest.map_structure(
            lambda leaf: tf.concat(tf.unstack(leaf, axis=1), axis=1), of_groups
        )
        return best_first(of_all, self.params["num_best"])

    def _is_done(
        self, live: Live, finished: Finished, index: tf.Tensor, longest: tf.Tensor
    ) -> tf.Tensor:
        is_done = super()._is_done(live, finished, index, longest)  # [B * G]
        all_are = tf.reduce_all(self._of_sentences(is_done), axis=1)  # [B]
        return tf.repeat(all_are, self._num_groups)

    def _choose(
        self, continuations: Continuations, hypotheses: Groups
    ) -> tuple[Best, tf.Tensor, tf.Tensor]:
        """Lets one group after the other look at its continuations.

        Returns:
          the best 2W of each group [B * G, 2W] in its order of preference, with
          log-probabilities; [B, G, V] float32: what a token costs a group; the new
          overlap.
        """
        shape = [-1, self._num_groups, self._beam_size]
        vocab_size = continuations.logits.shape[1]
        logits = tf.reshape(continuations.logits, [*shape, vocab_size])
        offsets = tf.reshape(continuations.offsets, shape)
        chosen: list[Best] = []
        taken: list[tf.Tensor] = []  # what each group takes, [B, W]; -1 for nothing
        costs = []
        for group in range(self._num_groups):
            cost = self._costs(taken, hypotheses.overlap[:, group], vocab_size)
            best = top_k_of_beams(
                tf.reshape(logits[:, group] - cost[:, tf.newaxis], [-1, vocab_size]),
                offsets[:, group] - hypotheses.penalties[:, group],
                2 * self._beam_size,
            )
            scores = tf.gather_nd(
                logits[:, group], tf.stack([best.beams, best.ids], axis=2), batch_dims=1
            )
            scores += tf.gather(offsets[:, group], best.beams, batch_dims=1)
            is_taken = scores[:, : self._beam_size] > IMPOSSIBLE
            chosen.append(best._replace(scores=scores))
            taken.append(tf.where(is_taken, best.ids[:, : self._beam_size], -1))
            costs.append(cost)
        parts = (tf.stack(part, axis=1) for part in zip(*chosen, strict=True))
        overlap = self._overlap(hypotheses.overlap, tf.stack(taken, axis=1))
        return Best(*self._as_rows(tuple(parts))), tf.stack(costs, axis=1), overlap

    def _costs(
        self, taken: list[tf.Tensor], overlap: tf.Tensor, vocab_size: int
    ) -> tf.Tensor:
        """Returns what each token costs a group: [B, V] float32.

        Args:
          taken: of each earlier group, [B, W] int32; -1 for nothing.
          overlap: [B, G] float32, of the group with all groups.
        """
        cost = tf.zeros([tf.shape(overlap)[0], vocab_size])
        for group, tokens in enumerate(taken):
            count = tf.reduce_sum(tf.one_hot(tokens, vocab_size), axis=1)
            cost += (1.0 + overlap[:, group : group + 1]) * count
        return self.params["diversity_strength"] * cost

    def _overlap(self, overlap: tf.Tensor, taken: tf.Tensor) -> tf.Tensor:
        """Returns [B, G, G] float32 after a step in which [B, G, W] were taken."""
        mine, theirs = taken[:, :, tf.newaxis], taken[:, tf.newaxis]
        is_same = (mine == theirs) & (mine >= 0)  # [B, G, G, W]
        count = tf.math.count_nonzero(is_same, axis=3, dtype=tf.float32)
        return self.params["diversity_discount"] * (overlap + count)

    def _of_groups(self, sentences: Sentences) -> Sentences:
        """Returns each sentence G times."""
        return tf.nest.map_structure(
            lambda leaf: tf.repeat(leaf, self._num_groups, axis=0), sentences
        )

    def _as_rows(self, structure: Any) -> Any:
        """Reshapes leaves [B, G, ...] to [B * G, ...]."""
        return tf.nest.map_structure(
            lambda leaf: tf.reshape(leaf, tf.concat([[-1], tf.shape(leaf)[2:]], 0)),
            structure,
        )

    def _of_sentences(self, structure: Any) -> Any:
        """Reshapes leaves [B * G, ...] to [B, G, ...]."""
        return tf.nest.map_structure(
            lambda leaf: tf.reshape(
                leaf, tf.concat([[-1, self._num_groups], tf.shape(leaf)[1:]], 0)
            ),
            structure,
        )

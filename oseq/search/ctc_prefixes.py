"""Prefix beam search over the frames of one utterance, in NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from oseq.search.fusion import Context, Fusion

_NO_NODE, _EMPTY = 0, 1


class Hypothesis(NamedTuple):
    """One outcome of a search."""

    ids: list[int]
    score: float


class _Tree:
    """The prefixes that a search has seen: node 0 is none, node 1 the empty one.

    A prefix that the beam lost and finds again is the same node, for what it is the
    beginning of may still be there.
    """

    def __init__(
        self, most_nodes: int, num_classes: int, blank: int, fusion: Fusion | None
    ):
        self.parents = np.full(most_nodes + 2, _NO_NODE)
        # The empty prefix ends in the blank, which is never what comes next.
        self.symbols = np.full(most_nodes + 2, blank)
        self.contexts: list[Context] = [fusion.start()] * 2 if fusion else []
        self._fusion = fusion
        self._num_classes = num_classes
        self._children: dict[int, int] = {}

    def children(self, nodes: np.ndarray, symbols: np.ndarray) -> np.ndarray:
        """Returns the nodes of prefixes with one more symbol."""
        keys = (nodes * self._num_classes + symbols).tolist()
        children = np.array(
            [self._children.get(key) or self._add(key) for key in keys], np.int64
        )
        self.parents[children], self.symbols[children] = nodes, symbols
        return children

    def ids(self, node: int) -> list[int]:
        """Returns the symbols of a prefix."""
        ids = []
        while node != _EMPTY:
            ids.append(int(self.symbols[node]))
            node = int(self.parents[node])
        return ids[::-1]

    def _add(self, key: int) -> int:
        child = len(self._children) + 2
        self._children[key] = child
        if self._fusion:
            parent, symbol = divmod(key, self._num_classes)
            context = self._fusion.follow(self.contexts[parent], symbol)
            self.contexts.append(context)
        return child


class PrefixBeam:
    """The likeliest prefixes so far (Hannun et al. 2014, algorithm 1).

    Each has the probabilities of its paths that end in the blank and of those that
    end in its last symbol, as only the latter merge with another such symbol. With a
    frame a prefix stays what it is, or gets one more symbol; where that makes a prefix
    of the beam, their paths are added up.

    Args:
      num_frames: that there will be.
      num_classes: V.
      beam_width: the most prefixes.
      blank: the class that stands for nothing.
      fusion: of a language model, whose opinion counts for the choice; None: without.
    """

    def __init__(
        self,
        num_frames: int,
        num_classes: int,
        beam_width: int,
        blank: int,
        fusion: Fusion | None,
    ):
        self._beam_width = beam_width
        self._blank = blank
        self._fusion = fusion
        self._tree = _Tree(num_frames * beam_width, num_classes, blank, fusion)
        self._columns = np.full(num_classes, -1)  # of the frame's symbols
        self._places = np.full(len(self._tree.parents), -1)  # of nodes in the beam
        # Of K prefixes: natural logarithms, float64.
        self._nodes = np.array([_EMPTY])
        self._parents = np.array([-1])  # places in the beam, -1 where it is not there
        self._ends_in_blank = np.zeros(1)
        self._ends_in_symbol = np.full(1, -np.inf)
        self._bonus = np.zeros(1)  # what the language model has added

    def advance(self, frame: np.ndarray, symbols: np.ndarray) -> None:
        """Takes in one frame.

        Args:
          frame: [V] float64 log-probabilities.
          symbols: int, those that may be added, without the blank.
        """
        last = self._tree.symbols[self._nodes]
        total = np.logaddexp(self._ends_in_blank, self._ends_in_symbol)
        stays_in_blank = total + frame[self._blank]
        stays_in_symbol = self._ends_in_symbol + frame[last]
        if not symbols.size:
            self._ends_in_blank, self._ends_in_symbol = stays_in_blank, stays_in_symbol
            return

        grown = total[:, np.newaxis] + frame[symbols]  # [K, M]
        self._columns[symbols] = np.arange(symbols.size)
        columns = self._columns[last]
        self._columns[symbols] = -1
        (same,) = np.nonzero(columns >= 0)
        grown[same, columns[same]] = self._ends_in_blank[same] + frame[last[same]]
        (known,) = np.nonzero((columns >= 0) & (self._parents >= 0))
        parents, columns = self._parents[known], columns[known]
        stays_in_symbol[known] = np.logaddexp(
            stays_in_symbol[known], grown[parents, columns]
        )
        grown[parents, columns] = -np.inf
        self._choose(stays_in_blank, stays_in_symbol, grown, symbols)

    def best(self) -> Iterator[Hypothesis]:
        """Yields the hypotheses, best first, now that the text is at its end."""
        scores = np.logaddexp(self._ends_in_blank, self._ends_in_symbol) + self._bonus
        if self._fusion:
            contexts = self._tree.contexts
            scores += [self._fusion.final_gain(contexts[node]) for node in self._nodes]
        for place in np.argsort(-scores, kind="stable"):
            ids = self._tree.ids(int(self._nodes[place]))
            yield Hypothesis(ids, float(scores[place]))

    def _choose(
        self,
        stays_in_blank: np.ndarray,
        stays_in_symbol: np.ndarray,
        grown: np.ndarray,
        symbols: np.ndarray,
    ) -> None:
        """Makes the best of all prefixes the new beam.

        Args:
          stays_in_blank, stays_in_symbol: [K], of those that stay what they are.
          grown: [K, M], of those with one more symbol, which they end in.
          symbols: [M].
        """
        stay = np.logaddexp(stays_in_blank, stays_in_symbol) + self._bonus
        # Where as many stay as the beam holds, none is chosen that is worse than all.
        least = stay.min() if len(stay) == self._beam_width else -np.inf
        most = grown + self._bonus[:, np.newaxis]
        if self._fusion:
            most += self._fusion.most_gain
        parents, columns = np.nonzero(most > least)
        grown, symbols = grown[parents, columns], symbols[columns]
        bonus = self._bonus[parents] + self._gains(parents, symbols)
        chosen = _greatest(np.concatenate([stay, grown + bonus]), self._beam_width)
        stay = chosen[chosen < len(stay)]
        grow = chosen[len(stay) :] - len(self._nodes)

        children = self._tree.children(self._nodes[parents[grow]], symbols[grow])
        self._places[self._nodes] = -1
        self._nodes = np.concatenate([self._nodes[stay], children])
        self._places[self._nodes] = np.arange(len(self._nodes))
        self._parents = self._places[self._tree.parents[self._nodes]]
        nothing = np.full(len(grow), -np.inf)
        self._ends_in_blank = np.concatenate([stays_in_blank[stay], nothing])
        self._ends_in_symbol = np.concatenate([stays_in_symbol[stay], grown[grow]])
        self._bonus = np.concatenate([self._bonus[stay], bonus[grow]])

    def _gains(self, parents: np.ndarray, symbols: np.ndarray) -> np.ndarray:
        """Returns [N]: what the language model adds to prefixes that grow."""
        gains = np.zeros(len(parents))
        if self._fusion:
            contexts = self._tree.contexts
            groups = self._fusion.groups[symbols]
            (places,) = np.nonzero(groups >= 0)
            gains[places] = [
                self._fusion.gain(contexts[node], group)
                for node, group in zip(
                    self._nodes[parents[places]].tolist(),
                    groups[places].tolist(),
                    strict=True,
                )
            ]
        return gains


def symbols_of_frames(
    log_probabilities: np.ndarray,
    is_symbol: np.ndarray,
    least: float,
    most: int,
) -> Sequence[np.ndarray]:
    """Returns for each frame the symbols that are worth a look.

    Args:
      log_probabilities: [S', V].
      is_symbol: [V] bool, without the blank.
      least: log-probability.
      most: the likeliest so many.
    """
    is_likely = (log_probabilities >= least) & is_symbol
    symbols = []
    for frame, likely in zip(log_probabilities, is_likely, strict=True):
        (found,) = np.nonzero(likely)
        symbols.append(found[_greatest(frame[found], most)])
    return symbols


def _greatest(scores: np.ndarray, most: int) -> np.ndarray:
    """Returns the places of the greatest, in order of place, without those of -inf."""
    if len(scores) > most:
        places = np.sort(np.argpartition(scores, -most)[-most:])
    else:
        places = np.arange(len(scores))
    return places[scores[places] > -np.inf]

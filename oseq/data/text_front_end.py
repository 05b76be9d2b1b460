"""How raw text becomes ids: tokenizers, and what a model must know of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from oseq.contracts import DataSpec
from oseq.data.graph_front_end import GraphFrontEnd
from oseq.data.text_files import is_blank
from oseq.data.tokenizer import Tokenizer
from oseq.data.word_alignment import AlignedText, aligned_word


class TextFrontEnd:
    """The tokenizers of both sides.

    Args:
      source, target: tokenizers of the two sides.
      files: by key of the data layer, the files that hold the vocabularies.
      use_start_token: begin sources with BOS, too; targets always begin with it.
      pad_vocab_to_eight: round vocabulary sizes up to multiples of 8.

    Attributes:
      source, target: tokenizers; the same object when both sides share one.
      files: as given.
      source_bos_id: what begins every source; None: nothing does.
      spec: vocabulary sizes and special ids.
      fingerprint: hash of all that decides about the ids of a line.
    """

    def __init__(
        self,
        source: Tokenizer,
        target: Tokenizer,
        files: Mapping[str, str],
        *,
        use_start_token: bool = False,
        pad_vocab_to_eight: bool = False,
    ):
        self.source = source
        self.target = source if source.fingerprint == target.fingerprint else target
        self.files = files
        self.spec = _make_spec(source, self.target, 8 if pad_vocab_to_eight else 1)
        self.source_bos_id = self.spec.bos_id if use_start_token else None
        content = (source.fingerprint, target.fingerprint, self.spec, use_start_token)
        self.fingerprint = hashlib.sha256(repr(content).encode()).hexdigest()

    def in_graph(self, folder: Path, max_length: int | None) -> GraphFrontEnd:
        """Returns what a saved graph does with text, as infer does.

        Args:
          folder: for files that are saved with the graph; they have to stay until then.
          max_length: of a source; what is longer is cut.
        """
        is_joint = self.source is self.target
        source = self.source.in_graph(folder / ("joint" if is_joint else "source"))
        target = source if is_joint else self.target.in_graph(folder / "target")
        return GraphFrontEnd(
            source,
            target,
            eos_id=self.spec.eos_id,
            bos_id=self.source_bos_id,
            max_length=max_length,
        )

    def align(
        self,
        line: str,
        ids: Sequence[int],
        attention: np.ndarray,
        max_length: int | None,
        replace_unknown: bool,
    ) -> AlignedText:
        """Returns a source line and its translation, token by token.

        Args:
          line: of the source.
          ids: of the target, without EOS.
          attention: [at least T, at least S] float32, to what the model read.
          max_length: of a source; what is longer was cut.
          replace_unknown: whether each UNK becomes the source word aligned to it.
        """
        line = self.source.clean(line)
        source = [] if is_blank(line) else self.source.split_line(line)
        begin = 0 if self.source_bos_id is None else 1
        if max_length is not None:
            source = source[: max_length - begin - 1]
        attention = attention[: len(ids), begin : begin + len(source)]
        unknown = None
        if replace_unknown and not is_blank("".join(source)):
            words = line.split()
            unknown = [
                aligned_word(weights, source, words)
                for token, weights in zip(ids, attention, strict=True)
                if token == self.spec.unk_id
            ]
        text, target = self.target.spell(ids, unknown)
        return AlignedText(source, target, attention, text)


def _make_spec(source: Tokenizer, target: Tokenizer, multiple: int) -> DataSpec:
    source_size, target_size = (
        -(-tokenizer.vocab_size // multiple) * multiple
        for tokenizer in (source, target)
    )
    return DataSpec(
        source_vocab_size=source_size,
        target_vocab_size=target_size,
        pad_id=target.pad_id,
        eos_id=target.eos_id,
        bos_id=target.bos_id,
        unk_id=target.unk_id,
        joint_vocabulary=source is target,
    )

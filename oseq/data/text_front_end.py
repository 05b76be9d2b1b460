"""How raw text becomes ids: tokenizers, and what a model must know of them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oseq.config.params import ConfigError, Param
from oseq.contracts import DataSpec
from oseq.data.delimited_tokenizer import DelimitedTokenizer
from oseq.data.graph_front_end import GraphFrontEnd
from oseq.data.sentencepiece_tokenizer import (
    SentencePieceTokenizer,
    train_sentencepiece,
    write_whole,
)
from oseq.data.text_files import DataError, is_blank
from oseq.data.tokenizer import Tokenizer
from oseq.data.word_alignment import AlignedText, aligned_word
from oseq.distributed.chief_first import on_chief
from oseq.distributed.worker import Worker

FRONT_END_PARAMS = {
    "src_vocab_file": Param(str, "source vocabulary: one token per line"),
    "tgt_vocab_file": Param(str, "target vocabulary; default: src_vocab_file"),
    "delimiter": Param(
        str, "between tokens, for vocabulary files; '' splits characters", " "
    ),
    "special_tokens_already_in_vocab": Param(
        bool, "vocabulary files begin with PAD, EOS, S and UNK", True
    ),
    "sentencepiece_model": Param(
        str, "subword model of both sides, instead of vocabulary files"
    ),
    "sentencepiece_vocab_size": Param(
        int, "tokens of a model that is trained on first use", minimum=5
    ),
    "sentencepiece_type": Param(
        ["bpe", "unigram"], "kind of a model that is trained on first use", "bpe"
    ),
    "sentencepiece_byte_fallback": Param(
        bool, "a model trained here spells unseen characters as bytes, not UNK", True
    ),
    "sentencepiece_split_digits": Param(
        bool, "a model trained here makes every digit a token, easy to copy", False
    ),
    "pad_vocab_to_eight": Param(
        bool, "round vocabulary sizes up to multiples of 8", False
    ),
    "use_start_token": Param(
        bool, "begin sources with S, too; targets always begin with it", False
    ),
}


class TextFrontEnd:
    """The tokenizers of both sides.

    Args:
      params: complete; of them ``FRONT_END_PARAMS`` are read.
      worker: this process among its equals.
      training_files: of both sides, in training only: there a SentencePiece model
        that does not exist yet is trained.

    Attributes:
      source, target: tokenizers; the same object when both sides share one.
      spec: vocabulary sizes and special ids.
      files: by key, the files that hold the vocabularies.
      fingerprint: hash of all that decides about the ids of a line.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        worker: Worker,
        training_files: Sequence[str] | None = None,
    ):
        self._params = params
        self._check_kind()
        self.source: Tokenizer
        self.target: Tokenizer
        if params["sentencepiece_model"] is not None:
            self.files = {"sentencepiece_model": params["sentencepiece_model"]}
            if training_files is not None:
                self._train_on_first_use(worker, training_files)
            self.source = self.target = self._load_sentencepiece()
        else:
            source, target = params["src_vocab_file"], params["tgt_vocab_file"]
            self.files = {"src_vocab_file": source, "tgt_vocab_file": target or source}
            self.source, self.target = self._load_vocabularies()
        self.spec = self._make_spec()
        content = (
            self.source.fingerprint,
            self.target.fingerprint,
            self.spec,
            params["use_start_token"],
        )
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
        bos_id = self.spec.bos_id if self._params["use_start_token"] else None
        return GraphFrontEnd(
            source,
            target,
            eos_id=self.spec.eos_id,
            bos_id=bos_id,
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
        source = [] if is_blank(line) else self.source.split_line(line)
        begin = 1 if self._params["use_start_token"] else 0
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

    def _check_kind(self) -> None:
        """Refuses keys of one kind of tokenizer beside the other kind."""
        params = self._params
        if params["sentencepiece_model"] is not None:
            useless = ["src_vocab_file", "tgt_vocab_file", "delimiter"]
            useless.append("special_tokens_already_in_vocab")
            needed = "vocabulary files, but sentencepiece_model is given"
        elif params["src_vocab_file"] is not None:
            useless = ["sentencepiece_vocab_size"]
            needed = "sentencepiece_model, which is not given"
        else:
            raise ConfigError("give sentencepiece_model or src_vocab_file")
        problems = [
            f"{key}: needs {needed}"
            for key in useless
            if params[key] != FRONT_END_PARAMS[key].default
        ]
        if problems:
            raise ConfigError(problems)

    def _load_vocabularies(self) -> tuple[Tokenizer, Tokenizer]:
        source, target = (
            DelimitedTokenizer(
                file,
                self._params["delimiter"],
                self._params["special_tokens_already_in_vocab"],
            )
            for file in self.files.values()
        )
        return source, source if source.fingerprint == target.fingerprint else target

    def _load_sentencepiece(self) -> SentencePieceTokenizer:
        model = self._params["sentencepiece_model"]
        tokenizer = SentencePieceTokenizer(model)
        wanted = self._params["sentencepiece_vocab_size"]
        if wanted is not None and wanted != tokenizer.vocab_size:
            raise DataError(
                f"{model}: has {tokenizer.vocab_size:,} tokens, but "
                f"sentencepiece_vocab_size is {wanted:,}; remove the file to train "
                "it anew, or correct the size"
            )
        return tokenizer

    def _train_on_first_use(self, worker: Worker, files: Sequence[str]) -> None:
        """Trains a missing model on the chief and gives it to all hosts."""
        model = self._params["sentencepiece_model"]
        size = self._params["sentencepiece_vocab_size"]

        def read_or_train() -> bytes:
            if not os.path.exists(model):
                if size is None:
                    raise DataError(
                        f"{model}: no such file; to have it trained, give "
                        "sentencepiece_vocab_size"
                    )
                train_sentencepiece(
                    files,
                    model,
                    vocab_size=size,
                    model_type=self._params["sentencepiece_type"],
                    byte_fallback=self._params["sentencepiece_byte_fallback"],
                    split_digits=self._params["sentencepiece_split_digits"],
                )
            with open(model, "rb") as file:
                return file.read()

        content = on_chief(worker, read_or_train)
        if not os.path.exists(model):
            write_whole(model, content)

    def _make_spec(self) -> DataSpec:
        multiple = 8 if self._params["pad_vocab_to_eight"] else 1
        source_size, target_size = (
            -(-tokenizer.vocab_size // multiple) * multiple
            for tokenizer in (self.source, self.target)
        )
        return DataSpec(
            source_vocab_size=source_size,
            target_vocab_size=target_size,
            pad_id=self.target.pad_id,
            eos_id=self.target.eos_id,
            bos_id=self.target.bos_id,
            unk_id=self.target.unk_id,
            joint_vocabulary=self.source is self.target,
        )

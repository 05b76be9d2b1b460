"""The choice of tokenizers for raw text: vocabulary files, or SentencePiece."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from oseq.config.params import ConfigError, Param
from oseq.data.delimited_tokenizer import DelimitedTokenizer
from oseq.data.sentencepiece_tokenizer import (
    SentencePieceTokenizer,
    train_sentencepiece,
    write_whole,
)
from oseq.data.text_files import DataError
from oseq.data.text_front_end import TextFrontEnd
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


def make_front_end(
    params: Mapping[str, Any],
    worker: Worker,
    training_files: Sequence[str] | None = None,
) -> TextFrontEnd:
    """Returns the front end that the user asks for.

    Args:
      params: complete; of them ``FRONT_END_PARAMS`` are read.
      worker: this process among its equals.
      training_files: of both sides, in training only: there a SentencePiece model
        that does not exist yet is trained.
    """
    _check_kind(params)
    source: DelimitedTokenizer | SentencePieceTokenizer
    target: DelimitedTokenizer | SentencePieceTokenizer
    if params["sentencepiece_model"] is not None:
        files = {"sentencepiece_model": params["sentencepiece_model"]}
        if training_files is not None:
            _train_on_first_use(params, worker, training_files)
        source = target = _load_sentencepiece(params)
    else:
        files = vocabulary_files(params)
        source, target = (
            DelimitedTokenizer(
                file, params["delimiter"], params["special_tokens_already_in_vocab"]
            )
            for file in files.values()
        )
    return TextFrontEnd(
        source,
        target,
        files,
        use_start_token=params["use_start_token"],
        pad_vocab_to_eight=params["pad_vocab_to_eight"],
    )


def vocabulary_files(params: Mapping[str, Any]) -> dict[str, str]:
    """Returns the vocabulary files of both sides, by key; one may be both."""
    source, target = params["src_vocab_file"], params["tgt_vocab_file"]
    return {"src_vocab_file": source, "tgt_vocab_file": target or source}


def _check_kind(params: Mapping[str, Any]) -> None:
    """Refuses keys of one kind of tokenizer beside the other kind."""
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


def _load_sentencepiece(params: Mapping[str, Any]) -> SentencePieceTokenizer:
    model = params["sentencepiece_model"]
    tokenizer = SentencePieceTokenizer(model)
    wanted = params["sentencepiece_vocab_size"]
    if wanted is not None and wanted != tokenizer.vocab_size:
        raise DataError(
            f"{model}: has {tokenizer.vocab_size:,} tokens, but "
            f"sentencepiece_vocab_size is {wanted:,}; remove the file to train "
            "it anew, or correct the size"
        )
    return tokenizer


def _train_on_first_use(
    params: Mapping[str, Any], worker: Worker, files: Sequence[str]
) -> None:
    """Trains a missing model on the chief and gives it to all hosts."""
    model = params["sentencepiece_model"]
    size = params["sentencepiece_vocab_size"]

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
                model_type=params["sentencepiece_type"],
                byte_fallback=params["sentencepiece_byte_fallback"],
                split_digits=params["sentencepiece_split_digits"],
            )
        with open(model, "rb") as file:
            return file.read()

    content = on_chief(worker, read_or_train)
    if not os.path.exists(model):
        write_whole(model, content)

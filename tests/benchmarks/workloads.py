"""The models that are measured, as configs and arguments of oseq's command line."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.audio import make_corpus
from tests.benchmarks.report import REPOSITORY, cache_dir, find_an4, find_multi30k
from tests.benchmarks.synthetic import write_corpus

_EXAMPLES = REPOSITORY / "example_configs/text2text/multi30k"
_SPEECH = REPOSITORY / "example_configs/speech2text/an4"
EXAMPLE = _EXAMPLES / "en-de-transformer-tiny.py"
DTYPES = ("float32", "mixed_bfloat16")
SIZES = ("tiny", "base")  # of a Transformer
CONFIGS = {
    "tiny": EXAMPLE,
    "base": EXAMPLE,
    "gnmt-like": _EXAMPLES / "en-de-gnmt-like.py",
    "convs2s": _EXAMPLES / "en-de-convs2s.py",
    "deep-speech2": _SPEECH / "deep_speech2.py",
    "wave2letter-plus": _SPEECH / "wave2letter_plus.py",
    "jasper": _SPEECH / "jasper.py",
    "conformer": _SPEECH / "conformer.py",
}

_BASE_LAYERS = {
    "hidden_size": 512,
    "num_heads": 8,
    "filter_size": 2048,
    "attention_dropout": 0.1,
    "relu_dropout": 0.1,
    "layer_postprocess_dropout": 0.1,
}


def short(dtype: str) -> str:
    """Returns a dtype's name for the reader."""
    return dtype.removeprefix("mixed_")


def arguments_of(model: str, cache: Path | None = None) -> list[str]:
    """Returns the settings of a model beside its config.

    Base is Transformer base, always on synthetic text. The others are their configs
    themselves, on Multi30k or AN4 where that is present.

    Args:
      model: one of ``CONFIGS``.
      cache: place of corpora, subword model and token cache.
    """
    cache = cache or cache_dir()
    if CONFIGS[model].parent == _SPEECH:
        return _speech_data(cache)
    if model != "base":
        return _tiny_data(cache)
    return base_layers() + _synthetic_data(cache, vocab_size=32_000, mean_length=25)


def base_layers() -> list[str]:
    """Returns the settings that make Transformer base of the example's model."""
    arguments = [
        # The moving average is the example's own; base is the paper's training step.
        "--ema_decay=None",
        "--encoder_params/encoder_layers=6",
        "--decoder_params/num_hidden_layers=6",
    ]
    for key, value in _BASE_LAYERS.items():
        arguments += [f"--{side}_params/{key}={value}" for side in _SIDES]
    return arguments


_SIDES = ("encoder", "decoder")


def _tiny_data(cache: Path) -> list[str]:
    corpus = find_multi30k()
    if corpus is None:
        return _synthetic_data(cache, vocab_size=8_000, mean_length=15)
    return _data(
        cache,
        source_file=corpus / "train.en.gz",
        target_file=corpus / "train.de.gz",
        # Without pieces for single bytes, as the peers' subword models are.
        sentencepiece_model=cache / "multi30k-en-de.8000-plain.model",
        sentencepiece_byte_fallback=False,
    )


def _speech_data(cache: Path) -> list[str]:
    corpus = find_an4()
    if corpus is not None:
        manifest = corpus / "train.tsv"
    else:
        (cache / "speech").mkdir(exist_ok=True)
        manifest = make_corpus(cache / "speech", "flac", 16000, 1)
    return [
        f"--data_layer_params/dataset_files={manifest}",
        f"--data_layer_params/cache_dir={cache / 'audio'}",
    ]


def _synthetic_data(cache: Path, vocab_size: int, mean_length: int) -> list[str]:
    corpus = write_corpus(cache, vocab_size, mean_length)
    return _data(
        cache,
        source_file=corpus / "train.source",
        target_file=corpus / "train.target",
        src_vocab_file=corpus / "vocabulary",
        sentencepiece_model=None,
        sentencepiece_vocab_size=None,
    )


def _data(cache: Path, **values: object) -> list[str]:
    values["cache_dir"] = cache / "tokens"
    return [f"--data_layer_params/{key}={value}" for key, value in values.items()]

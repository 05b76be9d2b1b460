"""n-gram language models: estimated, read, written, asked."""

from oseq.ngram.arpa import read_arpa, write_arpa
from oseq.ngram.backoff_model import BackoffModel
from oseq.ngram.estimate import estimate
from oseq.ngram.kenlm_model import KenLMModel, load_language_model
from oseq.ngram.language_model import LanguageModel

__all__ = [
    "BackoffModel",
    "KenLMModel",
    "LanguageModel",
    "estimate",
    "load_language_model",
    "read_arpa",
    "write_arpa",
]

"""KenLM behind the interface of language models, and the choice between the two."""

from __future__ import annotations

import importlib.util
from typing import Any

from oseq.config.params import UserError
from oseq.ngram.arpa import read_arpa
from oseq.ngram.language_model import LanguageModel

_BINARY_HEADER = b"mmap lm "  # of KenLM's binary files, old and new


class KenLMModel(LanguageModel):
    """A model that the ``kenlm`` package holds: small in memory, and fast.

    Args:
      path: an ARPA file or a binary of KenLM.
    """

    def __init__(self, path: str):
        import kenlm

        config = kenlm.Config()
        config.show_progress = False
        config.arpa_complain = kenlm.ARPALoadComplain.NONE
        try:
            self._model = kenlm.Model(path, config)
        except OSError as error:
            reason = str(error.__cause__ or error).strip()
            raise UserError(f"{path}: KenLM cannot read it: {reason}") from error
        self._make_state = kenlm.State
        self.order = self._model.order
        self.start, self.nothing = kenlm.State(), kenlm.State()
        self._model.BeginSentenceWrite(self.start)
        self._model.NullContextWrite(self.nothing)

    def advance(self, state: Any, word: str) -> tuple[float, Any]:
        after = self._make_state()
        return self._model.BaseScore(state, word, after), after

    def __contains__(self, word: str) -> bool:
        return word in self._model


def load_language_model(path: str) -> LanguageModel:
    """Returns the model of a file, held by KenLM where it is installed.

    Args:
      path: an ARPA file or a binary of KenLM.

    Raises:
      UserError: names the file and what is wrong: it cannot be read, or it is a
        binary, and KenLM is not there.
    """
    try:
        with open(path, "rb") as file:
            is_binary = file.read(len(_BINARY_HEADER)) == _BINARY_HEADER
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    if importlib.util.find_spec("kenlm") is not None:
        try:
            return KenLMModel(path)
        except UserError:
            # Of an ARPA file our reader says what is wrong, and on which line, or
            # takes it: KenLM refuses models of single words.
            if is_binary:
                raise
    elif is_binary:
        raise UserError(
            f"{path}: is a binary of KenLM, which is not installed: "
            "pip install oseq[kenlm], or name the ARPA file it was made from"
        )
    return read_arpa(path)

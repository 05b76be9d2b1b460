"""What oseq and CTranslate2 are both asked: the test set, and the same search."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, NamedTuple

TEST_SET = "test_2016_flickr"
# Most tokens of a translation, on both sides.
LONGEST = 60
_LENGTH_PARAMS = {"max_length": LONGEST, "extra_decode_length": LONGEST}


class Corpus(NamedTuple):
    """The test set: line n of the references answers line n of the sources."""

    sources: list[str]
    references: list[str]

    @classmethod
    def read(cls, folder: Path, num_lines: int | None) -> Corpus:
        """Returns the first lines, or all of them for None."""
        texts = (
            gzip.decompress((folder / f"{TEST_SET}.{language}.gz").read_bytes())
            for language in ("en", "de")
        )
        return cls(
            *(
                text.decode().removesuffix("\n").split("\n")[:num_lines]
                for text in texts
            )
        )


class Search(NamedTuple):
    """One search, as both sides are told of it."""

    name: str
    flags: dict[str, Any]  # of oseq
    options: dict[str, Any]  # of CTranslate2

    def with_params(self, **params: Any) -> dict[str, Any]:
        """Returns the flags with some more ``search_params``."""
        return {
            **self.flags,
            "search_params": {**self.flags["search_params"], **params},
        }


def beam_search(beam_size: int, patience: float) -> Search:
    return Search(
        f"beam {beam_size}",
        {
            "search": "oseq.search.BeamSearch",
            "search_params": beam_params(beam_size, patience),
        },
        ctranslate2_options(beam_size, patience),
    )


def greedy_search() -> Search:
    return Search(
        "greedy",
        {"search": "oseq.search.GreedySearch", "search_params": dict(_LENGTH_PARAMS)},
        ctranslate2_options(1, 1.0),
    )


def beam_params(beam_size: int, patience: float | None) -> dict[str, Any]:
    """Returns ``search_params``: scores over length, which counts the EOS.

    A patience of None is oseq's exact stopping rule.
    """
    return {
        "beam_size": beam_size,
        "alpha": 1.0,
        "length_penalty": "average",
        "patience": patience,
        **_LENGTH_PARAMS,
    }


def ctranslate2_options(beam_size: int, patience: float) -> dict[str, Any]:
    """Returns what means the same to CTranslate2.

    It counts the EOS only where it returns it, and wants one token more than the
    longest translation has: the EOS.
    """
    return {
        "beam_size": beam_size,
        "length_penalty": 1.0,
        "patience": patience,
        "return_end_token": True,
        "min_decoding_length": 0,
        "max_decoding_length": LONGEST + 1,
    }


def load_trained(logdir: Path, *overrides: str) -> Any:
    """Returns the ``build.TrainedModel`` of a run, in infer mode, without lines.

    Args:
      logdir: of the run.
      overrides: settings of the command line.
    """
    from oseq.build import build_trained_model, build_worker
    from oseq.config.loader import load_config
    from oseq.config.options import Options
    from oseq.config.overrides import parse_overrides

    arguments = [
        f"--logdir={logdir}",
        "--data_layer_params/source_file=None",
        *overrides,
    ]
    config = load_config(logdir / "config.yaml", parse_overrides(arguments))
    config.check("infer")
    return build_trained_model(
        config, "infer", Options(), build_worker(config, "infer")
    )

"""TFLite: what its converter does not take is named, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path

from tests.integration import toy

EXPORT = ("--mode=export", "--export_format=tflite", "--export_dir=export")


def test_operations_that_it_does_not_have_are_named(run):
    outcome = toy.oseq(*toy.TINY, "--logdir=run", *EXPORT)
    assert outcome.code == 2
    assert "TFLite does not take this model: operations " in outcome.err
    assert "InplaceUpdate" in outcome.err
    assert not Path("export").exists()


def test_a_search_that_it_fails_on_is_refused(run):
    outcome = toy.oseq(
        *(*toy.TINY, "--logdir=run", *EXPORT),
        "--search_params/no_repeat_ngram_size=2",
    )
    assert outcome.code == 2
    assert "search_params/no_repeat_ngram_size: TFLite fails" in outcome.err
    assert not Path("export").exists()

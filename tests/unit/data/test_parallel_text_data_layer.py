from __future__ import annotations

import functools
import gzip
import io
import logging
import os
import sys

import numpy as np
import pytest

from oseq.config.params import ConfigError
from oseq.contracts import Position
from oseq.data.front_end_params import make_front_end
from oseq.data.parallel_text_data_layer import ParallelTextDataLayer
from oseq.data.text_files import DataError
from oseq.distributed.worker import SingleWorker
from tests.unit.data import data_layer_laws as laws
from tests.unit.data.data_layer_laws import OneOf, as_lists, epoch_of, ids_in

LETTERS = "abcdefghij"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "vocab.txt").write_text(
        "<PAD>\n<EOS>\n<S>\n<UNK>\n" + "\n".join(LETTERS) + "\n"
    )
    generator = np.random.default_rng(0)
    lines = [" ".join(generator.choice(list(LETTERS), n)) for n in range(1, 8)] * 6
    write(tmp_path / "train.src", lines)
    write(tmp_path / "train.tgt", [line[::-1] for line in lines])
    return tmp_path


def write(path, lines):
    path.write_bytes("".join(line + "\n" for line in lines).encode())


def make(folder, mode="train", worker=None, **params):
    values = {
        "source_file": str(folder / "train.src"),
        "target_file": str(folder / "train.tgt"),
        "src_vocab_file": str(folder / "vocab.txt"),
        "batch_tokens": 24,
        "seed": 1,
    }
    return ParallelTextDataLayer(values | params, mode, worker or SingleWorker())


@pytest.fixture
def maker(folder):
    return functools.partial(make, folder)


def pair(folder, sources, targets, mode="train", **params):
    write(folder / "train.src", sources)
    write(folder / "train.tgt", targets)
    return make(folder, mode, **params)


def lengths_in(batches):
    return {
        int(i): (int(s), int(t))
        for batch in batches
        for i, s, t in zip(
            batch["id"],
            batch["source"]["length"],
            batch["target"]["length"],
            strict=True,
        )
    }


def test_a_batch_is_what_the_contract_says(folder):
    layer = pair(folder, ["a b", "c"], ["b", "d e f"])
    (batch,) = layer.dataset().take(1)
    assert batch["id"].dtype == "int64"
    order = np.argsort(batch["id"])
    source, target = batch["source"], batch["target"]
    assert source["ids"].numpy()[order].tolist() == [[4, 5, 1], [6, 1, 0]]
    assert source["length"].numpy()[order].tolist() == [3, 2]
    assert target["ids"].numpy()[order].tolist() == [[5, 1, 0, 0], [7, 8, 9, 1]]
    assert target["length"].numpy()[order].tolist() == [2, 4]
    for side in (source, target):
        assert side["ids"].dtype == side["length"].dtype == "int32"


def test_the_data_set_has_static_ranks_and_equals_the_batches(maker):
    laws.check_the_data_set_equals_the_batches(maker)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_over_all_workers_every_example_comes_exactly_once(maker, size):
    laws.check_every_example_comes_once(maker, size, 42)


@pytest.mark.parametrize("size", [2, 3, 5, 20])
@pytest.mark.parametrize("mode", ["eval", "infer", "score"])
def test_out_of_training_batches_are_those_of_one_worker(maker, mode, size):
    laws.check_batches_are_those_of_one_worker(maker, mode, size)


def test_a_resumed_stream_goes_on_with_the_same_batches(maker):
    laws.check_a_resumed_stream_goes_on(maker)


def test_positions_add_up(folder):
    layer = make(folder)
    per_epoch = layer.batches_per_epoch
    assert layer.advance(Position(2, per_epoch - 1), 1) == Position(3, 0)
    assert layer.advance(Position(0, 1), 2 * per_epoch + 1) == Position(2, 2)


def test_train_is_endless_and_eval_and_infer_are_one_pass(folder):
    layer = make(folder)
    two_epochs = 2 * layer.batches_per_epoch
    assert len(list(layer.dataset().take(two_epochs))) == two_epochs
    for mode in ("eval", "infer"):
        layer = make(folder, mode)
        assert len(list(layer.dataset())) == layer.batches_per_epoch
        assert list(layer.batches(layer.advance(Position(), 10**6))) == []
    layer = make(folder, repeat=False)
    assert len(list(layer.batches())) == layer.batches_per_epoch


@pytest.mark.parametrize("limit", [{"batch_size": n} for n in (1, 4, 5, 41, 42, 99)])
def test_the_last_partial_batch_comes_too(folder, limit):
    layer = make(folder, "eval", batch_tokens=None, **limit)
    assert ids_in(layer.batches()) == list(range(42))


def test_shuffling_changes_from_epoch_to_epoch_and_can_be_switched_off(folder):
    layer = make(folder)
    assert as_lists(epoch_of(layer, 0)) != as_lists(epoch_of(layer, 1))
    layer = make(folder, shuffle=False)
    assert as_lists(epoch_of(layer, 0)) == as_lists(epoch_of(layer, 1))


def test_a_blank_side_drops_the_pair_in_train_and_is_reported(folder, caplog):
    caplog.set_level(logging.INFO, "oseq")
    layer = pair(folder, ["a", "", "b", "\u3000", "c"], ["a", "b", " ", "d", "c"])
    assert ids_in(epoch_of(layer)) == [0, 4]
    assert layer.num_examples == 2
    assert "blank: 3 lines (line 2, 3, 4) dropped" in caplog.text


def test_a_pair_is_counted_once_though_it_is_blank_and_over_long(folder, caplog):
    pair(folder, ["", "a"], ["a b c", "a"], max_length=2)
    assert "blank: 1 lines" in caplog.text
    assert "longer than" not in caplog.text


def test_over_long_pairs_are_dropped_in_train_at_the_exact_length(folder, caplog):
    lines = ["a", "a b", "a b c", "a b c d"]  # 2, 3, 4, 5 tokens with EOS
    layer = pair(folder, lines, lines, max_length=4)
    assert ids_in(epoch_of(layer)) == [0, 1, 2]
    assert "longer than max_length: 1 lines (line 4) dropped" in caplog.text
    layer = pair(folder, lines, lines[::-1], max_length=[4, 3])
    assert ids_in(epoch_of(layer)) == [2]
    layer = pair(folder, lines, lines, max_length=[None, 3])
    assert ids_in(epoch_of(layer)) == [0, 1]
    layer = pair(folder, lines, lines, max_length=4, use_start_token=True)
    assert ids_in(epoch_of(layer)) == [0, 1]


def test_eval_keeps_every_pair_whole(folder):
    layer = pair(folder, ["a b c d", "", "c"], ["a", "b", " "], "eval", max_length=2)
    batches = list(layer.batches())
    assert ids_in(batches) == [0, 1, 2]
    assert lengths_in(batches) == {0: (5, 2), 1: (1, 2), 2: (2, 1)}


def test_infer_answers_blank_lines_without_the_model(folder):
    write(folder / "in.txt", ["a b", "", "\u00a0", "c", " \u3000"])
    layer = make(folder, "infer", source_file=str(folder / "in.txt"))
    (batch,) = layer.batches()
    assert sorted(batch["id"].tolist()) == [0, 3]
    assert "target" not in batch
    assert layer.num_lines == 5
    assert layer.blank_ids.tolist() == [1, 2, 4]


def test_infer_cuts_long_lines_and_warns(folder, caplog):
    write(folder / "in.txt", ["a b c d e", "a b c"])
    layer = make(folder, "infer", source_file=str(folder / "in.txt"), max_length=4)
    (batch,) = layer.batches()
    ids = dict(zip(batch["id"].tolist(), batch["source"]["ids"].tolist(), strict=True))
    assert ids == {0: [4, 5, 6, 1], 1: [4, 5, 6, 1]}
    assert "longer than max_length: 1 lines (line 1) cut" in caplog.text


def test_score_keeps_every_pair_whole_and_keeps_no_cache(folder, caplog):
    sources, targets = ["a b c d", "", "a"], ["b", "c", " "]
    layer = pair(folder, sources, targets, "score", max_length=4)
    assert lengths_in(layer.batches()) == {0: (5, 2), 1: (1, 2), 2: (2, 1)}
    assert layer.num_lines == 3 and len(layer.blank_ids) == 0
    assert "blank: 2 lines (line 2, 3) scored, though a side is empty" in caplog.text
    assert "max_length: 1 lines (line 1) scored whole" in caplog.text
    assert not (folder / ".oseq_cache").exists()


def test_score_reads_one_side_from_standard_input(folder, monkeypatch):
    write(folder / "in.txt", ["a b", "c"])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"b\na c")))
    layer = make(folder, "score", source_file="-", target_file=str(folder / "in.txt"))
    assert layer.text_of("source", 1) == "a c"
    with pytest.raises(DataError, match="both are standard input"):
        make(folder, "score", source_file="-", target_file="-")
    with pytest.raises(DataError, match="0 in -, but 2 in .*in.txt"):  # it is read
        make(folder, "score", source_file="-", target_file=str(folder / "in.txt"))


def test_score_needs_both_files(folder):
    with pytest.raises(ConfigError, match="target_file: missing in score"):
        make(folder, "score", target_file=None)


def test_infer_hands_on_prefixes_and_phrases_of_the_lines_of_a_batch(folder):
    write(folder / "in.txt", ["a b", "", "c"])
    write(folder / "prefix.txt", ["a", "", "b c"])
    write(folder / "phrases.txt", ["d", "", "e f\tg"])
    layer = make(
        folder,
        "infer",
        source_file=str(folder / "in.txt"),
        prefix_file=str(folder / "prefix.txt"),
        phrases_file=str(folder / "phrases.txt"),
    )
    (batch,) = layer.dataset()
    order = np.argsort(batch["id"])
    assert batch["id"].numpy()[order].tolist() == [0, 2]
    prefix, phrases = batch["prefix"], batch["phrases"]
    assert prefix["ids"].numpy()[order].tolist() == [[4, 0], [5, 6]]
    assert prefix["length"].numpy()[order].tolist() == [1, 2]
    ids = [[[7, 0], [0, 0]], [[8, 9], [10, 0]]]
    assert phrases["ids"].numpy()[order].tolist() == ids
    assert phrases["length"].numpy()[order].tolist() == [[1, 0], [2, 1]]
    (typed,) = layer.with_lines(["a"]).dataset()
    assert set(typed) == {"source", "id"}


def test_prefixes_belong_to_the_lines_of_a_file(folder):
    write(folder / "prefix.txt", ["a"])
    prefix = {"prefix_file": str(folder / "prefix.txt")}
    with pytest.raises(DataError, match="1 lines, but the source has 42"):
        make(folder, "infer", **prefix)
    assert list(make(folder, "infer", source_file=None, **prefix).batches()) == []
    assert "prefix" not in next(make(folder, "eval", **prefix).batches())


@pytest.mark.parametrize("start", [False, True])
def test_alignment_leaves_out_eos_and_start_token_and_what_was_cut(folder, start):
    write(folder / "in.txt", ["a  x b c d"])
    layer = make(
        folder,
        "infer",
        source_file=str(folder / "in.txt"),
        use_start_token=start,
        max_length=5 if start else 4,
    )
    (batch,) = layer.batches()
    assert batch["source"]["ids"].tolist() == [[2] * start + [4, 3, 5, 1]]
    attention = np.zeros([4, 7], np.float32)  # padded on both sides
    attention[:3, start : start + 4] = [[0, 1, 0, 0], [2, 0, 0, 8], [0, 0, 3, 7]]
    aligned = layer.align(0, [7, 3, 8], attention)
    assert aligned.source == ["a", "  x", " b"]
    assert aligned.target == ["d", " <UNK>", " e"]
    assert aligned.attention.tolist() == [[0, 1, 0], [2, 0, 0], [0, 0, 3]]
    assert aligned.text == "d <UNK> e"
    assert aligned.word_links() == [(1, 0), (0, 1), (2, 2)]


def test_the_aligned_source_word_takes_the_place_of_unk_if_asked(folder):
    write(folder / "in.txt", ["Ulm is  far"])
    source_file = str(folder / "in.txt")
    layer = make(folder, "infer", source_file=source_file, replace_unknown=True)
    assert layer.replaces_unknown and not make(folder, "infer").replaces_unknown
    attention = np.array([[0, 1, 2], [2, 1, 0], [1, 2, 1]], np.float32)
    aligned = layer.align(0, [3, 4, 3], attention)
    assert aligned.text == "far a is"
    assert aligned.word_links() == [(2, 0), (0, 1), (1, 2)]


def test_a_blank_line_has_nothing_to_align_or_to_take_a_word_from(folder):
    layer = pair(folder, ["  "], ["a"], "eval", replace_unknown=True)
    aligned = layer.align(0, [3], np.ones([1, 1], np.float32))
    assert (aligned.text, aligned.source, aligned.word_links()) == ("<UNK>", [], [])


def test_a_line_that_is_cut_before_its_first_word_has_no_word_to_take(folder):
    write(folder / "in.txt", ["\u3000 a"])
    layer = make(
        folder,
        "infer",
        source_file=str(folder / "in.txt"),
        replace_unknown=True,
        max_length=2,
    )
    aligned = layer.align(0, [3], np.ones([1, 2], np.float32))
    assert (aligned.text, aligned.source) == ("<UNK>", ["\u3000"])


def test_infer_reads_standard_input(folder, monkeypatch):
    content = io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfa\r\n\nb c"))
    monkeypatch.setattr(sys, "stdin", content)
    layer = make(folder, "infer", source_file="-")
    assert layer.num_lines == 3 and ids_in(layer.batches()) == [0, 2]
    assert layer.text_of("source", 2) == "b c"


def test_a_layer_takes_lines_directly(folder):
    layer = make(folder, "infer", source_file=None)
    assert layer.num_lines == layer.num_examples == 0
    assert list(layer.dataset()) == []
    lines = ["c", " ", "a b"]
    typed = layer.with_lines(lines)
    (batch,) = typed.dataset()
    assert batch["id"].numpy().tolist() == [0, 2]
    assert batch["source"]["ids"].numpy().tolist() == [[6, 1, 0], [4, 5, 1]]
    assert [typed.text_of("source", i) for i in range(3)] == lines
    assert layer.num_lines == 0


def test_lines_given_to_a_training_layer_come_once_and_without_target(folder):
    layer = make(folder, repeat=True, shuffle=True)
    (batch,) = layer.with_lines(["a"]).batches()
    assert batch["id"].tolist() == [0] and "target" not in batch


def test_the_text_of_an_example_is_the_line_in_the_file(folder):
    lines = ["a \u2028 b", "  c\rd ", "x <S>"]
    layer = pair(folder, lines, lines[::-1], "eval")
    assert [layer.text_of("source", i) for i in range(3)] == lines
    assert [layer.text_of("target", i) for i in range(3)] == lines[::-1]


def test_ids_become_text_again(folder):
    assert make(folder).restore([4, 5, 13, 1, 0, 0]) == "a b j"


def test_files_of_different_length_are_refused_with_both_counts(folder):
    with pytest.raises(DataError, match="3 in .*train.src, but 2 in .*train.tgt"):
        pair(folder, ["a", "b", "c"], ["a", "b"])


def test_several_and_compressed_files_are_one_text(folder):
    for side in ("src", "tgt"):
        content = (folder / f"train.{side}").read_bytes()
        (folder / f"more.{side}.gz").write_bytes(gzip.compress(content))
    layer = make(
        folder,
        source_file=[str(folder / "train.src"), str(folder / "more.src.*")],
        target_file=[str(folder / "train.tgt"), str(folder / "more.tgt.*")],
    )
    assert layer.num_lines == 84
    assert layer.text_of("source", 0) == layer.text_of("source", 42)


def test_crlf_and_a_missing_final_newline_do_not_matter(folder):
    (folder / "train.src").write_bytes(b"a b\r\nc\r\n")
    (folder / "train.tgt").write_bytes(b"a b\nc")
    layer = make(folder, "eval")
    (batch,) = layer.batches()
    assert np.array_equal(batch["source"]["ids"], batch["target"]["ids"])


def test_data_without_examples_is_refused_with_the_reason(folder):
    with pytest.raises(DataError, match="of 3 lines: 1 blank .* 2 longer"):
        pair(folder, ["a b", "", "a b"], ["a", "b", "c"], max_length=2)


@pytest.mark.parametrize("mode", ["infer", "score"])
def test_standard_input_is_refused_to_several_workers(folder, mode):
    with pytest.raises(DataError, match="by one process, not by 2"):
        make(folder, mode, OneOf(1, 2), source_file="-")


def test_fewer_examples_than_workers_are_refused_in_train(folder):
    with pytest.raises(DataError, match="2 examples are too few for 3 workers"):
        pair(folder, ["a", "b"], ["a", "b"], worker=OneOf(0, 3))


def test_workers_that_see_different_text_are_refused(folder):
    class Odd(OneOf):
        def gather_objects(self, value):
            return [value, value and (value[0], 7)]

    with pytest.raises(DataError, match=r"examples by worker: \[42, 7\]"):
        make(folder, worker=Odd(0, 2))


def test_unknown_symbols_are_reported_with_counts(folder, caplog):
    pair(folder, ["a x y", "x"], ["a", "b"])
    message = "source: 3 unknown symbols, the most frequent: 'x' 2, 'y' 1"
    assert message in caplog.text


def test_infer_reports_unknown_symbols_of_all_its_files(folder, caplog):
    write(folder / "1.txt", ["a x"])
    write(folder / "2.txt", ["x y"])
    make(folder, "infer", source_file=str(folder / "?.txt"))
    assert "3 unknown symbols, the most frequent: 'x' 2, 'y' 1" in caplog.text


def test_only_the_chief_reports(folder, caplog):
    caplog.set_level(logging.INFO, "oseq")
    make(folder, worker=OneOf(1, 2))
    assert "lines read" not in caplog.text
    make(folder, worker=OneOf(0, 2))
    assert "train: 42 lines read, 42 examples" in caplog.text


def test_lengths_and_vocabulary_are_padded_to_multiples_of_eight(folder):
    layer = make(folder, pad_lengths_to_eight=True, pad_vocab_to_eight=True)
    assert layer.spec.source_vocab_size == layer.spec.target_vocab_size == 16
    for batch in epoch_of(layer):
        assert batch["source"]["ids"].shape[1] % 8 == 0
        assert batch["target"]["ids"].shape[1] % 8 == 0
        assert batch["source"]["ids"].size <= 24
    assert make(folder).spec.source_vocab_size == 14


def test_a_start_token_begins_sources_only(folder):
    for batch in epoch_of(make(folder, use_start_token=True)):
        assert (batch["source"]["ids"][:, 0] == 2).all()
        assert not (batch["target"]["ids"] == 2).any()


def test_one_vocabulary_is_joint_and_two_are_not(folder):
    (folder / "other.txt").write_text("<PAD>\n<EOS>\n<S>\n<UNK>\na\nb\n")
    assert make(folder).spec.joint_vocabulary
    layer = make(folder, tgt_vocab_file=str(folder / "other.txt"))
    assert not layer.spec.joint_vocabulary
    assert (layer.spec.source_vocab_size, layer.spec.target_vocab_size) == (14, 6)
    assert layer.fingerprint != make(folder).fingerprint
    assert layer.front_end_files() == {
        "src_vocab_file": str(folder / "vocab.txt"),
        "tgt_vocab_file": str(folder / "other.txt"),
    }


def test_the_fingerprint_follows_what_decides_about_ids(folder):
    (folder / "other.txt").write_text("<PAD>\n<EOS>\n<S>\n<UNK>\nb\na\n")
    changes = [
        {},
        {"use_start_token": True},
        {"pad_vocab_to_eight": True},
        {"delimiter": ""},
        {"src_vocab_file": str(folder / "other.txt")},
    ]
    assert len({make(folder, **change).fingerprint for change in changes}) == 5
    assert make(folder, "eval").fingerprint == make(folder, seed=9).fingerprint


@pytest.fixture
def subwords(folder):
    """Keys of a SentencePiece model that does not exist yet."""
    return {
        "src_vocab_file": None,
        "sentencepiece_model": str(folder / "model" / "joint.model"),
        "sentencepiece_vocab_size": 275,
    }


def test_a_subword_model_is_trained_on_first_use_and_then_kept(folder, subwords):
    layer = make(folder, **subwords)
    assert layer.spec.target_vocab_size == 275 and layer.spec.joint_vocabulary
    assert layer.front_end_files() == {
        "sentencepiece_model": subwords["sentencepiece_model"]
    }
    again = make(folder, "eval", **subwords)
    assert again.fingerprint == layer.fingerprint
    laws.check_restoring_undoes_encoding(layer)


def test_a_host_without_the_model_gets_the_chiefs(folder, subwords):
    layer = make(folder, **subwords)
    model = subwords["sentencepiece_model"]
    with open(model, "rb") as stream:
        content = stream.read()
    os.remove(model)

    class OnAnotherHost(OneOf):
        def gather_objects(self, value):
            return [(content, None), value]

    worker = OnAnotherHost(1, 2)
    front_end = make_front_end(layer.params, worker, ["not", "read"])
    assert front_end.fingerprint == layer.fingerprint


def test_eval_never_trains_a_subword_model(folder, subwords):
    with pytest.raises(DataError, match="joint.model: no such file"):
        make(folder, "eval", **subwords)


def test_a_missing_subword_model_without_a_size_says_what_to_give(folder, subwords):
    subwords["sentencepiece_vocab_size"] = None
    with pytest.raises(DataError, match="no such file.*sentencepiece_vocab_size"):
        make(folder, **subwords)


def test_a_subword_model_of_another_size_is_refused_with_both(folder, subwords):
    make(folder, **subwords)
    subwords["sentencepiece_vocab_size"] = 270
    with pytest.raises(DataError, match="has 275 tokens.* is 270"):
        make(folder, **subwords)


def test_literal_special_symbols_are_text_on_the_whole_way(folder, subwords):
    lines = ["<s> a </s>", "<unk> <pad>", "a b"] * 20
    subwords["sentencepiece_vocab_size"] = 280
    lines += ["a bad dad said", "sad soup", "upper pads"]
    layer = pair(folder, lines, lines, **subwords)
    for batch in epoch_of(layer):
        for row, length in zip(
            batch["source"]["ids"], batch["source"]["length"], strict=True
        ):
            assert (row[: length - 1] > 3).all()


@pytest.mark.parametrize(
    "mode, params, message",
    [
        ("train", {"target_file": None}, "target_file: missing in train"),
        ("eval", {"shuffle": True}, "shuffle: cannot be True in eval"),
        ("infer", {"repeat": True}, "repeat: cannot be True in infer"),
        ("train", {"batch_tokens": None}, "batch_tokens or batch_size"),
        ("train", {"max_length": [3]}, r"max_length: .* got \[3\]"),
        ("train", {"max_length": [3, 1]}, "max_length: expected"),
        ("train", {"max_length": [True, "x"]}, "max_length: expected"),
        ("train", {"src_vocab_file": None}, "sentencepiece_model or src_vocab_file"),
        (
            "train",
            {"sentencepiece_model": "m"},
            "src_vocab_file: needs vocabulary files",
        ),
        ("train", {"sentencepiece_vocab_size": 99}, "needs sentencepiece_model"),
        ("train", {"source_file": "/none/*.x"}, "/none/.*: no such file"),
        ("train", {"source_file": [3]}, "source_file: expected"),
    ],
)
def test_values_that_do_not_fit_together_are_refused(folder, mode, params, message):
    with pytest.raises(ConfigError, match=message):
        make(folder, mode, **params)

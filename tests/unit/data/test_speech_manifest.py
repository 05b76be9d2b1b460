from __future__ import annotations

import gzip
import io
import json
import sys

import numpy as np
import pytest
import soundfile

from oseq.data.speech_manifest import Utterance, read_manifests
from oseq.data.text_files import DataError
from tests.unit.data.audio import tone, write_audio


def read(path, content, with_text=True):
    path.write_bytes(content.encode())
    return read_manifests([str(path)], with_text)[0]


def contents(utterances):
    return [(each.name, each.text) for each in utterances]


def test_openseq2seqs_csv_may_quote_its_fields(tmp_path):
    content = (
        "wav_filename,wav_filesize,transcript\n"
        'a.wav,123,"yes, ""no"""\n'
        '"b,c.wav",5,plain\n'
    )
    utterances = read(tmp_path / "train.csv", content)
    assert contents(utterances) == [("a.wav", 'yes, "no"'), ("b,c.wav", "plain")]
    place = f"{tmp_path / 'train.csv'}, line 2"
    whole = Utterance("a.wav", str(tmp_path), 0.0, None, 'yes, "no"', place)
    assert utterances[0] == whole and whole.is_listed


@pytest.mark.parametrize("path", ["path", "audio", "wav_filename", "file"])
@pytest.mark.parametrize("text", ["text", "transcript", "sentence"])
def test_a_tsv_is_read_by_its_header_and_quotes_are_text(tmp_path, path, text):
    content = f'id\t{text}\t{path.upper()}\n1\tsay "a, b"\ta.flac\n'
    (utterance,) = read(tmp_path / "train.tsv", content)
    assert (utterance.name, utterance.text) == ("a.flac", 'say "a, b"')


def test_case_42_nemos_json_lines_are_pieces_where_they_have_an_offset(tmp_path):
    rows = [
        {"audio_filepath": "a.wav", "duration": 3.5, "text": "whole"},
        {"audio_filepath": "a.wav", "offset": 1.5, "duration": 2, "text": "piece"},
        {"audio_filepath": "a.wav", "offset": 0, "duration": 2.5, "text": "begin"},
        {"audio_filepath": "a.wav", "offset": 4, "text": "rest"},
    ]
    content = "\n".join(map(json.dumps, rows))
    utterances = read(tmp_path / "train.json", content)
    assert [(u.text, u.offset, u.duration) for u in utterances] == [
        ("whole", 0.0, None),  # the file itself knows its length
        ("piece", 1.5, 2.0),
        ("begin", 0.0, 2.5),
        ("rest", 4.0, None),
    ]


def test_only_a_newline_ends_a_line(tmp_path):
    content = "\ufeffpath\ttext\r\na.wav\tone\u2028two\r\n\r\nb.wav\tthree\x0bfour"
    utterances = read(tmp_path / "x.txt", content)
    assert contents(utterances) == [
        ("a.wav", "one\u2028two"),
        ("b.wav", "three\x0bfour"),
    ]
    assert utterances[1].place.endswith("x.txt, line 4")


def test_case_37_an_empty_transcript_is_one_and_spaces_around_it_are_none(tmp_path):
    utterances = read(tmp_path / "a.tsv", "path\ttext\na.wav\t\nb.wav\t  x y \n")
    assert contents(utterances) == [("a.wav", ""), ("b.wav", "x y")]


def test_without_transcripts_none_are_wanted_and_none_are_kept(tmp_path):
    assert contents(read(tmp_path / "a.csv", "file\na.wav\n", False)) == [
        ("a.wav", None)
    ]
    assert contents(read(tmp_path / "a.tsv", "file\ttext\na.wav\tx\n", False)) == [
        ("a.wav", None)
    ]


def test_without_transcripts_a_plain_list_will_do_and_blank_lines_count(tmp_path):
    utterances = read(tmp_path / "list.txt", "\na b.wav\n\nc.wav\n", False)
    assert [u.name for u in utterances] == ["", "a b.wav", "", "c.wav"]
    with pytest.raises(DataError, match=r"list.txt, line 2: is neither JSON nor"):
        read(tmp_path / "list.txt", "\na b.wav\n", True)


def test_without_transcripts_an_audio_file_is_its_own_manifest(tmp_path):
    plain = write_audio(tmp_path / "a.wav", tone(0.1))
    odd = tmp_path / "call.0001"
    odd.write_bytes((tmp_path / "a.wav").read_bytes())
    utterances, files = read_manifests([plain, str(odd)], with_text=False)
    assert files == [plain, str(odd)]
    assert [u.name for u in utterances] == files
    assert not any(u.is_listed for u in utterances)
    with pytest.raises(DataError, match=r"a\.wav: is audio; what is said"):
        read_manifests([plain], with_text=True)


@pytest.mark.parametrize("ending", ["w64", "voc", "avr", "mat", "sph"])
@pytest.mark.parametrize("subtype", ["PCM_16", "ULAW"])
def test_a_file_of_any_format_of_libsndfile_is_audio(tmp_path, ending, subtype):
    kind = {"mat": "MAT5", "sph": "NIST"}.get(ending, ending.upper())
    if not soundfile.check_format(kind, subtype):
        pytest.skip("libsndfile has no such format")
    path = str(tmp_path / f"a.{ending}")
    noise = np.random.default_rng(0).uniform(-0.5, 0.5, 4000)
    soundfile.write(path, noise, 16000, subtype, format=kind)
    ((utterance,), _) = read_manifests(path, with_text=False)
    assert utterance.name == path and not utterance.is_listed


def test_what_is_neither_text_nor_audio_is_told_as_text(tmp_path):
    (tmp_path / "list.txt").write_bytes("a.wav\n".encode("utf-16-le"))
    with pytest.raises(DataError, match="list.txt, line 1: .*NUL"):
        read_manifests(str(tmp_path / "list.txt"), with_text=False)


def test_a_json_array_is_told_what_it_should_be(tmp_path):
    rows = [{"audio_filepath": "a.wav", "text": "x"}]
    for content in (json.dumps(rows), json.dumps(rows, indent=2)):
        for with_text in (False, True):
            with pytest.raises(DataError, match=r"line 1: begins a JSON array; write"):
                read(tmp_path / "a.json", content, with_text)
    (utterance,) = read(tmp_path / "list.txt", "[1] a.wav\n", False)
    assert utterance.name == "[1] a.wav"


def test_a_first_line_with_an_open_quote_is_no_header(tmp_path):
    content = '"a" song.wav\n"b.wav\n'
    utterances = read(tmp_path / "list.txt", content, False)
    assert [u.name for u in utterances] == ['"a" song.wav', '"b.wav']
    for name in ("list.txt", "list.csv"):
        with pytest.raises(DataError, match=rf"{name}, line 1: is neither JSON nor"):
            read(tmp_path / name, content, True)


def test_several_manifests_globs_and_gzip_follow_each_other(tmp_path):
    for number in (2, 1):
        (tmp_path / f"part{number}.csv").write_text(f"path,text\n{number}.wav,x\n")
    packed = tmp_path / "more.csv.gz"
    packed.write_bytes(gzip.compress(b"path,text\nz.wav,x\n"))
    utterances, files = read_manifests(
        [str(tmp_path / "part*.csv"), str(packed)], with_text=True
    )
    assert [u.name for u in utterances] == ["1.wav", "2.wav", "z.wav"]
    assert len(files) == 3


def test_standard_input_is_a_manifest(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(b"a.wav\nb.wav\n"))
    monkeypatch.setattr(sys, "stdin", stream)
    utterances, files = read_manifests("-", with_text=False)
    assert [u.name for u in utterances] == ["a.wav", "b.wav"]
    assert files == ["-"]
    assert utterances[1].place == "standard input, line 2"


def test_all_missing_columns_are_named_at_once(tmp_path):
    with pytest.raises(DataError) as error:
        read(tmp_path / "a.csv", "size,speaker\n1,2\n")
    message = str(error.value)
    assert "a.csv, line 1: has no column of audio files (path, " in message
    assert "and none of transcripts (text, " in message
    assert ", but size, speaker" in message
    with pytest.raises(DataError, match=r"no column of transcripts \(text"):
        read(tmp_path / "a.tsv", "path\tsize\na.wav\t1\n")


def test_mistakes_are_named_with_file_and_line_all_at_once(tmp_path):
    rows = [
        '{"audio_filepath": "a.wav", "text": "x"}',
        "{broken",
        '{"text": "x"}',
        '{"audio_filepath": "a.wav"}',
        '{"audio_filepath": "a.wav", "text": "x", "offset": -1}',
        '{"audio_filepath": "a.wav", "text": "x", "offset": 1, "duration": "long"}',
        "[1, 2]",
    ]
    with pytest.raises(DataError) as error:
        read(tmp_path / "m.jsonl", "\n".join(rows))
    problems = error.value.problems
    assert [p.partition(": ")[0][-6:] for p in problems] == [
        f"line {n}" for n in range(2, 8)
    ]
    for problem, part in zip(
        problems,
        ("Expecting", "no audio file", "no transcript", "offset", "duration", "object"),
        strict=True,
    ):
        assert part in problem


def test_a_long_list_of_mistakes_is_cut_and_counted(tmp_path):
    content = "path,text\n" + "a.wav\n" * 1500 + 'b.wav,"open\n'
    with pytest.raises(DataError) as error:
        read(tmp_path / "m.csv", content)
    first, *_, last = error.value.problems
    assert first.endswith("m.csv, line 2: has 1 fields, but the header 2")
    assert last.endswith("1,491 more such lines")


def test_an_empty_or_blank_or_missing_manifest_is_an_error(tmp_path):
    with pytest.raises(DataError, match="the file is empty"):
        read(tmp_path / "a.csv", "")
    with pytest.raises(DataError, match="nothing but blank lines"):
        read(tmp_path / "a.csv", "\n \n")
    with pytest.raises(DataError, match=r"gone\.csv: no such file"):
        read_manifests([str(tmp_path / "gone.csv")], with_text=True)

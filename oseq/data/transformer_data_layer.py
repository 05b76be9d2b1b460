"""Pairs that OpenSeq2Seq's scripts have tokenized, from TFRecord shards."""

from __future__ import annotations

from oseq.config.params import Param
from oseq.data.front_end_params import FRONT_END_PARAMS, vocabulary_files
from oseq.data.parallel_files import ParallelFiles
from oseq.data.record_files import RecordFiles
from oseq.data.subword_tokenizer import SubwordTokenizer
from oseq.data.text_data_layer import CorpusFiles, TextDataLayer
from oseq.data.text_front_end import TextFrontEnd


class TransformerDataLayer(TextDataLayer):
    """TFRecord shards of subword ids, or raw text that the same subwords spell.

    See ``RecordFiles`` and ``SubwordTokenizer`` for the formats.
    """

    front_end_keys = ("src_vocab_file", "tgt_vocab_file", "pad_vocab_to_eight")
    input_keys = ("source_file", "file_pattern")

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            "data_dir": Param(str, "folder of the records", ""),
            "file_pattern": Param(str, "glob of TFRecord files in data_dir"),
            "source_file": Param(
                (str, list[str]),
                "raw text to read instead of records: file, glob or list of them; '-' "
                "in infer and score is standard input",
            ),
            "target_file": Param(
                (str, list[str]), "raw target text of source_file; not read in infer"
            ),
            "src_vocab_file": Param(str, "source subwords: one per line, in quotes"),
            "tgt_vocab_file": Param(str, "target subwords; default: src_vocab_file"),
            "pad_vocab_to_eight": FRONT_END_PARAMS["pad_vocab_to_eight"],
            **TextDataLayer.get_optional_params(),
            "pad_data_to_eight": Param(bool, "pad lengths to multiples of 8", False),
        }

    def _missing_keys(self) -> list[str]:
        params, mode = self.params, self.mode
        needed = ["src_vocab_file"]
        if mode != "infer":
            has_text = params["source_file"] or params["target_file"]
            needed += ["source_file", "target_file"] if has_text else ["file_pattern"]
        return [f"{key}: missing in {mode}" for key in needed if params[key] is None]

    def _open_files(self) -> CorpusFiles:
        params = self.params
        if params["source_file"] is None and params["file_pattern"] is not None:
            return RecordFiles(params, self.mode)
        return ParallelFiles(params, self.mode)

    def _make_front_end(self) -> TextFrontEnd:
        files = vocabulary_files(self.params)
        source, target = map(SubwordTokenizer, files.values())
        pad_to_eight = self.params["pad_vocab_to_eight"]
        return TextFrontEnd(source, target, files, pad_vocab_to_eight=pad_to_eight)

    @property
    def _length_multiple(self) -> int:
        return 8 if self.params["pad_data_to_eight"] else 1

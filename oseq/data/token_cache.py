"""The token cache: a corpus becomes ids once, which are read from disk as needed.

One folder holds one side of a corpus under one tokenizer; its name is a hash of
the content of both, so that a changed file or model never meets a stale cache::

    <cache_dir>/<hash>/header.json                         sizes of the other files
                       ids.bin offsets.bin text.bin text_offsets.bin
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import tqdm

from oseq.data import cache_folder
from oseq.data.text_files import read_blocks
from oseq.data.tokenized_text import TokenizedText, tokenize
from oseq.data.tokenizer import Tokenizer

FORMAT_VERSION = 1
_HEADER = "header.json"
_MAX_UNKNOWN = 1000  # symbols without a token that the header remembers
_DTYPES = {"offsets": "int64", "text": "uint8", "text_offsets": "int64"}


def load_or_tokenize(
    files: Sequence[str], tokenizer: Tokenizer, cache_dir: str | None
) -> TokenizedText:
    """Returns the tokenized lines of text files, memory-mapped."""
    blocks = (
        tokenize(lines, tokenizer) for file in files for lines in read_blocks(file)
    )
    return load_or_write(files, tokenizer, cache_dir, blocks)


def load_or_write(
    files: Sequence[str],
    tokenizer: Tokenizer,
    cache_dir: str | None,
    blocks: Iterable[TokenizedText],
    part: str = "",
) -> TokenizedText:
    """Returns what ``files`` hold, memory-mapped.

    A cache that is missing, truncated or damaged is written anew. Several
    processes may do so at once: each writes its own folder and renames it.

    Args:
      files: by whose content the cache is named.
      tokenizer: whose ids they are.
      cache_dir: place of the cache; None: ``default_cache_dir``.
      blocks: made of the files; asked for only where there is no cache.
      part: of the files, if they hold several texts.
    """
    folder = os.path.join(
        cache_dir or default_cache_dir(files[0]), cache_key(files, tokenizer, part)
    )
    vocab_size = tokenizer.vocab_size
    text = cache_folder.load(folder, lambda place: _load(place, vocab_size))
    if text is not None:
        return text
    with cache_folder.new(folder) as temporary:
        _write_files(temporary, blocks, vocab_size)
    return _load(folder, vocab_size)


def cache_key(files: Iterable[str], tokenizer: Tokenizer, part: str) -> str:
    """Returns a hash of the files' content, the tokenizer and the cache's format."""
    key = hashlib.sha256(f"{FORMAT_VERSION} {tokenizer.fingerprint}{part}".encode())
    for file in files:
        with open(file, "rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").digest()
        key.update(digest)
    return key.hexdigest()[:32]


def default_cache_dir(file: str) -> str:
    """Returns the first place that can be written: by the data, the user's, temp."""
    data_folder = os.path.dirname(os.path.abspath(file))
    user_cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    places = [
        os.path.join(user_cache, "oseq"),
        os.path.join(tempfile.gettempdir(), "oseq_cache"),
    ]
    # To root nothing is read-only; a folder that grants writing to nobody is meant so.
    if os.stat(data_folder).st_mode & 0o222:
        places.insert(0, os.path.join(data_folder, ".oseq_cache"))
    for place in places:
        with contextlib.suppress(OSError):
            os.makedirs(place, exist_ok=True)
            with tempfile.TemporaryFile(dir=place):
                return place
    raise OSError(f"no folder for the token cache can be written: {places}")


def _write_files(folder: str, blocks: Iterable[TokenizedText], vocab_size: int) -> None:
    ids_dtype = "uint16" if vocab_size <= 1 << 16 else "int32"
    dtypes = {"ids": ids_dtype, **_DTYPES}
    counts = dict.fromkeys(dtypes, 0)
    unknown: Counter[str] = Counter()
    progress = tqdm.tqdm(
        desc="tokenizing", unit=" lines", disable=not sys.stderr.isatty()
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(progress)
        streams = {
            name: stack.enter_context(open(_path(folder, name), "wb"))
            for name in dtypes
        }

        def append(name: str, values: np.ndarray) -> None:
            streams[name].write(values.astype(dtypes[name]).tobytes())
            counts[name] += len(values)

        append("offsets", np.zeros(1))
        append("text_offsets", np.zeros(1))
        for block in blocks:
            append("offsets", block.offsets[1:] + counts["ids"])
            append("text_offsets", block.text_offsets[1:] + counts["text"])
            append("ids", block.ids)
            append("text", block.text)
            unknown.update(block.unknown)
            progress.update(len(block))
    header = {
        "version": FORMAT_VERSION,
        "dtypes": dtypes,
        "counts": counts,
        "unknown": dict(unknown.most_common(_MAX_UNKNOWN)),
    }
    with open(os.path.join(folder, _HEADER), "w", encoding="utf-8") as stream:
        json.dump(header, stream)


def _load(folder: str, vocab_size: int) -> TokenizedText:
    """Maps a cache into memory.

    Raises:
      OSError, ValueError, LookupError, TypeError: it is not what its header says.
    """
    with open(os.path.join(folder, _HEADER), encoding="utf-8") as stream:
        header = json.load(stream)
    arrays = {}
    for name, dtypes in {"ids": ("uint16", "int32"), **_DTYPES}.items():
        dtype, count = header["dtypes"][name], header["counts"][name]
        path = _path(folder, name)
        if dtype not in dtypes:
            raise ValueError(f"{path}: unexpected type {dtype!r}")
        if os.path.getsize(path) != count * np.dtype(dtype).itemsize:
            raise ValueError(f"{path}: unexpected size")
        # An empty file cannot be mapped.
        arrays[name] = np.memmap(path, dtype, mode="r") if count else np.zeros(0, dtype)
    if len(arrays["offsets"]) != len(arrays["text_offsets"]):
        raise ValueError("ids and text have different numbers of lines")
    _check_offsets(arrays["offsets"], len(arrays["ids"]))
    _check_offsets(arrays["text_offsets"], len(arrays["text"]))
    ids = arrays["ids"]
    if len(ids) and not (0 <= ids.min() and ids.max() < vocab_size):
        raise ValueError("ids beyond the vocabulary")
    unknown = {str(symbol): int(n) for symbol, n in dict(header["unknown"]).items()}
    return TokenizedText(**arrays, unknown=unknown)


def _check_offsets(offsets: np.ndarray, end: int) -> None:
    if not (offsets[0] == 0 and offsets[-1] == end and (np.diff(offsets) >= 0).all()):
        raise ValueError("offsets out of order")


def _path(folder: str, name: str) -> str:
    return os.path.join(folder, f"{name}.bin")

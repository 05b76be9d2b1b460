"""The keys of Speech2TextDataLayer."""

from __future__ import annotations

from oseq.config.params import Param
from oseq.data.audio_augmentation import AugmentationParams
from oseq.data.audio_feature_params import (
    AUDIO_FEATURE_PARAMS,
    REQUIRED_AUDIO_FEATURE_PARAMS,
)
from oseq.data.planned_data_layer import PlannedDataLayer

# Keys of features that trained weights do not depend on.
_TRAINING_ONLY = ("dither", "pad_to")
FEATURE_KEYS = tuple(
    key
    for key in (*REQUIRED_AUDIO_FEATURE_PARAMS, *AUDIO_FEATURE_PARAMS)
    if key not in _TRAINING_ONLY
)

REQUIRED_PARAMS = {
    **REQUIRED_AUDIO_FEATURE_PARAMS,
    "vocab_file": Param(str, "alphabet, one symbol a line, or a SentencePiece model"),
}

OPTIONAL_PARAMS = {
    "dataset_files": Param(
        (str, list[str]),
        "manifests (CSV, TSV, JSON lines), globs or lists of them; infer also "
        "reads audio files and lists of them, '-' is standard input",
    ),
    "bpe": Param(bool, "vocab_file is a SentencePiece model", False),
    **AUDIO_FEATURE_PARAMS,
    "augmentation": Param(
        dict,
        "random changes in train",
        default={},
        schema_of=AugmentationParams,
    ),
    "min_duration": Param(float, "s; train drops what is shorter", minimum=0),
    "max_duration": Param(float, "s; train drops what is longer", above=0),
    "subsampling": Param(
        int,
        "of a CTC model: frames of each of its encoder's outputs; train drops "
        "transcripts that cannot be aligned with them (default: with frames)",
        minimum=1,
    ),
    "unknown_characters": Param(
        ["error", "drop", "map"],
        "characters outside the alphabet; map: to the other case or without "
        "accents, else they are dropped, too",
        "error",
    ),
    "bad_examples": Param(
        ["error", "drop"],
        "audio that is missing, damaged or empty; infer answers it blank",
        "error",
    ),
    **PlannedDataLayer.get_optional_params(),
    "batch_tokens": Param(
        int, "most utterances times padded frames in a batch", minimum=1
    ),
    "batch_size": Param(int, "most utterances in a batch", minimum=1),
    "cache_dir": Param(
        str, "place of what is kept; default: .oseq_cache by the manifests"
    ),
    "cache_audio": Param(
        bool, "keep samples there, decoded and resampled, in 16 bits", False
    ),
}

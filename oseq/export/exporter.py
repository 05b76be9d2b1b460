"""What every export does: write, describe, compare; then it gets its name."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from oseq.data.data_layer import DataLayer
from oseq.export.export_dir import partial_folder
from oseq.export.formats import load_format
from oseq.export.metadata import write_metadata
from oseq.models.model import Model

_log = logging.getLogger(__name__)


def export(
    model: Model,
    data_layer: DataLayer,
    folder: Path,
    *,
    export_format: str,
    quantization: str,
    sample: DataLayer,
    checkpoints: Sequence[Path],
    config: str,
) -> None:
    """Writes a model into ``folder``, which exists only when all is found right.

    Args:
      model: with trained weights.
      data_layer: of the vocabularies that the model was trained with.
      folder: new or empty.
      export_format, quantization: see ``formats.load_format``.
      sample: lines to compare export and checkpoint by.
      checkpoints: what the weights are from.
      config: the experiment as YAML text, for the metadata.

    Raises:
      ConfigError: the folder holds something.
      ExportError: the export answers other than the checkpoint.
    """
    chosen = load_format(export_format, quantization)
    with partial_folder(folder) as partial:
        with _root_logger_left_alone():
            details = chosen.write(model, data_layer, partial)
        write_metadata(
            partial,
            export_format=export_format,
            details=details,
            model=model,
            sources=checkpoints,
            config=config,
        )
        _log.info("comparing %d answers with the checkpoint's", sample.num_lines)
        chosen.verify(model, data_layer, partial, sample)
    _log.info("exported to %s", folder)


@contextlib.contextmanager
def _root_logger_left_alone() -> Iterator[None]:
    """Keeps TensorFlow from giving the root logger a handler if it has none.

    Every line of oseq's log would come twice from then on.
    """
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)

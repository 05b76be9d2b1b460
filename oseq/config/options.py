"""What the command line decides beside the config: how to run, not what."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Options:
    """Flags of one run.

    Args:
      resume: ``must`` continue a run in logdir, ``never``, or ``auto``: if one is
        there.
      infer_input_file: file to read instead of the config's; ``-``: standard
        input.
      infer_output_file: where the output goes; ``-``: standard output.
      score_target_file: translations to score instead of the config's target_file.
      alignment_file: where infer writes which words belong together.
      attention_file: where infer writes the attention between tokens.
      timestamps_file: where infer writes when words are spoken.
      checkpoint: file or folder that eval, infer and score read instead of logdir's.
      ensemble: logdirs or checkpoints of models that decode together with it.
      export_dir: where an export goes; new or empty.
      export_format: a name of ``export.formats.EXPORT_FORMATS``.
      export_quantization: how CTranslate2 keeps weights.
      benchmark: measure speed only, write nothing.
      bench_steps: updates of a benchmark.
      bench_start: first update that a benchmark times; None: the config's.
      enable_logs: keep a record of command, config, versions and log with the run.
      profile_steps: first and last update that the profiler records.
      command_line: the command as typed.
    """

    resume: str = "never"
    infer_input_file: str | None = None
    infer_output_file: str = "infer-out.txt"
    score_target_file: str | None = None
    alignment_file: str | None = None
    attention_file: str | None = None
    timestamps_file: str | None = None
    checkpoint: str | None = None
    ensemble: tuple[str, ...] = ()
    export_dir: str | None = None
    export_format: str = "saved_model"
    export_quantization: str = "float32"
    benchmark: bool = False
    bench_steps: int = 20
    bench_start: int | None = None
    enable_logs: bool = False
    profile_steps: tuple[int, int] | None = None
    command_line: str = ""

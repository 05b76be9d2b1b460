"""The keys that recurrent encoders and decoders have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oseq.component import LayerComponent
from oseq.config.params import ConfigError, Param, problem_of_value
from oseq.layers.recurrent import LSTM, RecurrentLayer

CELL_PARAMS = {
    "core_cell": Param(type, "class of each recurrent layer: LSTM, GRU", default=LSTM),
    "core_cell_params": Param(
        dict, "its arguments: num_units ...", default={}, schema_of="core_cell"
    ),
}


def keep_prob(meaning: str) -> Param:
    """Returns the Param of 1 minus a dropout rate."""
    return Param(float, meaning, default=1.0, above=0, maximum=1)


REQUIRED_PARAMS = {
    "src_emb_size": Param(int, "size of the vectors of source tokens", minimum=1),
    "encoder_layers": Param(int, "number of layers", minimum=1),
}

OPTIONAL_PARAMS = {
    **LayerComponent.get_optional_params(),
    **CELL_PARAMS,
    "encoder_dp_input_keep_prob": keep_prob("1 - dropout rate on each layer's input"),
    "encoder_dp_output_keep_prob": keep_prob("1 - dropout rate on each layer's output"),
}

SKIP_PARAMS = {
    "encoder_use_skip_connections": Param(bool, "add each layer's input to its output"),
}


_NUM_UNITS = Param(int, "size of what each layer puts out", minimum=1)


def make_cell(
    params: Mapping[str, Any],
    weight_options: Mapping[str, Any],
    name: str,
    policy: str,
    **changes: Any,
) -> RecurrentLayer:
    """Returns one recurrent layer of an encoder or decoder.

    Args:
      params: the encoder's or decoder's.
      weight_options: its ``initializer`` and ``regularizer``.
      name: of the layer.
      policy: of the layer.
      changes: what differs of ``core_cell_params``.

    Raises:
      ConfigError: as ``num_units_of``.
    """
    num_units_of(params)
    arguments = {**params["core_cell_params"], **changes}
    return params["core_cell"](**arguments, **weight_options, name=name, dtype=policy)


def num_units_of(params: Mapping[str, Any]) -> int:
    """Returns the size of what each layer puts out.

    Raises:
      ConfigError: ``core_cell`` is no recurrent layer, or it has no such size.
    """
    cell, arguments = params["core_cell"], params["core_cell_params"]
    if not issubclass(cell, RecurrentLayer):
        raise ConfigError(
            f"core_cell: {cell.__module__}.{cell.__name__} is no RecurrentLayer, as "
            "LSTM and GRU of oseq.layers.recurrent are"
        )
    if "num_units" not in arguments:
        raise ConfigError(f"core_cell_params/num_units: missing; {_NUM_UNITS.meaning}")
    problem = problem_of_value(_NUM_UNITS, True, arguments["num_units"])
    if problem:
        raise ConfigError(f"core_cell_params/num_units: {problem}")
    return arguments["num_units"]


def check_skip_connections(params: Mapping[str, Any]) -> None:
    """Refuses residual connections around a layer whose output has another size."""
    size, num_units = params["src_emb_size"], num_units_of(params)
    if params["encoder_use_skip_connections"] and size != num_units:
        raise ConfigError(
            f"encoder_use_skip_connections: src_emb_size {size} and num_units "
            f"{num_units} cannot be added up; make them equal, or set it to False"
        )

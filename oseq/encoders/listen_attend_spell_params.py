"""The keys of ListenAttendSpellEncoder."""

from __future__ import annotations

import dataclasses

from oseq.config.params import OMITTED, Component, Param
from oseq.encoders.speech_rnn import RNN_TYPES
from oseq.encoders.tdnn_encoder import TDNNEncoder
from oseq.layers.time_pooling import POOL_TYPES

# Keys of TimePooling.
POOLING_PARAMS = ("pool_type", "pool_size", "stride")


class RecurrentLayers(Component):
    """The keys of an entry of ``recurrent_layers``."""

    @staticmethod
    def get_required_params() -> dict[str, Param]:
        return {
            "type": Param(list(RNN_TYPES), "kind of the layers"),
            "num_layers": Param(int, "layers before the pooling", minimum=1),
            "hidden_dim": Param(int, "size of each of both directions", minimum=1),
        }

    @staticmethod
    def get_optional_params() -> dict[str, Param]:
        return {
            "dropout_keep_prob": Param(
                float,
                "1 - dropout rate on each layer's output; None: the encoder's",
                above=0,
                maximum=1,
            ),
            "pool": Param(bool, "make of some positions one, after the layers", False),
            "pool_type": Param(
                list(POOL_TYPES),
                "with pool: their largest values, or all of them side by side; max if "
                "omitted",
                OMITTED,
            ),
            "pool_size": Param(
                (int, list[int]),
                "with pool: positions that one is made of; 2 if omitted",
                OMITTED,
            ),
            "stride": Param(
                (int, list[int]),
                "with pool: positions from one to the next; 2 if omitted",
                OMITTED,
            ),
        }


REQUIRED_PARAMS = {
    "dropout_keep_prob": TDNNEncoder.get_required_params()["dropout_keep_prob"],
    "recurrent_layers": Param(
        list[dict],
        "bidirectional layers with or without pooling, from the bottom",
        schema_of=RecurrentLayers,
    ),
}

_TDNN_PARAMS = TDNNEncoder.get_required_params() | TDNNEncoder.get_optional_params()
# Of TDNNEncoder, in the same sense and with its defaults.
CONVNET_PARAMS = ("activation_fn", "normalization", "bn_momentum", "bn_epsilon")

OPTIONAL_PARAMS = {
    "convnet_layers": Param(
        list[dict],
        "convolutions before the recurrent layers, as of TDNNEncoder",
        [],
        schema_of=_TDNN_PARAMS["convnet_layers"].schema_of,
    ),
    **{
        key: dataclasses.replace(
            _TDNN_PARAMS[key],
            meaning=f"with convnet_layers: {_TDNN_PARAMS[key].meaning}",
            default=OMITTED,
        )
        for key in CONVNET_PARAMS
    },
}

"""The keys of ListenAttendSpellEncoder."""

from __future__ import annotations

from oseq.config.params import Component, Param
from oseq.encoders.speech_rnn import RNN_TYPES
from oseq.encoders.tdnn_encoder import TDNNEncoder
from oseq.layers.time_pooling import POOL_TYPES


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
                "with pool: their largest values, or all of them side by side",
                "max",
            ),
            "pool_size": Param(
                (int, list[int]), "with pool: positions that one is made of", 2
            ),
            "stride": Param(
                (int, list[int]), "with pool: positions from one to the next", 2
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

# Of TDNNEncoder, in the same sense.
_CONVNET_PARAMS = ("normalization", "bn_momentum", "bn_epsilon")

OPTIONAL_PARAMS = {
    "convnet_layers": Param(
        list[dict],
        "convolutions before the recurrent layers, as of TDNNEncoder",
        [],
        schema_of=TDNNEncoder.get_required_params()["convnet_layers"].schema_of,
    ),
    "activation_fn": Param(
        (callable, str), "with convnet_layers: as of TDNNEncoder", "relu"
    ),
    **{key: TDNNEncoder.get_optional_params()[key] for key in _CONVNET_PARAMS},
}

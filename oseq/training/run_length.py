"""How long a run is, and where in the data it goes on, also with other workers.

Everything follows from the header of the checkpoint and from the data as it is now,
so all workers come to the same result.
"""

from __future__ import annotations

from typing import Any

from oseq.contracts import Position
from oseq.data.data_layer import DataLayer
from oseq.training.checkpoint import Header


def data_facts(data_layer: DataLayer) -> dict[str, Any]:
    """Returns what decides which batches a position means, for a header."""
    return {
        "num_examples": data_layer.num_examples,
        "batches_per_epoch": data_layer.batches_per_epoch,
        "order_fingerprint": data_layer.order_fingerprint,
        "workers": data_layer.worker.size,
    }


def position_in(data_layer: DataLayer, header: Header) -> Position:
    """Returns where the run that wrote ``header`` goes on in this data.

    Exactly where it was, if the batches are the same. If only their number or their
    order is another, because there are other workers or batch sizes, after the same
    share of the epoch. If there are more or fewer examples, where the interrupted
    epoch begins.
    """
    position = header.position
    if header.data == data_facts(data_layer):
        return position
    begin = Position(position.epoch)
    if header.data.get("num_examples") != data_layer.num_examples:
        return begin
    share = position.batch / header.data["batches_per_epoch"]
    return data_layer.advance(begin, round(share * data_layer.batches_per_epoch))


def describe_change(data_layer: DataLayer, header: Header) -> str | None:
    """Returns one line on what the change of the data means, or None without one."""
    changes = [
        _change(name, header.data.get(name), value)
        for name, value in data_facts(data_layer).items()
        if header.data.get(name) != value
    ]
    if not changes:
        return None
    position = position_in(data_layer, header)
    if header.data.get("num_examples") != data_layer.num_examples:
        place = f"epoch {position.epoch} begins anew"
    else:
        place = (
            f"going on after the same share of the epoch, at epoch {position.epoch}, "
            f"batch {position.batch} of {data_layer.batches_per_epoch}"
        )
    return (
        f"the data is not what it was ({'; '.join(changes)}): {place}; weights, "
        "optimizer and step go on"
    )


def last_step_of_epochs(
    num_epochs: int, iter_size: int, data_layer: DataLayer, header: Header | None
) -> int:
    """Returns the number of applied updates at which ``num_epochs`` are done.

    The step reached, and the updates that what is left of the epochs takes now. An
    update that was skipped is made up for by one more, before and after a restart.

    Args:
      num_epochs: of the whole run.
      iter_size: batches of this worker in one update.
      data_layer: in train mode.
      header: of the checkpoint to go on from; None at the start of a run.
    """
    step, position = 0, Position()
    if header is not None:
        step = header.step + header.num_skipped
        position = position_in(data_layer, header)
    epochs_left = num_epochs - position.epoch
    batches_left = epochs_left * data_layer.batches_per_epoch - position.batch
    return step - (-batches_left // iter_size)  # rounded up


def _change(name: str, saved: Any, value: Any) -> str:
    if name == "order_fingerprint":
        return "its batches come in another order"
    return f"{name} was {saved}, is {value}"

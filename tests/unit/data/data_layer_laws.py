"""What every data layer of text has to obey, given how one is made.

``make(mode, worker)`` returns a layer over the same examples each time.
"""

from __future__ import annotations

import itertools

import numpy as np

from oseq.contracts import Position
from oseq.distributed.worker import SingleWorker


class OneOf(SingleWorker):
    """A worker that sees of its peers only that they agree with it."""

    def __init__(self, rank, size):
        self.rank = self.local_rank = rank
        self.size = size

    def gather_objects(self, value):
        return [value] * self.size


def epoch_of(layer, epoch=0):
    batches = layer.batches(Position(epoch))
    return list(itertools.islice(batches, layer.batches_per_epoch))


def ids_in(batches):
    return sorted(int(i) for batch in batches for i in batch["id"])


def as_lists(batches):
    return [
        {key: np.asarray(batch[side][key]).tolist() for key in batch[side]}
        | {"id": np.asarray(batch["id"]).tolist(), "side": side}
        for batch in batches
        for side in ("source", "target")
    ]


def check_every_example_comes_once(make, size, num_examples):
    layers = [make("train", OneOf(rank, size)) for rank in range(size)]
    assert len({layer.batches_per_epoch for layer in layers}) == 1
    for epoch in range(2):
        batches = [b for layer in layers for b in epoch_of(layer, epoch)]
        assert ids_in(batches) == list(range(num_examples))


def check_batches_are_those_of_one_worker(make, mode, size):
    def batches_of(worker):
        layer = make(mode, worker)
        batches = [batch["id"].tolist() for batch in layer.batches()]
        assert len(batches) == layer.batches_per_epoch
        return batches

    whole = batches_of(OneOf(0, 1))
    dealt = [batch for rank in range(size) for batch in batches_of(OneOf(rank, size))]
    assert sorted(dealt) == sorted(whole)


def check_a_resumed_stream_goes_on(make):
    layer = make("train", SingleWorker())
    number = 3 * layer.batches_per_epoch
    stream = as_lists(itertools.islice(layer.batches(), number))
    for consumed in (0, 1, layer.batches_per_epoch, number - 2):
        position = layer.advance(Position(), consumed)
        again = make("train", SingleWorker()).batches(position)
        rest = as_lists(itertools.islice(again, number - consumed))
        assert rest == stream[2 * consumed :]


def check_the_data_set_equals_the_batches(make):
    layer = make("train", SingleWorker())
    dataset = layer.dataset(Position(1, 2))
    assert dataset.element_spec["target"]["ids"].shape.rank == 2
    ours = list(itertools.islice(layer.batches(Position(1, 2)), 9))
    assert as_lists(dataset.take(9)) == as_lists(ours)


def check_restoring_undoes_encoding(layer):
    """Every row of an epoch is the text of its example again, EOS at its end."""
    for batch in epoch_of(layer):
        for side in ("source", "target"):
            ids, length = batch[side]["ids"], batch[side]["length"]
            for i, row, end in zip(batch["id"], ids, length, strict=True):
                assert row[end - 1] == layer.spec.eos_id
                assert not row[end:].any()
                assert layer.restore(row) == layer.text_of(side, i)

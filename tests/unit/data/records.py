"""TFRecord files as OpenSeq2Seq's scripts write them."""

from __future__ import annotations

import tensorflow as tf


def example(source, target, end=(1,), target_end=(1,)):
    """Returns one serialized record; EOS comes behind the ids."""
    ids = {"inputs": [*source, *end], "targets": [*target, *target_end]}
    features = {
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=value))
        for name, value in ids.items()
    }
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return example.SerializeToString()


def write_records(path, records):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)

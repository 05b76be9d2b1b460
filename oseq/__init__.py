"""oseq: a toolkit for sequence models on TensorFlow and Keras 3."""

__version__ = "0.1.0"

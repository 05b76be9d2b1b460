"""Exports: what a trained model leaves for processes that know nothing of oseq."""

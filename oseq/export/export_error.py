"""What is raised when an export cannot be used."""

from __future__ import annotations

from oseq.config.params import UserError


class ExportError(UserError):
    """What was written does not say what the checkpoint says, or cannot be read."""

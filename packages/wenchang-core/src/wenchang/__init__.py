"""Durable, shared, versioned memory files for AI agents on any storage."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"

"""The storage contract as tests that any backend can run."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"

"""A remote storage in one process: a service, a link that can lose things, and a right client.

The suite is tried on it, and deliberately wrong clients are made from it. Nothing is sent anywhere.
"""

from __future__ import annotations

from wenchang_conformance.simulated.client import SimulatedStorage
from wenchang_conformance.simulated.hooks import SimulatedBackdoor, SimulatedFaults, simulated_hooks
from wenchang_conformance.simulated.service import Link, LinkError, Record, Reply, Request, Service

__all__ = [
    "Link",
    "LinkError",
    "Record",
    "Reply",
    "Request",
    "Service",
    "SimulatedBackdoor",
    "SimulatedFaults",
    "SimulatedStorage",
    "simulated_hooks",
]

"""The zoo: storages that are wrong on purpose, each in one way, to prove that the suite notices.

Each member is a few lines over a right storage. `MEMBERS` names them with the requirement that they
break. They are for testing the suite; nothing may be stored in them.
"""

from __future__ import annotations

from wenchang_conformance.broken.member import Member
from wenchang_conformance.broken.running import failed_requirements
from wenchang_conformance.broken.zoo import MEMBERS, RIGHT

__all__ = ["MEMBERS", "RIGHT", "Member", "failed_requirements"]

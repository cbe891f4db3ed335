"""The refusals of object stores in each provider's own form, for `Fault.answer_in_front`.

A status alone is what any box on the way may say; only the provider's own code in the answer
proves that the request was not applied.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from wenchang_conformance.faults.kinds import AnswerInFront

if TYPE_CHECKING:
    from wenchang_conformance.faults.kinds import Fault


def s3_error(status: int, code: str, *, retry_after: int | None = None) -> Fault:
    """Answer as S3 does: XML with a `Code`, such as SlowDown (503) or OperationAborted (409)."""
    body = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code>'
        "<Message>injected</Message><RequestId>0</RequestId><HostId>0</HostId></Error>"
    )
    return AnswerInFront(
        status=status,
        headers=(("Content-Type", "application/xml"), *_retry_after(retry_after)),
        body=body.encode(),
    )


def gcs_error(status: int, reason: str, *, retry_after: int | None = None) -> Fault:
    """Answer as GCS's JSON interface does, e.g. 429 with the reason `rateLimitExceeded`."""
    error = {"domain": "usageLimits", "reason": reason, "message": "injected"}
    body = {"error": {"code": status, "message": "injected", "errors": [error]}}
    return AnswerInFront(
        status=status,
        headers=(("Content-Type", "application/json"), *_retry_after(retry_after)),
        body=json.dumps(body).encode(),
    )


def azure_error(status: int, code: str, *, retry_after: int | None = None) -> Fault:
    """Answer as Azure's Blob service does: XML and `x-ms-error-code`, e.g. ServerBusy (503)."""
    body = (
        f'<?xml version="1.0" encoding="utf-8"?><Error><Code>{code}</Code>'
        "<Message>injected</Message></Error>"
    )
    return AnswerInFront(
        status=status,
        headers=(
            ("Content-Type", "application/xml"),
            ("x-ms-error-code", code),
            *_retry_after(retry_after),
        ),
        body=body.encode(),
    )


def _retry_after(seconds: int | None) -> tuple[tuple[str, str], ...]:
    return () if seconds is None else (("Retry-After", str(seconds)),)

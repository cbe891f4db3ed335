"""What became of an attempt, from what the SDK raised: the one place that knows its exceptions.

Two things count: the service's own code in the answer, before any status, since an error can
come inside a success and then has the status 500; and where the request was when it failed. What
neither tells is ambiguous.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import botocore.exceptions as sdk
from botocore.exceptions import ClientError

from wenchang.storage import StorageConfigurationError, StorageRejectedError
from wenchang.storage.bounded import CallNotStartedError, CallTimedOutError
from wenchang.storage.errors import RejectionKind
from wenchang.storage.outcomes import Ambiguous, Attempt, Busy, NotSent, Refused, Rejected

__all__ = [
    "Condition",
    "classify",
    "classify_read",
    "is_absent",
    "is_denied",
    "is_mapped",
    "is_past_end",
    "no_list_permission",
]

Condition: TypeAlias = Literal["none", "absent", "version"]
"""The condition that a request carried: none, "only if absent", "only at a version"."""

# --- codes of the service ------------------------------------------------------------------------

_REFUSED: Final = frozenset({"PreconditionFailed", "412"})
_ABSENT: Final = frozenset({"NoSuchKey"})
# Not ServiceUnavailable and InternalError: what answers so may have applied the request.
_BUSY: Final = frozenset(
    {
        "BandwidthLimitExceeded",
        "ConcurrentModification",  # Ceph
        "ConditionalRequestConflict",
        "OperationAborted",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "SlowDownRead",  # MinIO
        "SlowDownWrite",  # MinIO
        "Throttling",
        "ThrottlingException",
        "TooManyRequests",
        "TooManyRequestsException",
    }
)
_KINDS: Final[Mapping[str, RejectionKind]] = {
    "AuthFailure": "credentials",
    "AuthorizationHeaderMalformed": "credentials",
    "ExpiredToken": "credentials",
    "ExpiredTokenException": "credentials",
    "InvalidAccessKeyId": "credentials",
    "InvalidSecurity": "credentials",
    "InvalidToken": "credentials",
    "InvalidTokenId": "credentials",
    "NotSignedUp": "credentials",
    "RequestExpired": "credentials",
    "RequestTimeTooSkewed": "credentials",
    "SignatureDoesNotMatch": "credentials",
    "TokenRefreshRequired": "credentials",
    "AccessDenied": "permission",
    "AccountProblem": "permission",
    "AllAccessDisabled": "permission",
    "NoSuchBucket": "missing_container",
    "MethodNotAllowed": "unsupported",
    "NotImplemented": "unsupported",
    "InvalidObjectState": "locked",
    "ObjectLocked": "locked",
    "InsufficientStorage": "full",
    "QuotaExceeded": "full",
    "XMinioStorageFull": "full",
}
_KINDS_BY_STATUS: Final[Mapping[int, RejectionKind]] = {
    301: "invalid",
    302: "invalid",
    307: "invalid",
    308: "invalid",
    400: "invalid",
    401: "credentials",
    403: "permission",
    405: "unsupported",
    413: "invalid",
    501: "unsupported",
    507: "full",
}
_TEXTS: Final[Mapping[str, str]] = {
    "RequestTimeTooSkewed": "the clock of this machine differs too much from the service's; set it",
    "InvalidObjectState": "the object is archived; restore it, or keep memories out of archiving rules",
    "AuthorizationHeaderMalformed": (
        "the service refused the signature, which often means that the bucket is in another region; "
        "set the option 'region'"
    ),
}
_TEXTS_BY_KIND: Final[Mapping[RejectionKind, str]] = {
    "credentials": (
        "the service refused the credentials; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the "
        "profile or the role, and that a session's token has not expired"
    ),
    "permission": (
        "access denied; the credentials need s3:GetObject, s3:PutObject and s3:DeleteObject on the "
        "objects and s3:ListBucket on the bucket, and the key's permission where a KMS key encrypts"
    ),
    "missing_container": "the bucket does not exist; create it, or check its name and the endpoint",
    "unsupported": "the server does not implement this request; see the list of compatible servers",
    "invalid": "the service refused the request as invalid",
    "locked": "the object is locked against changes",
    "full": "the server has no room left, or the quota is used up",
}
_CODE: Final = re.compile(r"[A-Z][A-Za-z]{2,63}")
_REDIRECTS: Final = frozenset({301, 302, 307, 308})
_REDIRECT: Final = (
    "the service redirects elsewhere: the bucket is in another region or behind another address; set "
    "the option 'region' or 'endpoint_url'"
)
_NO_LIST_PERMISSION: Final = (
    "access denied, and listing too: without s3:ListBucket on the bucket S3 answers 403 also for an "
    "object that does not exist, so a missing object cannot be told from a forbidden one; allow "
    "s3:ListBucket, and s3:GetObject on the objects"
)

# --- exceptions of the SDK -----------------------------------------------------------------------


def _classes(*names: str) -> tuple[type[Exception], ...]:
    """Return the SDK's exception classes of these names; releases differ in which they have."""
    found = (getattr(sdk, name, None) for name in names)
    return tuple(one for one in found if one is not None)


_NOT_SENT: Final = _classes(
    "EndpointConnectionError", "ConnectTimeoutError", "ProxyConnectionError"
)
_TIMED_OUT: Final = _classes("ReadTimeoutError", "ConnectTimeoutError")
_CREDENTIALS: Final = _classes(
    "NoCredentialsError",
    "NoAuthTokenError",
    "TokenRetrievalError",
    "UnknownTokenProviderError",
    "PartialCredentialsError",
    "CredentialRetrievalError",
    "UnknownCredentialError",
    "RefreshWithMFAUnsupportedError",
    "MetadataRetrievalError",
    "InvalidIMDSEndpointError",
    "InvalidIMDSEndpointModeError",
    "InfiniteLoopConfigError",
    "SSOError",
    "LoginError",
    "MissingDependencyException",
    "InvalidSTSRegionalEndpointsConfigError",
)
_REGION: Final = _classes("NoRegionError", "InvalidRegionError", "UnknownRegionError")
_PROFILE: Final = _classes(
    "ProfileNotFound", "ConfigNotFound", "ConfigParseError", "InvalidConfigError"
)
_INVALID: Final = _classes(
    "DataNotFoundError",
    "ApiVersionNotFoundError",
    "UnknownSignatureVersionError",
    "ServiceNotInRegionError",
    "BaseEndpointResolverError",
    "MissingParametersError",
    "ValidationError",
    "ParamValidationError",
    "UnknownServiceStyle",
    "PaginationError",
    "OperationNotPageableError",
    "UnseekableStreamError",
    "WaiterError",
    "WaiterConfigError",
    "InvalidExpressionError",
    "UnknownClientMethodError",
    "UnsupportedSignatureVersionError",
    "InvalidDNSNameError",
    "InvalidS3AddressingStyleError",
    "UnsupportedS3ArnError",
    "UnsupportedS3ControlArnError",
    "InvalidHostLabelError",
    "UnsupportedOutpostResourceError",
    "UnsupportedS3ConfigurationError",
    "UnsupportedS3AccesspointConfigurationError",
    "UnsupportedS3ControlConfigurationError",
    "InvalidEndpointDiscoveryConfigurationError",
    "InvalidRetryConfigurationError",
    "InvalidS3UsEast1RegionalEndpointConfigError",
    "MD5UnavailableError",
    "InvalidProxiesConfigError",
    "InvalidDefaultsMode",
    "InvalidEndpointConfigurationError",
    "EndpointProviderError",
    "InvalidChecksumConfigError",
    "UnsupportedServiceProtocolsError",
)
# The request may have arrived, or its answer cannot be trusted.
_AMBIGUOUS: Final = _classes(
    "HTTPClientError",
    "ConnectionError",
    "ChecksumError",
    "IncompleteReadError",
    "StubResponseError",
    "CapacityNotAvailableError",
    "AwsChunkedWrapperError",
    "FlexibleChecksumError",
)
_MAPPED: Final[tuple[type[Exception], ...]] = (
    ClientError,
    *_NOT_SENT,
    *_CREDENTIALS,
    *_REGION,
    *_PROFILE,
    *_INVALID,
    *_AMBIGUOUS,
)


def is_mapped(kind: type[Exception]) -> bool:
    """Tell whether an exception class of the SDK is spoken of here; a test walks all of them."""
    return issubclass(kind, _MAPPED)


# --- the verdict ---------------------------------------------------------------------------------


def classify(error: Exception, condition: Condition = "none") -> Attempt:
    """Return what an attempt came to that raised `error`; its request carried `condition`."""
    if isinstance(error, ClientError):
        return _answered(error, condition)
    if isinstance(error, CallTimedOutError):
        return Ambiguous(error=error, timed_out=True)
    if isinstance(error, CallNotStartedError):
        return NotSent(error=error, timed_out=True)
    if isinstance(error, _NOT_SENT) or (isinstance(error, sdk.SSLError) and _in_handshake(error)):
        return NotSent(error=error, timed_out=isinstance(error, _TIMED_OUT))
    ours = _before_sending(error)
    if ours is not None:
        ours.__cause__ = error
        return Rejected(error=ours)
    return Ambiguous(error=error, timed_out=isinstance(error, _TIMED_OUT))


def classify_read(error: Exception) -> Rejected | Busy | NotSent | Ambiguous:
    """Return what a read came to that raised `error`."""
    attempt = classify(error)
    if isinstance(attempt, Rejected | Busy | NotSent | Ambiguous):
        return attempt
    return Ambiguous(error=error)


def is_absent(error: BaseException) -> bool:
    """Tell whether the service said itself that there is no such object."""
    return isinstance(error, ClientError) and _code(error) in _ABSENT


def is_denied(error: BaseException) -> bool:
    """Tell whether the service denied access."""
    return isinstance(error, ClientError) and (
        _code(error) == "AccessDenied" or _status(error) == 403
    )


def is_past_end(error: BaseException) -> bool:
    """Tell whether a range begins behind the end of the object: the object is empty."""
    return isinstance(error, ClientError) and (
        _code(error) == "InvalidRange" or _status(error) == 416
    )


def no_list_permission(error: BaseException) -> Rejected:
    """Return the refusal of credentials that may not list, of which S3 hides what is missing."""
    ours = StorageRejectedError("permission", _NO_LIST_PERMISSION)
    ours.__cause__ = error
    return Rejected(error=ours)


def _answered(error: ClientError, condition: Condition) -> Attempt:
    """Classify an error that the service, or something in front of it, answered."""
    code, status = _code(error), _status(error)
    if code in _REFUSED:
        # Without a condition there was nothing to refuse: something on the way made it up.
        return Ambiguous(error=error) if condition == "none" else Refused()
    if code in _ABSENT and condition == "version":
        return Refused()
    if code in _BUSY:
        return Busy(error=error, retry_after=_retry_after(error))
    kind = _KINDS.get(code) or _KINDS_BY_STATUS.get(status)
    if kind is None:
        return Ambiguous(error=error)
    text = _TEXTS.get(code) or (_REDIRECT if status in _REDIRECTS else _TEXTS_BY_KIND[kind])
    if _CODE.fullmatch(code):
        text += f" (the service says {code})"
    ours = StorageRejectedError(kind, text)
    ours.__cause__ = error
    return Rejected(error=ours)


def _before_sending(error: Exception) -> StorageRejectedError | StorageConfigurationError | None:
    """Return our error for what the SDK raises before it sends anything, else None."""
    if isinstance(error, _CREDENTIALS):
        return StorageRejectedError(
            "credentials",
            "the SDK found no usable credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name "
            "a profile with the option 'profile', or give the machine a role",
        )
    if isinstance(error, _PROFILE):
        return StorageConfigurationError(
            "option 'profile', or AWS_PROFILE, names no profile that the AWS configuration files define "
            "as the SDK understands them"
        )
    if isinstance(error, _REGION):
        return StorageConfigurationError(
            "option 'region' must name the bucket's region, such as eu-west-1; neither it nor the AWS "
            "configuration gives one that the SDK knows"
        )
    if isinstance(error, _INVALID):
        return StorageRejectedError(
            "invalid",
            "the SDK refused to send the request; check bucket, endpoint and the AWS configuration files "
            f"({type(error).__name__})",
        )
    return None


def _code(error: ClientError) -> str:
    details = error.response.get("Error")
    code = details.get("Code") if isinstance(details, Mapping) else None
    return code if isinstance(code, str) else ""


def _status(error: ClientError) -> int:
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)


def _retry_after(error: ClientError) -> float | None:
    """Return the seconds that the service asks to wait; a date counts as none."""
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    text = str(headers.get("retry-after", ""))
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else None


def _in_handshake(error: BaseException) -> bool:
    """Tell whether a TLS error comes from the handshake, before anything of the request was sent."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        one = pending.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, ssl.SSLCertVerificationError):
            return True
        trace = one.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_name == "do_handshake":
                return True
            trace = trace.tb_next
        pending += [one.__cause__, one.__context__]
        inner = (*one.args, getattr(one, "reason", None))
        pending += [part for part in inner if isinstance(part, BaseException)]
    return False

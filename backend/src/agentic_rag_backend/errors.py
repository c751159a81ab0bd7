"""Errors that users can see. Each has a stable ``code``, an HTTP ``status``, and a message with the limit and the value.

Raise the most specific one. Only the HTTP handler and the CLI translate them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar


class AgenticRagError(Exception):
    """Base of all errors that users can see.

    ``message`` is safe to show: it never contains secrets, SQL, or text of another tenant.
    """

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500
    title: ClassVar[str] = "Internal error"

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after_s = retry_after_s

    @property
    def members(self) -> Mapping[str, Any]:
        """Further members of the problem."""
        return {}


class InvalidRequest(AgenticRagError):
    """A value the caller sent is outside its limits. ``field`` is the path of the value, such as "filters.year"."""

    code = "invalid_request"
    status = 422
    title = "Invalid request"

    def __init__(self, message: str, *, field: str | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(message, retry_after_s=retry_after_s)
        self.field = field


@contextmanager
def in_field(name: str) -> Iterator[None]:
    """Put ``name`` before the path of an `InvalidRequest` of the block. Nested blocks make a path such as "filters.year"."""
    try:
        yield
    except InvalidRequest as error:
        error.field = name if error.field is None else f"{name}.{error.field}"
        raise


class RerankerUnavailable(InvalidRequest):
    """The request names a reranker that this deployment cannot use. The message has the reason and the remedy."""

    code = "reranker_unavailable"
    title = "Reranker unavailable"


class InvalidScope(AgenticRagError):
    """A store was called without a tenant: a programming error, never 'all tenants'."""

    code = "invalid_scope"
    status = 500
    title = "Invalid tenant scope"


class Unauthenticated(AgenticRagError):
    """The credentials are missing, wrong or revoked."""

    code = "unauthenticated"
    status = 401
    title = "Authentication required"


class KeyRevoked(Unauthenticated):
    """The key was revoked."""

    code = "key_revoked"
    title = "Key revoked"


class KeyExpired(Unauthenticated):
    """The key has expired."""

    code = "key_expired"
    title = "Key expired"


class TokenInvalid(Unauthenticated):
    """The token was not issued by the OpenID provider for this server, or is not valid yet."""

    code = "token_invalid"
    title = "Token invalid"


class TokenExpired(Unauthenticated):
    """The token has expired."""

    code = "token_expired"
    title = "Token expired"


class IdentityProviderUnavailable(AgenticRagError):
    """The OpenID provider does not respond with its keys, so tokens cannot be checked."""

    code = "identity_provider_unavailable"
    status = 503
    title = "Identity provider unavailable"


class Forbidden(AgenticRagError):
    """The credentials do not permit the operation."""

    code = "forbidden"
    status = 403
    title = "Forbidden"


class KeyRestricted(Forbidden):
    """The key reads only some documents, and the operation concerns others, too."""

    code = "key_restricted"
    title = "Key restricted"


class TenantSuspended(Forbidden):
    """The operator has suspended the tenant."""

    code = "tenant_suspended"
    title = "Tenant suspended"


class NotFound(AgenticRagError):
    """The id does not exist, or belongs to another tenant. The error does not distinguish the two."""

    code = "not_found"
    status = 404
    title = "Not found"


class FeatureDisabled(AgenticRagError):
    """The feature is disabled for this tenant or deployment."""

    code = "feature_disabled"
    status = 404
    title = "Feature disabled"


class Conflict(AgenticRagError):
    """The operation contradicts the current state, for example a name that is taken."""

    code = "conflict"
    status = 409
    title = "Conflict"


class IdempotencyInProgress(Conflict):
    """The first request of an Idempotency-Key has not been answered yet."""

    code = "idempotency_in_progress"
    title = "Request in progress"


class IdempotencyKeyReused(InvalidRequest):
    """An Idempotency-Key was reused for a different request."""

    code = "idempotency_key_reused"
    title = "Idempotency-Key reused"


class PreconditionFailed(AgenticRagError):
    """The document has changed since the version in ``If-Match``."""

    code = "precondition_failed"
    status = 412
    title = "Precondition failed"


class PayloadTooLarge(AgenticRagError):
    """The request or the document is larger than its limit."""

    code = "payload_too_large"
    status = 413
    title = "Payload too large"


class UnsupportedMediaType(AgenticRagError):
    """The format of the document or the request body is not supported."""

    code = "unsupported_media_type"
    status = 415
    title = "Unsupported media type"


class UnreadableDocument(AgenticRagError):
    """The bytes are not a document of the declared type, or contain no text."""

    code = "unreadable_document"
    status = 422
    title = "Unreadable document"


class ResourceLimit(UnreadableDocument):
    """Processing the document exceeded a limit of time or memory, or ended its process."""

    code = "resource_limit"
    title = "Resource limit exceeded"


class StoreUnavailable(AgenticRagError):
    """A store did not respond, or responded with an error."""

    code = "store_unavailable"
    status = 503
    title = "Store unavailable"


class StorageFull(StoreUnavailable):
    """The disk of a store is full. Existing data stays readable."""

    code = "storage_full"
    status = 507
    title = "Storage full"


class StoreDamaged(StoreUnavailable):
    """The content of a store's file was changed or damaged. The message names the file and the remedy."""

    code = "store_damaged"
    title = "Store damaged"


class StoreLocked(StoreUnavailable):
    """Another process owns the embedded store's folder."""

    code = "store_locked"
    title = "Store in use by another process"


class ReindexRequired(StoreUnavailable):
    """Another embedder than the configured one made the vectors. ``made_with`` is their fingerprint."""

    code = "reindex_required"
    title = "Reindex required"

    def __init__(self, message: str, *, made_with: str = "") -> None:
        super().__init__(message)
        self.made_with = made_with


class ModelUnavailable(AgenticRagError):
    """The language model or embedder did not answer, or answered with an error, within its time."""

    code = "model_unavailable"
    status = 503
    title = "Model unavailable"


class ModelBusy(ModelUnavailable):
    """The model answers, but other calls of this process kept all of its places until the request's time was over."""

    code = "model_busy"
    title = "Model busy"


class ModelTimeout(ModelUnavailable):
    """The model did not end its reply within the time of the call."""

    code = "model_timeout"
    title = "Model too slow"


class ModelRateLimited(ModelUnavailable):
    """The model accepts no more requests at present. ``retry_after_s`` is the pause that it requests, if any."""

    code = "model_rate_limited"
    title = "Model rate limited"


class ModelRefused(ModelUnavailable):
    """The model refuses every request of this kind: its key, its name or the account's rights are wrong."""

    code = "model_refused"
    status = 502
    title = "Model refused the request"


class ModelInputRefused(ModelRefused):
    """The model refuses this input, for example a text that it cannot read. Other inputs may succeed."""

    code = "model_input_refused"
    title = "Model refused the text"


class PromptTooLong(ModelInputRefused):
    """The prompt and the requested reply do not fit in the model's context window. ``window`` is its size in tokens, if known."""

    code = "prompt_too_long"
    title = "Prompt too long"

    def __init__(self, message: str, *, window: int | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(message, retry_after_s=retry_after_s)
        self.window = window


class ModelReplyInvalid(ModelUnavailable):
    """The model's reply does not match the schema."""

    code = "model_reply_invalid"
    status = 502
    title = "Model reply invalid"


class RequestTimeout(AgenticRagError):
    """The operation did not end within its time limit."""

    code = "timeout"
    status = 504
    title = "Timed out"


class RequestIncomplete(AgenticRagError):
    """The request's head or body did not arrive in time."""

    code = "request_incomplete"
    status = 408
    title = "Request incomplete"


class AnswerStopped(AgenticRagError):
    """The answer was stopped before its end, because no connection followed it or because the caller stopped it."""

    code = "answer_stopped"
    status = 410
    title = "Answer stopped"


class TooManyConnections(AgenticRagError):
    """One address has reached its limit of connections."""

    code = "too_many_connections"
    status = 429
    title = "Too many connections"


class TooManyWrongKeys(AgenticRagError):
    """The key is wrong, and one address has reached its limit of wrong keys."""

    code = "too_many_wrong_keys"
    status = 429
    title = "Too many wrong keys"


class QuotaExceeded(AgenticRagError):
    """A limit of the tenant or of the key is reached. ``members`` has the limit, its use, and when it starts again."""

    code = "quota_exceeded"
    status = 429
    title = "Quota exceeded"

    def __init__(self, message: str, members: Mapping[str, Any], *, retry_after_s: float) -> None:
        super().__init__(message, retry_after_s=retry_after_s)
        self._members = members

    @property
    def members(self) -> Mapping[str, Any]:
        """The members of `domain.quota.refuse_use`."""
        return self._members


class Overloaded(AgenticRagError):
    """The server has reached its limit of connections."""

    code = "overloaded"
    status = 503
    title = "Server overloaded"


class ConfigurationError(AgenticRagError):
    """A setting is missing or contradicts another. Raised at start, before requests are served."""

    code = "configuration_error"
    status = 500
    title = "Configuration error"


def error_class(code: str) -> type[AgenticRagError] | None:
    """Return the class with that code. None if the code is unknown. Only classes of imported modules are found."""
    waiting: list[type[AgenticRagError]] = [AgenticRagError]
    while waiting:
        error_type = waiting.pop(0)
        if error_type.code == code:
            return error_type
        waiting += error_type.__subclasses__()
    return None

"""What can go wrong with an object store, and how boto's exceptions become our own.

`client.py` and `minio.py` come here at their border; nothing of botocore leaves this folder.
"""

from boto3.exceptions import Boto3Error, S3UploadFailedError
from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError, SSLError

from hansa.kernel.errors import Conflict, Forbidden, HansaError, Invalid, Kind, NotFound, Temporary, TooLarge


class StoreUnreachable(Temporary):
    """The object store does not answer now."""

    code = "store.unreachable"


class ManagerRefused(Temporary):
    """The object store refuses the manager's own keys."""

    code = "store.manager-refused"


class NoUserAdministration(HansaError):
    """This object store cannot make keys for single users."""

    code, kind = "store.no-user-administration", Kind.CONFLICT


class StoreBinaryMissing(HansaError):
    """The embedded object store is not installed."""

    code, kind = "store.binary-missing", Kind.INTERNAL


class StoreUnsafe(HansaError):
    """The embedded object store does not guard its ports as it was told to."""

    code, kind = "store.unsafe", Kind.INTERNAL


class StoreKeysLost(HansaError):
    """The keys of the embedded object store cannot be read."""

    code, kind = "store.keys-lost", Kind.INTERNAL


class StoreInUse(Conflict):
    """Another manager runs the embedded object store of this folder."""

    code = "store.in-use"


_MISSING = {"NoSuchBucket", "NoSuchKey", "NoSuchUpload", "NoSuchVersion", "NotFound", "404"}
_WRONG_KEYS = {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"}
_REFUSED = {"AccessDenied", "AllAccessDisabled", "AccountProblem", "403"}
_CONFLICT = {"BucketAlreadyExists", "BucketAlreadyOwnedByYou", "BucketNotEmpty", "OperationAborted", "409"}
_LATER = {"SlowDown", "RequestTimeout", "ServiceUnavailable", "InternalError", "Throttling", "503", "500"}


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def status_of(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def translated(error: Exception, what: str) -> HansaError:
    """Our error for what boto raised while doing `what` ("read bucket/key")."""
    if isinstance(error, S3UploadFailedError) and isinstance(error.__context__, Exception):
        error = error.__context__  # s3transfer hides the store's answer behind its own exception
    if isinstance(error, ClientError):
        return _from_answer(error, what)
    if isinstance(error, ParamValidationError | ValueError):
        return Invalid(f"could not {what}: {error}", hint="check the bucket and object names")
    if isinstance(error, SSLError):
        return StoreUnreachable(
            f"could not {what}: the object store's certificate is not trusted",
            hint="give the store a certificate this machine trusts, or turn verification off in the settings",
        )
    return StoreUnreachable(
        f"could not {what}: the object store does not answer ({type(error).__name__})",
        hint="check that the object store runs and that its endpoint is right",
    )


def _from_answer(error: ClientError, what: str) -> HansaError:
    code, status = code_of(error), status_of(error)
    message = f"could not {what}: {code or status}"
    if code in _MISSING:
        return NotFound(message, hint="check the bucket and object names")
    if code in _WRONG_KEYS:
        return Forbidden(message, hint="the access key or secret key is not, or no longer, valid")
    if code in _REFUSED:
        return Forbidden(message, hint="ask the bucket's owner for access")
    if code in _CONFLICT:
        return Conflict(message, hint="choose another name, or try again when others have finished with it")
    if code == "EntityTooLarge":
        return TooLarge(message, hint="upload the file in parts")
    if code in _LATER or status >= 500 or status == 429:
        return StoreUnreachable(message, hint="the object store has trouble now; trying again can help")
    return Invalid(message, hint=str(error.response.get("Error", {}).get("Message", "")))


FOREIGN: tuple[type[Exception], ...] = (BotoCoreError, ClientError, Boto3Error, ValueError)
"""What boto and s3transfer raise for trouble with the store; a local disk's `OSError` passes as it is."""

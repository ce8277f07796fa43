"""How is a link signed? With one person's keys, in memory: nobody is asked, and it is worth what they are worth."""

from typing import Literal
from urllib.parse import quote

from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from hansa.storage import Keys


def signed(
    url: str,
    operation: Literal["upload", "download"],
    keys: Keys,
    *,
    region: str,
    seconds: int,
    content_type: str = "",
) -> str:
    """A client of boto3 for each person would take tens of milliseconds to make; this takes one."""
    headers: dict[str, str] = {}
    if content_type and operation == "upload":
        headers["Content-Type"] = content_type
    elif content_type:
        url += f"?response-content-type={quote(content_type, safe='')}"
    request = AWSRequest("PUT" if operation == "upload" else "GET", url, headers=headers)
    credentials = Credentials(keys.access_key, keys.secret_key)
    S3SigV4QueryAuth(credentials, "s3", region, expires=seconds).add_auth(request)
    return str(request.url)

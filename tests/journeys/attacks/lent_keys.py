"""What managers say to each other is overheard, and the keys in it are tried."""

import json
import re
from typing import Any

import boto3
import botocore.exceptions
from botocore.config import Config

from real.federation import Federation

_PROVIDER = re.compile(rb'\{"minio_provider":(\{[^{}]*\})')


def overhear(hansa: Federation) -> None:
    for gate in hansa.gates.values():
        gate.overheard = bytearray()


def told(hansa: Federation) -> bytes:
    return b"\n".join(bytes(gate.overheard or b"") for gate in hansa.gates.values())


def stores_in(said: bytes) -> list[dict[str, Any]]:
    return [json.loads(found) for found in dict.fromkeys(_PROVIDER.findall(said))]


def store(provider: dict[str, Any]) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=provider["endpoint"],
        aws_access_key_id=provider["access_key"],
        aws_secret_access_key=provider["secret_key"],
        aws_session_token=provider.get("session_token") or None,
        region_name="us-east-1",
        config=Config(retries={"max_attempts": 1}, proxies={}),
    )


def denied(call: Any, **arguments: Any) -> bool:
    try:
        answer = call(**arguments)
    except botocore.exceptions.ClientError as error:
        return int(error.response["ResponseMetadata"]["HTTPStatusCode"]) in (403, 404)
    return bool(answer.get("Buckets") == [])  # which SeaweedFS answers to those who may see none

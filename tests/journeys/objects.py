"""How stories reach the object store: by a link, or with a person's own keys."""

from typing import Any

import boto3
import httpx
from botocore.client import Config


def upload(client: httpx.Client, bucket: str, key: str, content: bytes) -> None:
    link = client.post(f"/system/buckets/{bucket}/presign", json={"object_key": key, "operation": "upload"}).json()
    assert httpx.put(link["url"], content=content, trust_env=False, timeout=30).status_code == 200


def make_bucket(client: httpx.Client, bucket: str, key: str, content: bytes) -> None:
    """With one object in it."""
    assert client.post("/system/buckets", json={"bucket_name": bucket}).status_code == 201
    upload(client, bucket, key, content)


def store_of(client: httpx.Client) -> Any:
    """S3 with the caller's own keys, as oscar-python uses it."""
    provider = client.get("/system/config").json()["minio_provider"]
    return boto3.client(
        "s3",
        endpoint_url=provider["endpoint"],
        region_name=provider["region"],
        aws_access_key_id=provider["access_key"],
        aws_secret_access_key=provider["secret_key"],
        config=Config(retries={"max_attempts": 1}, connect_timeout=10, read_timeout=20, proxies={}),
    )

"""The events stories send, as MinIO would."""

from typing import Any


def minio_event(bucket: str, key: str) -> dict[str, Any]:
    record = {
        "eventSource": "minio:s3",
        "eventTime": "2026-01-02T03:04:05Z",
        "s3": {"bucket": {"name": bucket, "arn": f"arn:aws:s3:::{bucket}"}, "object": {"key": key}},
    }
    return {"EventName": "s3:ObjectCreated:Put", "Key": f"{bucket}/{key}", "Records": [record]}

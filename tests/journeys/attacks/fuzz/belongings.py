"""What a person has in a manager, and how all of it goes."""

from collections.abc import Collection

import httpx


def removed(client: httpx.Client, owner: str, keep: Collection[str] = ()) -> None:
    """Services first, for they hold volumes; `keep` are buckets that stay."""
    services = [one["name"] for one in client.get("/system/services").json() if one["owner"] == owner]
    gone = [client.delete(f"/system/services/{name}") for name in services]
    buckets = [one["bucket_name"] for one in client.get("/system/buckets").json() or [] if one["owner"] == owner]
    gone += [client.delete(f"/system/buckets/{name}") for name in buckets if name not in keep]
    volumes = [one["name"] for one in client.get("/system/volumes").json()]
    gone += [client.delete(f"/system/volumes/{name}") for name in volumes]
    assert all(answer.status_code == 204 for answer in gone), [answer.text for answer in gone]

"""`hansa bucket`: buckets, their objects, and who may see them."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from hansa.entrypoints.cli import confirmation, options, session, transfers, usage
from hansa.entrypoints.cli.client import Manager, mapping, segment, sequence
from hansa.entrypoints.cli.screen import Screen
from hansa.kernel import errors, quantities

app = typer.Typer(help="Buckets: list, create, share; put and get files.", no_args_is_help=True)
Target = Annotated[str, typer.Argument(metavar="BUCKET/PATH", help="The object; a path ending in / is a folder.")]
_MOST_PAGES = 10_000


@app.command("ls")
def list_buckets(cluster: options.Cluster = None, as_json: options.Json = False) -> None:
    """List the buckets you can see."""
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        buckets = sequence(manager.read("/system/buckets"), manager.name)
    screen.data(buckets)
    screen.table(
        ["bucket", "visibility", "owner", "allowed users"],
        [(b.get("bucket_name"), b.get("visibility"), b.get("owner"), b.get("allowed_users")) for b in buckets],
        empty="no buckets",
    )


@app.command()
def create(
    bucket: options.BucketName,
    public: Annotated[bool, typer.Option("--public", help="Everybody may use it.")] = False,
    users: Annotated[list[str] | None, typer.Option("--with", metavar="USER", help="Who else may use it.")] = None,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Make a bucket; private unless shared."""
    screen = Screen(as_json=as_json)
    body = _shared(bucket, public=public, users=users or [])
    with session.opened(cluster) as manager:
        manager.call("POST", "/system/buckets", body=body)
    screen.data(body)
    screen.line(f"created bucket {bucket} ({body['visibility']})")


@app.command()
def show(bucket: options.BucketName, cluster: options.Cluster = None, as_json: options.Json = False) -> None:
    """Show a bucket and the objects in it."""
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        found = _whole(manager, bucket)
    screen.data(found)
    objects = found["objects"]
    used = sum(int(item.get("size_bytes") or 0) for item in objects)
    screen.facts(
        [
            ("bucket", found.get("bucket_name")),
            ("visibility", found.get("visibility")),
            ("owner", found.get("owner")),
            ("allowed users", found.get("allowed_users")),
            ("objects", f"{len(objects)}, {_size(used)}"),
            ("closed for writing", found.get("closed_for_writing")),
        ]
    )
    screen.table(
        ["object", "size", "modified"],
        [(o.get("object_name"), _size(int(o.get("size_bytes") or 0)), o.get("last_modified")) for o in objects],
    )


@app.command("rm")
def remove(
    bucket: options.BucketName,
    yes: options.Yes = False,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Remove a bucket with everything in it."""
    screen = Screen(as_json=as_json)
    confirmation.require(f"remove bucket {bucket} with everything in it?", yes=yes)
    with session.opened(cluster) as manager:
        manager.call("DELETE", f"/system/buckets/{segment(bucket)}", what=f"bucket {bucket}", timeout=120)
    screen.data({"bucket": bucket, "action": "removed"})
    screen.line(f"removed bucket {bucket}")


@app.command()
def put(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to send.")],
    target: Target,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Send a file into a bucket."""
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        done = transfers.put(manager, file, target, screen)
        put_at = f"{done['bucket']}/{done['object']}"
        mistaken = is_input_folder(manager, put_at)
    screen.data(done)
    screen.line(f"{put_at}  {quantities.show_size(done['size_bytes'])}")
    if mistaken:
        screen.note(f"no job starts for this, for {put_at} is now also a file; did you mean {put_at}/ ?")


@app.command()
def get(
    target: Target,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; - is stdout.")] = Path(),
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Fetch a file from a bucket."""
    to_stdout = str(file) == "-"
    if to_stdout and as_json:
        raise typer.BadParameter("stdout cannot hold both the file and the JSON", param_hint="--json")
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        if to_stdout:
            bucket, key = transfers.split(target)
            transfers.fetch(manager, bucket, key, sys.stdout.buffer, screen)
            sys.stdout.buffer.flush()
            return
        done = transfers.get(manager, target, file, screen)
    screen.data(done)
    screen.line(f"{done['file']}  {quantities.show_size(done['size_bytes'])}")


@app.command()
def share(
    bucket: options.BucketName,
    *,
    users: Annotated[list[str] | None, typer.Option("--with", metavar="USER", help="Also this user.")] = None,
    without: Annotated[list[str] | None, typer.Option("--without", metavar="USER", help="No longer.")] = None,
    public: Annotated[bool, typer.Option("--public", help="Everybody may use it.")] = False,
    private: Annotated[bool, typer.Option("--private", help="Only the owner may use it.")] = False,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Change who may use a bucket."""
    if public and private:
        raise usage.Misused("--public and --private contradict each other: give one of them")
    if sum((bool(users or without), public, private)) != 1:
        raise typer.BadParameter("give --with or --without USER, or --public, or --private", param_hint="--with")
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        allowed: list[str] = []
        if users or without:
            found = mapping(manager.read(f"/system/buckets/{segment(bucket)}", what=f"bucket {bucket}"), manager.name)
            allowed = [*(found.get("allowed_users") or []), *(users or [])]
            allowed = [user for user in dict.fromkeys(allowed) if user not in (without or [])]
        body = _shared(bucket, public=public, users=allowed)
        manager.call("PUT", "/system/buckets", body=body, what=f"bucket {bucket}")
    screen.data(body)
    listed = f": {', '.join(allowed)}" if allowed else ""
    screen.line(f"bucket {bucket} is {body['visibility']}{listed}")


def _shared(bucket: str, *, public: bool, users: list[str]) -> dict[str, Any]:
    visibility = "public" if public else ("restricted" if users else "private")
    return {"bucket_name": bucket, "visibility": visibility, "allowed_users": users}


def _whole(manager: Manager, bucket: str) -> dict[str, Any]:
    """The bucket with the objects of all pages."""
    whole: dict[str, Any] = {}
    objects: list[dict[str, Any]] = []
    page = ""
    for _ in range(_MOST_PAGES):
        params = {"page": page} if page else {}
        answer = manager.read(f"/system/buckets/{segment(bucket)}", what=f"bucket {bucket}", **params)
        part = mapping(answer, manager.name)
        whole = whole or part
        objects += sequence(part.get("objects"), manager.name)
        following = part.get("next_page") or ""
        if not part.get("is_truncated") or not following or following == page:
            break
        page = str(following)
    paging = ("objects", "next_page", "is_truncated", "returned_items")
    return {**{key: value for key, value in whole.items() if key not in paging}, "objects": objects}


def is_input_folder(manager: Manager, path: str) -> bool:
    """Whether uploads into a folder of this name start jobs; where nobody can tell, none is noted."""
    try:
        services = sequence(manager.read("/system/services"), manager.name)
    except errors.HansaError:
        return False
    return any(str(one.get("path", "")).strip(" /") == path for s in services for one in s.get("input") or ())


def _size(count: int) -> str:
    shown = quantities.show_size(count)
    return f"{shown} B" if shown.isdecimal() else shown

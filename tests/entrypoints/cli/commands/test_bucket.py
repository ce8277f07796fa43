"""Files travel by presigned links, whole, without the manager's credentials."""

from pathlib import Path

from entrypoints.cli.small_server import Hansa, SmallServer

PRESIGN = "POST /system/buckets/data/presign"


def test_put_streams_a_file_with_its_length(admin: SmallServer, hansa: Hansa, tmp_path: Path) -> None:
    content = bytes(range(256)) * 12_000
    (tmp_path / "big.bin").write_bytes(content)
    link = {"method": "PUT", "url": f"{admin.url}/s3/put?sig=hush", "headers": {"Host": "x", "X-Extra": "1"}}
    admin.on(PRESIGN, link).on("PUT /s3/put", b"")
    ran = hansa("bucket", "put", "big.bin", "data/in/", "--json")
    assert ran.json() == {"bucket": "data", "object": "in/big.bin", "size_bytes": len(content)}, ran.err
    (upload,) = admin.calls("PUT")
    assert upload.body == content
    assert upload.headers["content-length"] == str(len(content))
    assert upload.headers["x-extra"] == "1"
    assert "authorization" not in upload.headers
    assert admin.calls("POST")[0].json() == {"object_key": "in/big.bin", "operation": "upload", "expires_in": 3600}


def test_get_writes_the_file_only_when_it_is_whole(admin: SmallServer, hansa: Hansa, tmp_path: Path) -> None:
    admin.on(PRESIGN, {"method": "GET", "url": f"{admin.url}/s3/get"}).on("GET /s3/get", b"content")
    assert hansa("bucket", "get", "data/out/result.txt").out == "result.txt  7\n"
    assert (tmp_path / "result.txt").read_bytes() == b"content"
    assert hansa("bucket", "get", "data/out/result.txt", "-").out == "content"


def test_a_cut_download_leaves_nothing(admin: SmallServer, hansa: Hansa, tmp_path: Path) -> None:
    admin.on(PRESIGN, {"method": "GET", "url": f"{admin.url}/s3/get?sig=hush"})
    admin.on("GET /s3/get", b"half", Content_Length="8", Connection="close")
    ran = hansa("bucket", "get", "data/x", "x")
    assert ran.code == 6
    assert "hush" not in ran.err
    assert [item.name for item in tmp_path.iterdir()] == []


def test_a_missing_object(admin: SmallServer, hansa: Hansa, tmp_path: Path) -> None:
    admin.on(PRESIGN, {"method": "GET", "url": f"{admin.url}/s3/none"})
    ran = hansa("bucket", "get", "data/x", "x")
    assert (ran.code, ran.err.splitlines()[0]) == (4, "error: there is no data/x in the storage")
    assert hansa("bucket", "put", "nothing.txt", "data/").code == 1
    assert hansa("bucket", "get", "data").code == 1


def test_show_reads_every_page(admin: SmallServer, hansa: Hansa) -> None:
    first = {"bucket_name": "data", "visibility": "private", "objects": [{"object_name": "a", "size_bytes": 2048}]}
    admin.on("GET /system/buckets/data", {**first, "next_page": "n", "is_truncated": True, "returned_items": 1})
    admin.on("GET /system/buckets/data", {**first, "is_truncated": False, "returned_items": 1})
    assert len(hansa("bucket", "show", "data", "--json").json()["objects"]) == 2
    assert [seen.query for seen in admin.seen] == [{}, {"page": "n"}]
    assert "2Ki" in hansa("bucket", "show", "data").out


def test_sizes_have_a_unit(admin: SmallServer, hansa: Hansa) -> None:
    small = {"bucket_name": "data", "visibility": "private", "objects": [{"object_name": "a", "size_bytes": 71}]}
    admin.on("GET /system/buckets/data", small)
    shown = hansa("bucket", "show", "data").out
    assert "1, 71 B" in shown
    assert shown.splitlines()[-1].split()[:3] == ["a", "71", "B"]


def test_a_file_put_in_place_of_an_input_folder_is_noted(admin: SmallServer, hansa: Hansa, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    admin.on(PRESIGN, {"method": "PUT", "url": f"{admin.url}/s3/put"}).on("PUT /s3/put", b"")
    assert hansa("bucket", "put", "a.txt", "data/in").err == ""  # nobody tells of services here
    admin.on("GET /system/services", [{"name": "plain"}, {"name": "data", "input": [{"path": "data/in"}]}])
    ran = hansa("bucket", "put", "a.txt", "data/in")
    assert (ran.code, ran.out) == (0, "data/in  1\n")
    assert ran.err == "no job starts for this, for data/in is now also a file; did you mean data/in/ ?\n"
    assert hansa("bucket", "put", "a.txt", "data/in/").err == ""
    assert hansa("bucket", "put", "a.txt", "data/other").err == ""


def test_sharing(admin: SmallServer, hansa: Hansa) -> None:
    admin.on("GET /system/buckets", b"null")
    assert hansa("bucket", "ls", "--json").json() == []
    admin.on("GET /system/buckets/data", {"bucket_name": "data", "allowed_users": ["a", "b"]})
    admin.on("PUT /system/buckets", b"", status=204).on("POST /system/buckets", b"", status=201)
    assert hansa("bucket", "create", "data").code == 0
    assert hansa("bucket", "share", "data", "--with", "c", "--without", "a").code == 0
    assert hansa("bucket", "share", "data", "--public").code == 0
    assert hansa("bucket", "share", "data").code == 2
    both = hansa("bucket", "share", "data", "--public", "--private")
    assert both.err.startswith("error: --public and --private contradict each other")
    assert [(seen.json()["visibility"], seen.json()["allowed_users"]) for seen in admin.calls("PUT")] == [
        ("restricted", ["b", "c"]), ("public", [])
    ]  # fmt: skip
    assert admin.calls("POST")[0].json() == {"bucket_name": "data", "visibility": "private", "allowed_users": []}

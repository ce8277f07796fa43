"""The life of a job: accepted, queued, run, read, paged, deleted; started by a request or by an upload."""

import base64
import json
import re
from typing import Any

import httpx
import pytest

from journeys.conftest import FreshName, MakeService
from journeys.events import minio_event
from journeys.waiting import all_jobs, ended_jobs, eventually, run_job
from real.identity_provider import IdentityProvider
from real.manager import Manager, StartManager, trusting
from real.postgres import Database

MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


def upload(client: httpx.Client, bucket: str, key: str, content: bytes) -> None:
    """Through a link, as the dashboard does it."""
    link = client.post(f"/system/buckets/{bucket}/presign", json={"object_key": key, "operation": "upload"})
    assert link.status_code == 200, link.text
    assert httpx.put(link.json()["url"], content=content, trust_env=False).status_code == 200


def download(client: httpx.Client, bucket: str, key: str) -> bytes | None:
    link = client.post(f"/system/buckets/{bucket}/presign", json={"object_key": key, "operation": "download"})
    assert link.status_code == 200, link.text
    answer = httpx.get(link.json()["url"], trust_env=False)
    return answer.content if answer.status_code == 200 else None


def test_an_accepted_job_runs_and_can_be_read(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(alice, "cat $INPUT_FILE_PATH; echo; echo to stderr >&2")
    accepted = alice.post(f"/job/{name}", content=base64.b64encode(b"hello job"))
    assert (accepted.status_code, accepted.content) == (201, b"")
    [(job, shown)] = ended_jobs(alice, name, 1).items()
    assert job == accepted.headers["x-hansa-job"]
    assert re.fullmatch(f"{name}-[0-9a-f-]{{36}}", job)
    assert list(shown) == ["status", "creation_time", "start_time", "finish_time"]
    assert shown["status"] == "Succeeded"
    assert all(re.fullmatch(MOMENT, shown[key]) for key in list(shown)[1:])
    log = alice.get(f"/system/logs/{name}/{job}")
    assert log.headers["content-type"].startswith("text/plain")
    assert "hello job" in log.text
    assert "to stderr" in log.text
    dated = alice.get(f"/system/logs/{name}/{job}", params={"timestamps": "true"}).text
    assert re.search(r"^\d{4}-\d\d-\d\dT[\d:.]+Z .*hello job", dated, re.MULTILINE)


def test_a_long_service_name_is_cut_in_its_jobs_names(
    make_service: MakeService, alice: httpx.Client, fresh_name: FreshName
) -> None:
    long = (fresh_name("a-name-of-twenty-five-and-more") + "x" * 30)[:30]
    make_service(alice, "true", name=long)
    job = alice.post(f"/job/{long}").headers["x-hansa-job"]
    assert re.fullmatch(f"{re.escape(long[:16])}-[0-9a-f-]{{36}}", job)


def test_the_list_of_jobs_is_a_python_literal(make_service: MakeService, alice: httpx.Client) -> None:
    """Existing tooling evaluates it: no null, true or false anywhere, even while jobs wait and run."""
    name = make_service(alice, "sleep 0.3")
    assert alice.get(f"/system/logs/{name}").text == '{"jobs":{}}'
    for _ in range(2):
        alice.post(f"/job/{name}")

    def finished() -> bool:
        text = alice.get(f"/system/logs/{name}").text
        assert not re.search("null|true|false", text)
        return text.count("finish_time") == 2

    eventually(finished)


def test_a_failing_script_makes_a_failed_job(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(alice, "echo before the end; exit 3")
    job = alice.post(f"/job/{name}").headers["x-hansa-job"]
    assert ended_jobs(alice, name, 1)[job]["status"] == "Failed"
    assert "before the end" in alice.get(f"/system/logs/{name}/{job}").text


def test_jobs_come_in_pages(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(alice, "true")
    sent = [alice.post(f"/job/{name}").headers["x-hansa-job"] for _ in range(7)]
    assert set(ended_jobs(alice, name, 7)) == set(sent)
    pages, page = [], ""
    while True:
        body = alice.get(f"/system/logs/{name}", params={"page": page}).json()
        pages.append(list(body["jobs"]))
        if "next_page" not in body:
            assert "remaining_jobs" not in body
            break
        assert list(body) == ["jobs", "next_page", "remaining_jobs"]
        assert body["remaining_jobs"] == 7 - sum(map(len, pages))
        page = body["next_page"]
    assert [len(jobs) for jobs in pages] == [3, 3, 1]
    assert [job for jobs in pages for job in jobs] == sent[::-1]  # newest first, none twice
    assert alice.get(f"/system/logs/{name}", params={"page": "nonsense"}).status_code == 400


def test_jobs_are_deleted_one_by_one_or_all_together(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(alice, '[ "$(cat $INPUT_FILE_PATH)" = stay ] && exec sleep 1000 || true')
    done = [alice.post(f"/job/{name}", content=base64.b64encode(b"go")).headers["x-hansa-job"] for _ in range(3)]
    ended_jobs(alice, name, 3)
    staying = alice.post(f"/job/{name}", content=base64.b64encode(b"stay")).headers["x-hansa-job"]
    eventually(lambda: all_jobs(alice, name)[staying]["status"] == "Running")
    answer = alice.delete(f"/system/logs/{name}/{done[0]}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert alice.get(f"/system/logs/{name}/{done[0]}").status_code == 404
    assert alice.delete(f"/system/logs/{name}/{done[0]}").status_code == 404
    assert alice.delete(f"/system/logs/{name}").status_code == 204  # the finished ones
    assert list(all_jobs(alice, name)) == [staying]
    assert alice.delete(f"/system/logs/{name}", params={"all": "true"}).status_code == 204
    assert all_jobs(alice, name) == {}


def test_a_job_that_waits_has_no_log_yet_and_says_why(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(alice, "true", cpu="64")  # as much as the cluster has, and far more than she may use at a time
    first = make_service(alice, "exec sleep 1000", cpu="1")
    alice.post(f"/job/{first}")
    eventually(lambda: "Running" in str(all_jobs(alice, first)))
    waiting = alice.post(f"/job/{name}").headers["x-hansa-job"]
    assert list(all_jobs(alice, name)[waiting]) == ["status", "creation_time"]
    assert all_jobs(alice, name)[waiting]["status"] == "Pending"
    why = "of your quota of"
    answer = alice.get(f"/system/logs/{name}/{waiting}")
    assert answer.status_code == 404
    assert why in answer.text
    assert why in alice.get(f"/v1/jobs/{waiting}").json()["reason"]
    assert alice.delete(f"/system/logs/{first}", params={"all": "true"}).status_code == 204
    assert ended_jobs(alice, name, 1)[waiting]["status"] == "Succeeded"


def test_logs_of_what_is_not_there(make_service: MakeService, alice: httpx.Client, bob: httpx.Client) -> None:
    name, other = make_service(alice), make_service(alice)
    job = alice.post(f"/job/{other}").headers["x-hansa-job"]
    for method in ("GET", "DELETE"):
        assert alice.request(method, "/system/logs/not-there").status_code == 404
        assert alice.request(method, f"/system/logs/{name}/{name}-1").status_code == 404
        assert alice.request(method, f"/system/logs/{name}/{job}").status_code == 404  # another service's job
        assert bob.request(method, f"/system/logs/{name}").status_code == 403


def test_everybody_sees_their_own_jobs_only(
    make_service: MakeService, alice: httpx.Client, bob: httpx.Client, admin: httpx.Client
) -> None:
    name = make_service(alice, "cat $INPUT_FILE_PATH", visibility="public")
    mine = alice.post(f"/job/{name}", content="alice").headers["x-hansa-job"]
    his = bob.post(f"/job/{name}", content="bob").headers["x-hansa-job"]
    ended_jobs(admin, name, 2)
    assert set(all_jobs(alice, name)) == {mine}
    assert set(all_jobs(bob, name)) == {his}
    for method in ("GET", "DELETE"):
        assert alice.request(method, f"/system/logs/{name}/{his}").status_code == 404
        assert bob.request(method, f"/system/logs/{name}/{mine}").status_code == 404
    assert bob.delete(f"/system/logs/{name}", params={"all": "true"}).status_code == 204
    assert set(all_jobs(admin, name)) == {mine}


def test_a_service_token_starts_jobs_for_the_owner(
    make_service: MakeService, alice: httpx.Client, manager: Manager
) -> None:
    name = make_service(alice, "cat $INPUT_FILE_PATH")
    token = alice.get(f"/system/services/{name}").json()["token"]
    assert "by token" in run_job(manager.bearer(token), name, b"by token", owner=alice)
    assert manager.bearer("0" * 64).post(f"/job/{name}").status_code == 401
    assert manager.bearer(token).post("/job/not-there").status_code == 401
    assert alice.post("/job/not-there").status_code == 404


def test_a_delegated_job_keeps_its_name_and_runs_once(make_service: MakeService, alice: httpx.Client) -> None:
    name, other = make_service(alice, "true"), make_service(alice, "true")
    wanted = {"X-Delegated-Job-ID": f"{name}-given"}
    for _ in range(2):
        answer = alice.post(f"/job/{name}", headers=wanted)
        assert (answer.status_code, answer.headers["x-hansa-job"]) == (201, f"{name}-given")
    assert list(ended_jobs(alice, name, 1)) == [f"{name}-given"]
    assert alice.post(f"/job/{other}", headers=wanted).status_code == 409
    assert alice.post(f"/job/{name}", headers={"X-Delegated-Job-ID": "../x"}).status_code == 400


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        (base64.b64encode(b"plain text"), b"plain text"),
        (b'{"any": "json"}', b'{"any": "json"}'),
        (b"not base64!", b"not base64!"),
        (base64.b64encode(bytes(range(256))), bytes(range(256))),
        (b"", b""),
        (b"key=value&other=1", b"key=value&other=1"),
    ],
)
def test_the_script_finds_its_input(make_service: MakeService, alice: httpx.Client, sent: bytes, found: bytes) -> None:
    name = make_service(alice, 'echo "<$(base64 -w0 $INPUT_FILE_PATH)>"')
    assert f"<{base64.b64encode(found).decode()}>" in run_job(alice, name, sent)


def test_what_the_script_finds_in_its_environment(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(
        alice,
        'for v in OSCAR_SERVICE_NAME JOB_UUID EVENT GREETING SECRET; do eval "echo $v=\\$$v"; done\n'
        "ls -d $TMP_INPUT_DIR $TMP_OUTPUT_DIR; cat /oscar/config/function_config.yaml",
        environment={"variables": {"GREETING": "a b'c\"$d"}, "secrets": {"SECRET": "s3cr3t"}},
    )
    log = run_job(alice, name, b'{"an":"event"}')
    assert f"OSCAR_SERVICE_NAME={name}" in log
    assert f"JOB_UUID={name}-" in log
    assert 'EVENT={"an":"event"}' in log
    assert "GREETING=a b'c\"$d" in log
    assert "SECRET=s3cr3t" in log
    assert f"name: {name}" in log


def test_an_upload_starts_a_job_and_its_output_comes_back(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(
        alice,
        'echo "got $STORAGE_OBJECT_KEY"; tr a-z A-Z <"$INPUT_FILE_PATH" >"$TMP_OUTPUT_DIR/${INPUT_FILE_PATH##*/}.up"\n'
        "echo skipped >$TMP_OUTPUT_DIR/other.log",
        input=[{"storage_provider": "minio", "path": "in"}],
        output=[{"storage_provider": "minio", "path": "out", "suffix": [".up"]}],
    )
    upload(alice, name, "in/a file+1.txt", b"loud")
    upload(alice, name, "elsewhere/x.txt", b"nobody listens")
    [job] = ended_jobs(alice, name, 1)
    assert f"got {name}/in/a file+1.txt" in alice.get(f"/system/logs/{name}/{job}").text
    assert download(alice, name, "out/a file+1.txt.up") == b"LOUD"
    assert download(alice, name, "out/other.log") is None
    upload(alice, name, "in/a file+1.txt", b"again")  # a new version is a new job
    ended_jobs(alice, name, 2)
    assert download(alice, name, "out/a file+1.txt.up") == b"AGAIN"


def test_a_minio_event_by_hand_does_what_an_upload_does(
    make_service: MakeService, alice: httpx.Client, fresh_name: FreshName
) -> None:
    bucket = fresh_name("hand")
    assert alice.post("/system/buckets", json={"bucket_name": bucket}).status_code == 201
    upload(alice, bucket, "some/in.txt", b"from the bucket")
    name = make_service(alice, 'cat $INPUT_FILE_PATH; echo; echo "key $STORAGE_OBJECT_KEY"')
    assert "from the bucket" in (log := run_job(alice, name, json.dumps(minio_event(bucket, "some/in.txt")).encode()))
    assert f"key {bucket}/some/in.txt" in log
    wrapped = {"storage_provider": "minio.default", "event": json.dumps(minio_event(bucket, "some/in.txt"))}
    assert "from the bucket" in run_job(alice, name, json.dumps(wrapped).encode())
    assert alice.delete(f"/system/buckets/{bucket}").status_code == 204


def test_the_execution_log_tells_of_jobs_and_runs(
    make_service: MakeService, alice: httpx.Client, admin: httpx.Client
) -> None:
    name = make_service(alice, "true")
    run_job(alice, name)
    assert alice.post(f"/run/{name}").status_code == 200

    def lines() -> list[dict[str, Any]]:
        logs: list[dict[str, Any]] = admin.get("/system/logs").json()["logs"]
        mine = [line for line in logs if line["path"].endswith(f"/{name}")]
        return mine if len(mine) == 2 else []

    entries = {line["path"]: line for line in eventually(lines)}
    assert list(entries) == [f"/run/{name}", f"/job/{name}"] or list(entries) == [f"/job/{name}", f"/run/{name}"]
    job = entries[f"/job/{name}"]
    assert list(job) == ["timestamp", "status", "latency", "client_ip", "method", "path", "user", "raw"]
    assert (job["status"], job["method"], job["user"], job["client_ip"]) == (201, "POST", "alice@test", "127.0.0.1")
    assert job["raw"].startswith("[GIN-EXECUTIONS-LOGGER] ")
    assert f" | POST /job/{name} | alice@test" in job["raw"]


def test_nothing_accepted_is_lost_when_the_manager_dies(
    start_manager: StartManager, sign_in_provider: IdentityProvider, postgres_database: Database
) -> None:
    """Services, buckets, running and waiting jobs survive SIGKILL; `faults/` tells many more such stories."""
    own = start_manager({**trusting(sign_in_provider), "jobs.cpu": "1"}, database=postgres_database.url)
    client = own.bearer(sign_in_provider.token("alice"))
    definition = {
        "name": "lasting",
        "image": "debian",
        "cpu": "1",
        "memory": "64Mi",
        "script": "[ -e /data/go ] || { touch /data/go; echo here; exec sleep 1000; }\n"
        "echo done >$TMP_OUTPUT_DIR/$JOB_UUID",
        "volume": {"size": "1Gi", "mount_path": "/data"},
        "output": [{"storage_provider": "minio", "path": "out"}],
        "environment": {"secrets": {"KEY": "kept"}},
    }
    assert client.post("/system/services", json=definition).status_code == 201
    before = client.get("/system/services/lasting").content
    jobs = [client.post("/job/lasting").headers["x-hansa-job"] for _ in range(3)]
    eventually(lambda: all_jobs(client, "lasting")[jobs[0]]["status"] == "Running")
    eventually(lambda: "here" in client.get(f"/system/logs/lasting/{jobs[0]}").text)
    own.kill()
    own.start()
    assert client.get("/system/services/lasting").content == before
    after = ended_jobs(client, "lasting", 3)
    assert {job: shown["status"] for job, shown in after.items()} == dict.fromkeys(jobs, "Succeeded")
    for job in jobs:
        assert download(client, "lasting", f"out/{job}") == b"done\n"
    assert own.stop() == 0

"""A synchronous run: the caller waits, and the answer is what the script made."""

import base64
import io
import itertools
import zipfile
from concurrent.futures import ThreadPoolExecutor

import httpx

from journeys.conftest import MakeService
from journeys.waiting import eventually
from real.manager import Manager, StartManager


def test_one_output_file_comes_back_as_base64(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(alice, "rev <$INPUT_FILE_PATH >$TMP_OUTPUT_DIR/result; echo chatter")
    answer = alice.post(f"/run/{name}", content=base64.b64encode(b"abc\n"))
    assert answer.status_code == 200
    assert base64.b64decode(answer.text, validate=True) == b"cba\n"


def test_several_output_files_come_back_as_a_base64_zip(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(alice, "cd $TMP_OUTPUT_DIR; mkdir deep; echo 1 >one; echo 2 >deep/two")
    answer = alice.post(f"/run/{name}")
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(answer.text, validate=True))) as packed:
        found = {entry: packed.read(entry) for entry in packed.namelist() if not entry.endswith("/")}
    assert found == {"one": b"1\n", "deep/two": b"2\n"}


def test_without_output_files_the_answer_is_what_was_printed(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(alice, "echo out; echo err >&2; cat $INPUT_FILE_PATH")
    answer = alice.post(f"/run/{name}", content=b'{"raw":"json"}')
    assert (answer.status_code, answer.text) == (200, 'out\nerr\n{"raw":"json"}')


def test_a_failing_script_is_a_502_with_its_output(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(alice, "echo what went wrong; exit 7")
    answer = alice.post(f"/run/{name}")
    assert (answer.status_code, answer.text) == (502, "what went wrong\n")
    assert answer.headers["x-hansa-exit-code"] == "7"
    silent = make_service(alice, "exit 1")
    answer = alice.post(f"/run/{silent}")
    assert answer.status_code == 502
    assert answer.text.strip()  # it says why, even if the script said nothing


def test_a_run_leaves_no_job_behind(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(alice, "echo once")
    assert alice.post(f"/run/{name}").text == "once\n"
    assert alice.get(f"/system/logs/{name}").text == '{"jobs":{}}'


def test_a_service_token_runs_its_own_service_only(
    make_service: MakeService, alice: httpx.Client, manager: Manager
) -> None:
    name, other = make_service(alice, "echo mine"), make_service(alice, "echo other")
    client = manager.bearer(alice.get(f"/system/services/{name}").json()["token"])
    assert client.post(f"/run/{name}").text == "mine\n"
    assert client.post(f"/run/{other}").status_code == 401
    assert manager.admin.post(f"/run/{name}").status_code == 401  # Basic starts nothing


def test_warm_workers_answer_and_share_nothing(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(
        alice,
        'ls /tmp | wc -l; touch /tmp/was-here; cat $INPUT_FILE_PATH; echo " $JOB_UUID $GREETING"',
        synchronous={"min_scale": 2, "max_scale": 3},
        environment={"variables": {"GREETING": "hej"}},
    )
    shown = alice.get(f"/system/services/{name}/deployment").json()
    assert (shown["resource_kind"], shown["active_instances"]) == ("knative_service", 2)
    answers = [alice.post(f"/run/{name}", content=f"call {number}").text.split() for number in range(4)]
    assert [(first, number, greeting) for first, _, number, _, greeting in answers] == [
        ("0", str(number), "hej") for number in range(4)
    ]
    assert len({job for *_, job, _ in answers}) == 4
    changed = alice.get(f"/system/services/{name}").json()
    changed["environment"]["variables"]["GREETING"] = "moin"
    assert alice.put("/system/services", json=changed).status_code == 204
    assert alice.post(f"/run/{name}").text.split()[-1] == "moin"  # no worker of the old version is left


def together(client: httpx.Client, service: str) -> list[tuple[float, float]]:
    """When each of three simultaneous runs began and ended."""

    def call(_: int) -> tuple[float, float]:
        answer = client.post(f"/run/{service}")
        assert answer.status_code == 200, answer.text
        began, ended = answer.text.split()
        return float(began), float(ended)

    with ThreadPoolExecutor(3) as pool:
        return sorted(pool.map(call, range(3)))


def test_max_scale_bounds_how_many_run_at_once(make_service: MakeService, alice: httpx.Client) -> None:
    script = "date +%s.%N; sleep 0.4; date +%s.%N"
    one_by_one = together(alice, make_service(alice, script, synchronous={"max_scale": 1}))
    assert all(ended <= began for (_, ended), (began, _) in itertools.pairwise(one_by_one))
    free = together(alice, make_service(alice, script))
    assert free[1][0] < free[0][1]  # the second began while the first ran


def test_a_run_that_takes_too_long_is_ended(start_manager: StartManager) -> None:
    own = start_manager({"jobs.run_limit": 1})
    definition = {"name": "slow", "image": "debian", "script": "echo started; exec sleep 1000"}
    assert own.admin.post("/system/services", json=definition).status_code == 201
    client = own.bearer(own.admin.get("/system/services/slow").json()["token"])
    answer = client.post("/run/slow")
    assert answer.status_code in (502, 503, 504)
    assert answer.text.strip()
    node = eventually(lambda: own.admin.get("/v1/node").json())
    eventually(lambda: own.admin.get("/v1/node").json()["promised"] == {"cpu": 0, "memory": 0}, what=str(node))


def test_a_script_that_runs_out_of_memory_says_so(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(alice, "tail /dev/zero", memory="64Mi")
    answer = alice.post(f"/run/{name}")
    assert answer.status_code == 502
    assert answer.headers["x-hansa-reason"] == "out of memory: used more than 64Mi"

"""What every engine must do for jobs: the suite for `JobHost` and `JobLogs`.

A driver's test module subclasses it and offers the fixtures `host`, `logs`, `store` (the cluster's own) and
`bucket` (a fresh one in it); `object_store` is the same store, opened with all it offers.
"""

import asyncio
import re
from dataclasses import replace

import pytest
import yaml

from contracts.orders import MIB, order
from hansa.drivers.s3 import OpenStore
from hansa.kernel.errors import NotFound
from hansa.services import JobHost, JobLogs, StorageIO, events
from hansa.services.service import Environment
from hansa.storage import NOTHING, ObjectStore

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z ")


def uploaded(bucket: str, key: str) -> bytes:
    return events.minio_event(bucket, key, size=1, etag="e", at=1_700_000_000)


async def keys_of(store: ObjectStore, bucket: str) -> list[str]:
    page = await store.list(bucket)
    return [each.key for each in page.objects]


async def log_of(logs: JobLogs, name: str) -> str:
    text = await logs.read(name, timestamps=False)
    assert text is not None
    return text


class JobHostContract:
    async def test_bytes_go_in_and_files_come_out(self, host: JobHost, store: ObjectStore, bucket: str) -> None:
        job = order(
            'tr a-z A-Z < "$INPUT_FILE_PATH" > "$TMP_OUTPUT_DIR/loud.txt"',
            event=b"aGVsbG8=",
            output=(StorageIO(storage_provider="minio.default", path=f"{bucket}/out"),),
        )
        outcome = await host.run(job)
        assert (outcome.succeeded, outcome.exit_code, outcome.reason) == (True, 0, "")
        assert await store.get(bucket, "out/loud.txt") == b"HELLO"

    @pytest.mark.parametrize("name", ["plain.txt", "my file+ä.txt", "日本.bin"])
    async def test_an_upload_is_the_input(
        self, host: JobHost, logs: JobLogs, store: ObjectStore, bucket: str, name: str
    ) -> None:
        await store.put(bucket, f"in/{name}", b"content")
        job = order(
            'basename "$INPUT_FILE_PATH"; cat "$INPUT_FILE_PATH"; echo; echo "$STORAGE_OBJECT_KEY $EVENT_TIME"',
            event=uploaded(bucket, f"in/{name}"),
        )
        assert (await host.run(job)).succeeded
        said = await log_of(logs, job.name)
        assert f"{name}\ncontent\n{bucket}/in/{name} 2023-11-14T22:13:20Z\n" in said

    async def test_an_input_that_is_gone_fails_the_job(self, host: JobHost, bucket: str) -> None:
        outcome = await host.run(order("echo never", event=uploaded(bucket, "in/gone.txt")))
        assert not outcome.succeeded
        assert "gone.txt" in outcome.reason

    async def test_every_output_takes_what_its_filters_let_through(
        self, host: JobHost, store: ObjectStore, bucket: str
    ) -> None:
        job = order(
            'cd "$TMP_OUTPUT_DIR"; mkdir -p deep/er; echo 1 > result.csv; echo 2 > result.txt; '
            'echo 3 > deep/er/other.csv; echo 4 > "mit ümläut.txt"',
            output=(
                StorageIO(storage_provider="minio.default", path=f"{bucket}/all"),
                StorageIO(storage_provider="minio", path=f"{bucket}/csv", suffix=(".csv", ".tsv")),
                StorageIO(
                    storage_provider="minio.default",
                    path=f"{bucket}/res",
                    prefix=("result",),
                    suffix=(".txt",),
                ),
            ),
        )
        assert (await host.run(job)).succeeded
        assert set(await keys_of(store, bucket)) == {
            "all/deep/er/other.csv",
            "all/mit ümläut.txt",
            "all/result.csv",
            "all/result.txt",
            "csv/deep/er/other.csv",
            "csv/result.csv",
            "res/result.txt",
        }

    async def test_outputs_that_the_script_closed_are_stored_too(
        self, host: JobHost, store: ObjectStore, bucket: str
    ) -> None:
        job = order(
            'cd "$TMP_OUTPUT_DIR"; echo 1 > ok; echo 2 > closed; mkdir in out; echo 3 > in/below; echo 4 > out/below; '
            "ln -s ok link; chmod 000 closed in out/below; chmod 400 out; chmod 000 . || true",  # not its own in a pod
            output=(StorageIO(storage_provider="minio.default", path=f"{bucket}/o"),),
        )
        outcome = await host.run(job)
        assert (outcome.succeeded, outcome.reason) == (True, "")
        assert set(await keys_of(store, bucket)) == {"o/ok", "o/closed", "o/in/below", "o/out/below"}
        assert await store.get(bucket, "o/closed") == b"2\n"

    async def test_a_user_of_an_isolated_service_finds_results_in_their_own_bucket(
        self, host: JobHost, store: ObjectStore, bucket: str
    ) -> None:
        await store.put(bucket, "in/a.txt", b"a")
        job = order(
            'cp "$INPUT_FILE_PATH" "$TMP_OUTPUT_DIR"',
            event=uploaded(bucket, "in/a.txt"),
            isolation_level="USER",
            bucket_list=(bucket,),
            output=(StorageIO(storage_provider="minio.default", path="shared/out"),),
        )
        assert (await host.run(job)).succeeded
        assert await store.get(bucket, "out/a.txt") == b"a"

    async def test_outputs_go_with_keys_that_were_replaced_while_it_ran(
        self, host: JobHost, store: ObjectStore, bucket: str, object_store: OpenStore
    ) -> None:
        """Its data is at another cluster, which took the job back and gave it to us once more."""
        plain = order(
            'echo 1 > "$TMP_OUTPUT_DIR/x"', output=(StorageIO(storage_provider="minio.default", path=f"{bucket}/out"),)
        )
        loans = object_store.loans
        assert loans is not None
        first, second = f"{plain.name} 1", f"{plain.name} 2"
        lent = {"minio.default": store.address.with_keys(await loans.lend(first, plain.reach))}
        held = dict(lent)

        async def taken_back_and_given_again() -> bool:
            await loans.end(first)
            held["minio.default"] = store.address.with_keys(await loans.lend(second, plain.reach))
            return True

        job = replace(
            plain,
            providers=lent,
            lent=frozenset(lent),
            vouched=frozenset(lent),
            reach=NOTHING,
            may_publish=taken_back_and_given_again,
            newest=lambda: held["minio.default"],
        )
        outcome = await host.run(job)
        await loans.end(second)
        assert (outcome.succeeded, outcome.reason) == (True, "")
        assert await store.get(bucket, "out/x") == b"1\n"

    async def test_a_failing_script_fails_its_job_and_stores_nothing(
        self, host: JobHost, logs: JobLogs, store: ObjectStore, bucket: str
    ) -> None:
        job = order(
            'echo half > "$TMP_OUTPUT_DIR/half.txt"; echo broken >&2; exit 7',
            output=(StorageIO(storage_provider="minio.default", path=f"{bucket}/out"),),
        )
        outcome = await host.run(job)
        assert (outcome.succeeded, outcome.exit_code, outcome.reason) == (False, 7, "exit code 7")
        assert await keys_of(store, bucket) == []
        said = await log_of(logs, job.name)
        assert "broken\n" in said
        assert "not stored" in said

    async def test_time_and_memory_are_bounded(self, host: JobHost) -> None:
        slow = await host.run(order("sleep 60", seconds=1))
        assert (slow.succeeded, slow.reason) == (False, "time limit of 1 s reached")
        greedy = await host.run(order("head -c 300m /dev/zero | tail > /dev/null", memory=32 * MIB))
        assert (greedy.succeeded, greedy.reason) == (False, "out of memory: used more than 32Mi")

    async def test_an_output_without_its_bucket_fails_the_job(self, host: JobHost) -> None:
        gone = StorageIO(storage_provider="minio.default", path="no-such-bucket-here/out")
        outcome = await host.run(order('echo x > "$TMP_OUTPUT_DIR/x"', output=(gone,)))
        assert not outcome.succeeded
        assert "could not be stored" in outcome.reason

    async def test_a_script_finds_its_variables_and_no_secret_of_ours(self, host: JobHost, logs: JobLogs) -> None:
        job = order(
            "env; echo ---; cat /oscar/config/function_config.yaml",
            event=b'{"some": "json"}',
            secrets={"API_KEY": "own secret 'of' the script"},
            environment=Environment(variables={"COLOUR": "blue $HOME"}, secrets={"API_KEY": "from the wire"}),
            storage_providers={
                "minio": {"default": {"endpoint": "http://e", "access_key": "AK1", "secret_key": "SK1"}}
            },
            providers={"s3.far": {"access_key": "AK2", "secret_key": "SK2"}},
        )
        assert (await host.run(job)).succeeded
        said = await log_of(logs, job.name)
        listed, _, rest = said.partition("---\n")
        variables = dict(line.split("=", 1) for line in listed.splitlines() if "=" in line)
        assert variables["COLOUR"] == "blue $HOME"
        assert variables["API_KEY"] == "own secret 'of' the script"
        assert variables["EVENT"] == '{"some": "json"}'
        assert variables["JOB_UUID"] == job.name
        assert variables["OSCAR_SERVICE_NAME"] == "tool"
        assert variables["OSCAR_SERVICE_TOKEN"] == "f" * 64
        assert variables["RESOURCE_ID"]
        for secret in ("AK1", "SK1", "AK2", "SK2", "from the wire"):
            assert secret not in said
        config = "\n".join(line for line in rest.splitlines() if not line.startswith("hansa "))
        assert yaml.safe_load(config)["name"] == "tool"

    async def test_a_large_event_is_a_file_and_no_variable(self, host: JobHost, logs: JobLogs) -> None:
        job = order('wc -c < "$INPUT_FILE_PATH"; echo "${EVENT-unset}"', event=b'{"a":"' + b"x" * 300_000 + b'"}')
        assert (await host.run(job)).succeeded
        assert "300008\nunset\n" in await log_of(logs, job.name)

    async def test_a_finished_run_is_not_repeated(
        self, host: JobHost, logs: JobLogs, store: ObjectStore, bucket: str
    ) -> None:
        job = order(
            'cat /proc/sys/kernel/random/uuid | tee "$TMP_OUTPUT_DIR/id"',
            output=(StorageIO(storage_provider="minio.default", path=f"{bucket}/out"),),
        )
        first = await host.run(job)
        before = await store.get(bucket, "out/id")
        assert await host.run(job) == first
        assert await store.get(bucket, "out/id") == before
        assert (await log_of(logs, job.name)).count(before.decode()) == 1

    async def test_a_cancelled_run_ends_and_may_be_discarded_twice(self, host: JobHost, logs: JobLogs) -> None:
        job = order("echo started; sleep 60", seconds=60)
        running = asyncio.create_task(host.run(job))
        async with asyncio.timeout(20):
            while "started\n" not in (await logs.read(job.name, timestamps=False) or ""):
                await asyncio.sleep(0.02)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        await host.discard(job.name)
        await host.discard(job.name)

    async def test_a_log_outlives_its_run_and_has_times(self, host: JobHost, logs: JobLogs) -> None:
        job = order("echo one; printf 'two \\377 half'")
        await host.run(job)
        await host.discard(job.name)
        said = await logs.read(job.name, timestamps=True)
        assert said is not None
        assert all(STAMP.match(line) for line in said.splitlines())
        assert "one\ntwo \ufffd half\n" in await log_of(logs, job.name)
        await logs.remove(job.name)
        await logs.remove(job.name)
        assert await logs.read(job.name, timestamps=True) is None

    async def test_quiet_services_have_only_their_own_lines(self, host: JobHost, logs: JobLogs) -> None:
        job = order("echo mine", log_level="ERROR")
        await host.run(job)
        assert await log_of(logs, job.name) == "mine\n"

    async def test_a_missing_object_is_known_as_such(self, store: ObjectStore, bucket: str) -> None:
        """The suite's own ground: `keys_of` and `get` tell the truth."""
        with pytest.raises(NotFound):
            await store.get(bucket, "nothing")

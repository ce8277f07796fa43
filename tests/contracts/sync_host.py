"""What every engine must do for `/run`: the suite for `SyncHost`.

A driver's test module subclasses it and offers the fixtures `host`, `store` and `bucket`.
"""

import asyncio
import base64
import io
import zipfile
from dataclasses import replace

import pytest

from contracts.orders import order
from hansa.kernel.errors import Temporary
from hansa.services import NoWorker, StorageIO, SyncHost
from hansa.services.service import Synchronous
from hansa.storage import ObjectStore

SHORT = 1.0  # seconds in which a call is answered for sure; an engine may need more to make a worker


class SyncHostContract:
    async def test_without_files_the_answer_is_what_was_printed(self, host: SyncHost) -> None:
        reply = await host.invoke(order('cat "$INPUT_FILE_PATH"; echo " err" >&2', event=b"aGVsbG8="))
        assert (reply.body, reply.exit_code, reply.reason) == (b"hello err\n", 0, "")

    async def test_one_file_is_answered_in_base64(self, host: SyncHost) -> None:
        reply = await host.invoke(order('echo noise; printf "a\\0b" > "$TMP_OUTPUT_DIR/x.bin"'))
        assert base64.b64decode(reply.body) == b"a\0b"

    async def test_several_files_are_answered_as_a_zip(self, host: SyncHost) -> None:
        reply = await host.invoke(order('cd "$TMP_OUTPUT_DIR"; mkdir sub; echo 1 > one.txt; echo 2 > sub/zwö.txt'))
        with zipfile.ZipFile(io.BytesIO(base64.b64decode(reply.body))) as packed:
            assert {name: packed.read(name) for name in packed.namelist()} == {
                "one.txt": b"1\n",
                "sub/zwö.txt": b"2\n",
            }

    async def test_outputs_are_stored_too(self, host: SyncHost, store: ObjectStore, bucket: str) -> None:
        reply = await host.invoke(
            order(
                'echo kept > "$TMP_OUTPUT_DIR/kept.txt"',
                output=(StorageIO(storage_provider="minio.default", path=f"{bucket}/out"),),
            )
        )
        assert base64.b64decode(reply.body) == b"kept\n"
        assert await store.get(bucket, "out/kept.txt") == b"kept\n"

    async def test_a_failure_tells_what_was_printed(self, host: SyncHost) -> None:
        reply = await host.invoke(order('echo x > "$TMP_OUTPUT_DIR/x"; echo broken; exit 3'))
        assert (reply.body, reply.exit_code, reply.reason) == (b"broken\n", 3, "exit code 3")

    async def test_a_call_ends_when_its_time_is_over(self, host: SyncHost) -> None:
        reply = await host.invoke(order("echo begun; sleep 60", seconds=SHORT))
        assert (reply.body, reply.exit_code) == (b"begun\n", None)
        assert reply.reason == f"time limit of {SHORT:g} s reached"

    @pytest.mark.parametrize(
        "script", ["head -c 4194304 /dev/zero", 'head -c 4194304 /dev/urandom > "$TMP_OUTPUT_DIR/x"']
    )
    async def test_an_answer_counts_before_it_is_held(self, host: SyncHost, script: str) -> None:
        """So that many calls, which cost little else, do not fill the manager's memory together."""
        told: list[int] = []

        def weigh(size: int) -> None:
            told.append(size)
            if sum(told) > 2**20:
                raise Temporary("too much is under way")

        with pytest.raises(Temporary, match="too much is under way"):
            await host.invoke(replace(order(script), weigh=weigh))
        told.clear()
        reply = await host.invoke(replace(order("echo short"), weigh=weigh))
        assert (reply.body, sum(told) >= len(reply.body)) == (b"short\n", True)

    async def test_calls_see_only_their_own_event(self, host: SyncHost) -> None:
        calls = [order('echo "$EVENT $JOB_UUID"', event=b'{"n":%d}' % number) for number in range(4)]
        replies = await asyncio.gather(*(host.invoke(call) for call in calls))
        assert [reply.body.decode() for reply in replies] == [f"{call.event.decode()} {call.name}\n" for call in calls]

    async def test_beyond_its_scale_calls_wait_and_then_give_up(self, host: SyncHost) -> None:
        narrow = Synchronous(max_scale=1)
        first = asyncio.create_task(host.invoke(order("sleep 2; echo slow", synchronous=narrow)))
        await asyncio.sleep(0)
        second = asyncio.create_task(host.invoke(order("echo quick", synchronous=narrow)))
        await asyncio.sleep(0)
        with pytest.raises(NoWorker):
            await host.invoke(order("echo late", seconds=0.5, synchronous=narrow))
        assert not second.done()
        assert (await first).body == b"slow\n"
        assert (await second).body == b"quick\n"

    async def test_what_never_fits_is_refused_with_the_reason(self, host: SyncHost) -> None:
        with pytest.raises(NoWorker, match="cpu"):
            await host.invoke(order("true", cpu=10_000_000, seconds=5))

    async def test_a_cancelled_call_frees_its_place(self, host: SyncHost) -> None:
        narrow = Synchronous(max_scale=1)
        first = asyncio.create_task(host.invoke(order("sleep 60", seconds=60, synchronous=narrow)))
        await asyncio.sleep(0.3)
        first.cancel()
        await asyncio.wait([first])
        reply = await host.invoke(order("echo free", synchronous=narrow))
        assert reply.body == b"free\n"

"""Does moving files end, and within its memory, whatever a tenant's store says and a script leaves?"""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contracts.orders import order
from hansa.drivers.local import sandbox
from hansa.drivers.local.engine import Engine
from hansa.drivers.local.job_host import LocalJobHost
from hansa.drivers.local.launch import Ceiling
from hansa.drivers.local.runtime import HostRuntime
from hansa.drivers.local.staging import NotMoved
from hansa.services import RunOrder, StorageIO
from real import parts
from real.hostile_store import List, hostile_store, page

pytest_plugins = ("real.object_store",)

GREEDY = Path(__file__).with_name("greedy")
ORDINARY_USER = 3_999_996
LEVELS = {
    "cgroups": Ceiling(),
    "no cgroups": Ceiling(cgroups=False),
    "not root": Ceiling(cgroups=False, user=ORDINARY_USER),
}
ENOUGH = 150  # pages, after which a list ends, so that a stager without a bound ends well
MOUNT = StorageIO(storage_provider="s3.far", path="bucket/data")


def far_order(url: str, script: str = "true", **more: Any) -> RunOrder:
    return order(
        script,
        storage_providers={"s3": {"far": {"endpoint": url}}},
        providers={"s3.far": {"access_key": "AK", "secret_key": "SK"}},
        **more,
    )


def folders(number: int) -> bytes:
    """Markers of folders, of which nothing is fetched: a thousand on each page."""
    keys = [f"data/{number}-{each}/" for each in range(1000)]
    return page(keys, f"page {number}" if number < ENOUGH else None)


def long_names(number: int) -> bytes:
    keys = [f"data/{number}-{each}-{'x' * 1000}/" for each in range(1000)]
    return page(keys, f"page {number}" if number < ENOUGH else None)


def same_token(number: int) -> bytes:
    return page([f"data/{number}/"], "the same" if number < ENOUGH else None)


def no_keys(number: int) -> bytes:
    return page([], f"page {number}" if number < ENOUGH else None)


def no_token(number: int) -> bytes:
    return page(["data/1/"], "")


class TestLists:
    @pytest.mark.parametrize(
        ("told", "pages", "words"),
        [
            (folders, 101, "could not mount bucket/data/: it has more than 100,000 objects"),
            (long_names, 17, "16 MiB of their names; mount a smaller folder"),
            (same_token, 2, "could not list bucket/data/: its list does not come to an end"),
            (no_keys, 1, "could not list bucket/data/: its list does not come to an end"),
            (no_token, 1, "could not list bucket/data/: its list does not come to an end"),
        ],
    )
    async def test_one_without_an_end_is_refused(self, host: LocalJobHost, told: List, pages: int, words: str) -> None:
        with hostile_store(told) as store:
            outcome = await host.run(far_order(store.url, mount=MOUNT))
        assert words in outcome.reason
        assert store.listed == pages

    async def test_one_of_some_pages_is_read_to_its_end(self, host: LocalJobHost) -> None:
        with hostile_store(lambda number: page([f"data/{number}/"], f"{number}" if number < 5 else None)) as store:
            outcome = await host.run(far_order(store.url, mount=MOUNT))
        assert outcome.succeeded, outcome.reason
        assert store.listed == 5


class TestTime:
    """The store keeps its visitor waiting for ever, and the end of the visitor is what it notices."""

    async def test_bringing_ends_in_words(self, host: LocalJobHost) -> None:
        with hostile_store(lambda number: page(["data/endless"], None)) as store:
            outcome = await host.run(replace(far_order(store.url, mount=MOUNT, seconds=0.1), moving=1))
            assert await asyncio.to_thread(store.left.wait, 20), "the stager goes on"
        assert outcome.reason.startswith("the script was not started: its files were not moved within 1 s")

    async def test_carrying_ends_in_words(self, host: LocalJobHost) -> None:
        output = (StorageIO(storage_provider="s3.far", path="bucket/out"),)
        with hostile_store() as store:
            job = far_order(store.url, 'echo x > "$TMP_OUTPUT_DIR/x"', output=output)
            outcome = await host.run(replace(job, moving=1))
            assert await asyncio.to_thread(store.left.wait, 20), "the stager goes on"
        assert (outcome.succeeded, outcome.exit_code) == (False, 0)
        assert outcome.reason.startswith("an output could not be stored: its files were not moved within 1 s")


@pytest.fixture(params=LEVELS)
async def greedy(
    request: pytest.FixtureRequest, home: Path, uid_base: int, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[HostRuntime]:
    parts.require("bubblewrap")
    monkeypatch.setattr(sandbox, "_FOLDERS", (sandbox._FOLDERS[0], str(GREEDY)))
    home.chmod(0o755)
    ceiling = LEVELS[request.param]
    run_dir = home / "greedy"
    run_dir.mkdir()
    if ceiling.user is not None:
        if os.geteuid() != 0:
            pytest.skip("only root can become another user")
        os.chown(run_dir, ceiling.user, ceiling.user)
    opened = await HostRuntime.open(
        instance=f"t-{secrets.token_hex(4)}", uid_base=uid_base + 256 * 60, run_dir=run_dir, ceiling=ceiling
    )
    yield opened
    await opened.close()


async def test_memory_is_bounded_and_its_end_is_told(engine: Engine, greedy: HostRuntime) -> None:
    workdir = engine.workdir("greedy")
    job = far_order("http://127.0.0.1:1", mount=MOUNT)
    await engine.prepare(job, workdir, {})
    if os.geteuid() == 0:
        for folder in (workdir.output.parent, workdir.output, workdir.reach / "mount"):
            os.chown(folder, ORDINARY_USER, ORDINARY_USER)
    staging = replace(engine, runtime=greedy).staging(job, workdir, lambda level, text: None)
    with pytest.raises(NotMoved, match="needed more memory than 512 MiB"):
        await staging.bring()

"""Does the embedded store forget a user or a policy because another one is changed at the same time?

A real one forgot 3 of 2,400 loans, 16 at a time, until the next change: too few to wait for in a test. So this looks at
which changes are under way together."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
import pytest

from hansa.drivers.s3.seaweed_rpc import Filer
from hansa.drivers.s3.users import SeaweedUsers
from hansa.storage import Keys

USERS, POLICIES = {"CreateUser", "UpdateUser", "DeleteUser"}, {"PutPolicy", "DeletePolicy"}


class Administration(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Takes a moment for each call, and notes which calls it had at the same time."""

    def __init__(self) -> None:
        self.under_way: list[str] = []
        self.seen: set[tuple[str, ...]] = set()

    def service(self, handler_call_details: Any) -> Any:
        method = handler_call_details.method.rpartition("/")[2]

        async def answer(_request: bytes, _context: Any) -> bytes:
            self.under_way.append(method)
            self.seen.add(tuple(sorted(self.under_way)))
            try:
                await asyncio.sleep(0.02)
            finally:
                self.under_way.remove(method)
            return b""

        return grpc.unary_unary_rpc_method_handler(answer)


@pytest.fixture
async def administration() -> AsyncIterator[tuple[Administration, SeaweedUsers]]:
    noting, server = Administration(), grpc.aio.server()
    server.add_generic_rpc_handlers((noting,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    users = SeaweedUsers(Filer(f"127.0.0.1:{port}", "a-key-of-this-test-and-of-nobody-else"), Keys("root", "secret"))
    yield noting, users
    await users.close()
    await server.stop(None)


async def test_a_user_is_changed_alone_and_policies_together(
    administration: tuple[Administration, SeaweedUsers],
) -> None:
    noting, users = administration
    forms = {"CreateUser": "IdentityBox", "UpdateUser": "IdentityUpdate", "DeleteUser": "UserName"}
    await asyncio.gather(
        *(users.call(method, forms.get(method, "Policy"), "Empty") for method in [*USERS, *POLICIES, *POLICIES] * 3)
    )
    assert {method for calls in noting.seen for method in calls} == USERS | POLICIES
    assert all(len(calls) == 1 or POLICIES.issuperset(calls) for calls in noting.seen), noting.seen
    assert any(len(calls) > 1 for calls in noting.seen)


async def test_who_gave_up_waiting_holds_up_nobody(administration: tuple[Administration, SeaweedUsers]) -> None:
    noting, users = administration
    calls = [asyncio.create_task(users.call(method, "Policy", "Empty")) for method in ["PutPolicy", "DeleteUser"] * 4]
    await asyncio.sleep(0.01)
    for call in calls[::3]:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    assert sum(call.cancelled() for call in calls) == 3
    await users.call("CreateUser", "IdentityBox", "Empty")
    assert ("CreateUser",) in noting.seen

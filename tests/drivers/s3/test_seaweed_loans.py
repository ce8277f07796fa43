"""The embedded store lends keys as the contract says."""
# ruff: noqa: F811 - fixtures are imported, and then named as arguments

import asyncio
import contextlib
import secrets

import httpx
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from contracts.loans import LoansContract, allowed, bucket, client, loans, name, reach, tried  # noqa: F401 - fixtures
from hansa.drivers.s3 import OpenStore, policies
from hansa.drivers.s3.seaweed_loans import _READY, SeaweedLoans
from hansa.drivers.s3.users import SeaweedUsers
from hansa.storage import Keys, Reach

pytest_plugins = ("real.object_store",)


@pytest.fixture
def opened(object_store: OpenStore) -> OpenStore:
    return object_store


class TestSeaweedLoans(LoansContract):
    """Against a real SeaweedFS."""


async def test_a_policy_that_a_killed_manager_left_alone_goes(opened: OpenStore) -> None:
    """User and policy are made together, and either may be all there is when the manager dies."""
    users, left = opened.users, "hansa-loan-left-alone"
    assert isinstance(users, SeaweedUsers)
    assert opened.loans is not None
    await users.put_policy(left, policies.reach_document(Reach(read=frozenset({("some-bucket", "in/x")}))))
    assert left in await policy_names(users)
    await opened.loans.end_others(frozenset())
    assert left not in await policy_names(users)


@pytest.fixture
async def ready(opened: OpenStore) -> SeaweedLoans:
    """Loans whose users were made ahead."""
    assert isinstance(opened.loans, SeaweedLoans)
    await opened.loans.end("nobody's")
    async with asyncio.timeout(20):
        while len(opened.loans._ready) < _READY:
            await asyncio.sleep(0.01)
    return opened.loans


async def test_users_that_were_made_ahead_open_nothing(opened: OpenStore, ready: SeaweedLoans, bucket: str) -> None:
    for one in list(ready._ready):
        s3 = client(opened, ready._keys(one))
        with contextlib.closing(s3):
            assert await asyncio.to_thread(lambda s3=s3: tried(allowed(s3, bucket))) == []  # type: ignore[misc]


async def test_a_name_that_was_taken_and_never_lent_leaves_no_user(opened: OpenStore, ready: SeaweedLoans) -> None:
    taken = ready.new_name()
    assert ready._keys(taken).access_key in await user_names(opened)
    await ready.end(taken)
    assert ready._keys(taken).access_key not in await user_names(opened)


async def test_a_sweep_spares_what_was_made_ahead_and_the_next_life_ends_it(
    opened: OpenStore, ready: SeaweedLoans, bucket: str
) -> None:
    taken = ready.new_name()
    waiting = {ready._keys(one).access_key for one in ready._ready}
    await ready.end_others(frozenset())
    assert waiting | {ready._keys(taken).access_key} <= await user_names(opened)
    s3 = client(opened, await ready.lend(taken, reach(bucket)))
    with contextlib.closing(s3):
        assert await asyncio.to_thread(lambda: tried(allowed(s3, bucket))) == list(allowed(s3, bucket))
    await ready.end(taken)
    users, root = opened.users, opened.keys
    assert isinstance(users, SeaweedUsers)
    later = SeaweedLoans(users, root)
    await later.end_others(frozenset())
    await later.close()
    assert not waiting & await user_names(opened)
    ready._ready.clear()  # the store is that of other tests, too


async def user_names(opened: OpenStore) -> set[str]:
    assert isinstance(opened.users, SeaweedUsers)
    return set((await opened.users.call("ListUsers", "Empty", "UserNames")).usernames)


async def policy_names(users: SeaweedUsers) -> set[str]:
    return {policy.name for policy in (await users.call("ListPolicies", "Empty", "Policies")).policies}


ADMINISTERING = (
    "CreateAccessKey", "DeleteAccessKey", "ListAccessKeys", "GetUser", "ListUsers", "CreateUser", "PutUserPolicy",
    "AttachUserPolicy", "CreatePolicy", "ListPolicies", "CreateServiceAccount", "CreateGroup", "CreateRole",
    "AssumeRole", "GetFederationToken", "GetSessionToken", "GetCallerIdentity",
)  # fmt: skip


@pytest.mark.parametrize("whose", ["own", "lent"])
async def test_nobody_administers_users_with_keys_of_their_own(opened: OpenStore, whose: str) -> None:
    """Further keys of one person would rewrite all users of the store, and take keys away from runs of others."""
    assert opened.loans is not None
    keys, loan = Keys(f"maker-{secrets.token_hex(4)}", "long-enough-secret"), f"job-{secrets.token_hex(8)}"
    await opened.users.ensure_user(keys)
    lent = await opened.loans.lend(loan, Reach(write=frozenset({("some-bucket", "out/")})))
    try:
        signer = keys if whose == "own" else lent
        async with httpx.AsyncClient() as web:
            for action in ADMINISTERING:
                for service in ("iam", "sts"):
                    answer = await asked(web, opened, signer, service, action)
                    assert answer.status_code >= 400, (action, service, answer.text)
    finally:
        await opened.loans.end(loan)
        await opened.users.remove_user(keys.access_key)


async def asked(web: httpx.AsyncClient, opened: OpenStore, keys: Keys, service: str, action: str) -> httpx.Response:
    url = f"{opened.store.reach_at}/"
    body = f"Action={action}&Version=2010-05-08&UserName=intruder&RoleName=r&PolicyName=p&RoleSessionName=s&Name=abc"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for text in (body, body.replace("&UserName=intruder", "")):  # by default it is whoever asks
        request = AWSRequest(method="POST", url=url, data=text.encode(), headers=form)
        SigV4Auth(Credentials(keys.access_key, keys.secret_key), service, "us-east-1").add_auth(request)
        answer = await web.post(url, content=text.encode(), headers=dict(request.headers.items()))
        if answer.status_code < 400:
            break
    return answer

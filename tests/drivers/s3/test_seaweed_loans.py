"""The embedded store lends keys as the contract says."""

import secrets

import httpx
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from contracts.loans import LoansContract, bucket, loans, name  # noqa: F401 - fixtures
from hansa.drivers.s3 import OpenStore, policies
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

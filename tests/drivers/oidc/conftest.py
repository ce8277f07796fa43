"""What the driver's tests share: a real provider with several realms, and verifiers on a hand-moved clock."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from drivers.oidc.hand_clock import HandClock, OpenVerifier
from hansa.drivers.oidc import OidcVerifier, Policy
from hansa.kernel.issuer import IssuerSettings
from real import parts
from real.identity_provider import USERS, IdentityProvider, identity_provider

_URN = "urn:mace:egi.eu:group:vo.example.eu:role=member#aai.egi.eu"
_PEOPLE: Mapping[str, Mapping[str, Any]] = {
    **USERS,
    "erik": {"password": "erik-pw", "name": "Erik", "claims": {"entitlements": [_URN]}},
    "boss": {"password": "boss-pw", "claims": {"sub": "cluster_admin"}},
}
_REALMS: Mapping[str, Mapping[str, Any]] = {
    "test": {},
    "other": {},
    "egi": {},
    "curves": {"alg": "ES256"},
    "pss": {"alg": "PS256"},
    "turning": {},  # its keys change
    "withdrawn": {},
    "flooded": {},
    "crowded": {},
    "sparse": {"claims_in_token": False},  # names and groups only from userinfo
    "sparse-crowded": {"claims_in_token": False},
    "sparse-revoked": {"claims_in_token": False},
}


@pytest.fixture(scope="session")
def provider() -> Iterator[IdentityProvider]:
    parts.require("node")
    parts.require("npm")
    with identity_provider(realms=_REALMS, users=_PEOPLE) as running:
        yield running


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def open_verifier(clock: HandClock) -> OpenVerifier:
    @asynccontextmanager
    async def opened(*issuers: IssuerSettings, policy: Policy | None = None) -> AsyncIterator[OidcVerifier]:
        async with httpx.AsyncClient(trust_env=False) as http:
            verifier = OidcVerifier(issuers, http, policy=policy, clock=clock, ticks=clock.ticks)
            try:
                yield verifier
            finally:
                await verifier.close()

    return opened

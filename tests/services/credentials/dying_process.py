"""A manager's keyring that dies at the worst moment: the issuer has answered, and nothing is written down yet.

python -m services.credentials.dying_process DATABASE_URL ISSUER VAULT_KEY TOKEN
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence

import httpx

from hansa.drivers.oidc import OidcExchange
from hansa.identity import Vault
from hansa.services.credentials import Exchanged
from services.credentials.clusters import cluster, issuer_settings


class Dying:
    """The real exchange; the process ends between its answer and whatever would be done with it."""

    def __init__(self, real: OidcExchange) -> None:
        self._real = real

    @property
    def issuers(self) -> Sequence[str]:
        return self._real.issuers

    async def exchange(self, issuer: str, refresh_token: str) -> Exchanged:
        await self._real.exchange(issuer, refresh_token)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("unreachable")

    async def revoke(self, issuer: str, refresh_token: str) -> bool:
        return await self._real.revoke(issuer, refresh_token)


async def main(database_url: str, issuer: str, key: str, token: str) -> None:
    async with httpx.AsyncClient(trust_env=False) as http:
        dying = Dying(OidcExchange([issuer_settings(issuer)], http))
        async with cluster(database_url, vault=Vault([key]), exchange=dying) as here:
            await here.sign_in(issuer)
            await here.bearer(await here.with_token("hello", token))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

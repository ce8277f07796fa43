"""What should this cluster know and do? Taken from the hub, written down, put into force, and acknowledged.

Everything here may be repeated. What was told last is on disk, so a manager that starts without its hub has its
settings and its neighbours.
"""

import asyncio

import structlog

from hansa.federation.member import neighbours
from hansa.federation.member.links import Links
from hansa.federation.member.notebook import Notebook
from hansa.federation.member.ports import Cluster, Line, Progress
from hansa.kernel.errors import HansaError
from hansa.messages.members import Applied, Desired, Neighbour

_log = structlog.get_logger("hansa.membership")


class Watch:
    def __init__(self, line: Line, cluster: Cluster, links: Links, notebook: Notebook) -> None:
        self._line = line
        self._cluster = cluster
        self._links = links
        self._notebook = notebook
        self._turn = asyncio.Lock()  # what is told and that nothing is told any more come on different ways
        self._generation = 0  # up to which everything was dealt with
        self.round = 0  # another whenever all is to be asked for anew
        self.error = ""  # why the newest settings are not in force

    @property
    def generation(self) -> int:
        return self._generation

    @property
    def desired(self) -> Desired | None:
        return self._notebook.now.desired

    @property
    def draining(self) -> bool:
        told = self.desired
        return self._notebook.now.leaving or (told is not None and (told.drain or told.leave))

    @property
    def cordoned(self) -> bool:
        told = self.desired
        return self.draining or (told is not None and told.cordoned)

    async def restore(self) -> None:
        """After a start: what was in force before."""
        now = self._notebook.now
        try:
            await self._cluster.apply(now.settings)
        except HansaError as error:
            self.error = error.message
            _log.warning("settings of the hub not restored", error=error.message)
        if now.desired is not None:
            await self._put_in_force(now.desired)
            self._generation = now.desired.generation
        else:
            self.take_duty()

    async def take(self, fresh: Desired, asked_in: int) -> bool:
        """Whether anything in it is new to us. An answer to a question of a former round is no answer to the one that
        is due: it tells only what is newer than what we knew then."""
        async with self._turn:
            former = self.desired
            whole = await neighbours.merged(former, fresh)
            if whole is None:
                _log.warning("the hub told of more clusters than are remembered; all are asked for anew")
                self.start_over()
                return False
            await self._notebook.change(desired=whole)
            if whole.roots and (former is None or former.roots != whole.roots):
                await self._trust(whole.roots)
            await self._put_in_force(whole)
            if asked_in == self.round:
                self._generation = fresh.generation
            return former != whole

    async def _trust(self, roots: str) -> None:
        try:
            await self._line.trust(roots)
        except HansaError as error:  # no reason to leave the rest undone
            _log.warning("roots of the hub not taken", error=error.message)

    async def try_again(self) -> bool:
        """Settings that were refused may fit by now; True if they do."""
        if not self.error or self.desired is None:
            return False
        await self._settle(self.desired)
        return not self.error

    def start_over(self) -> None:
        """The next question is for all there is."""
        self._generation = 0
        self.round += 1

    async def let_go(self) -> None:
        """No hub tells us anything any more: the manager's own settings, no neighbours, every duty."""
        async with self._turn:
            self._generation, self.error = 0, ""
            await self._notebook.change(desired=None, settings={}, documents=(), leaving=False)
            await self._know(())
            self.take_duty()
            await self._cluster.apply({})

    def take_duty(self) -> None:
        self._cluster.set_duty(cordoned=self.cordoned, draining=self.draining)

    def applied(self, progress: Progress) -> Applied:
        return Applied(
            generation=self._generation,
            documents=self._notebook.now.documents,
            error=self.error,
            tried=self.desired.documents if self.error and self.desired is not None else (),
            drained=self.draining and progress.over,
            running=progress.running if self.draining else 0,
            waiting=progress.waiting if self.draining else 0,
        )

    async def _put_in_force(self, told: Desired) -> None:
        await self._know(told.neighbours)
        self.take_duty()
        await self._settle(told)

    async def _settle(self, told: Desired) -> None:
        now = self._notebook.now
        if dict(now.settings) != told.settings or self.error:
            try:
                await self._cluster.apply(told.settings)
            except HansaError as error:
                if error.message != self.error:
                    _log.warning("settings of the hub refused", error=error.message)
                self.error = error.message
                return
        self.error = ""
        await self._notebook.change(settings=told.settings, documents=told.documents)

    async def _know(self, others: tuple[Neighbour, ...]) -> None:
        await self._cluster.know(others)
        self._links.know(others)

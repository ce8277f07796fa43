"""Whatever clusters do while a rollout goes on: it never gives more than it may, stops on failures, and ends."""

from dataclasses import dataclass

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hansa.federation import RolloutRecord
from hansa.federation.configuration import stepping
from hansa.federation.configuration.stepping import Reach, Seen
from hansa.messages.configuration import Stages

NAMES = tuple(f"c{number}" for number in range(8))
shares = st.lists(st.integers(1, 99), max_size=3, unique=True).map(lambda found: (*sorted(found), 100))
plans = st.builds(
    Stages,
    canary=st.integers(0, 3),
    percentages=shares,
    soak=st.sampled_from([0.0, 10.0]),
    most_failures=st.integers(0, 2),
    patience=st.just(30.0),
    roll_back=st.booleans(),
)


@dataclass
class Cluster:
    """A real one in small: it has the new version, or fails to take it, only after it was given it."""

    reach: Reach = "here"
    well: bool = True
    has: bool = False
    error: str = ""

    def seen(self) -> Seen:
        return Seen(self.reach, self.well, self.has, self.error, "" if self.well else "storage")


class Rollouts(RuleBasedStateMachine):
    @initialize(stages=plans, names=st.sets(st.sampled_from(NAMES), max_size=6))
    def begin(self, stages: Stages, names: set[str]) -> None:
        self.now = 0.0
        self.clusters = {name: Cluster() for name in names}
        self.rollout = RolloutRecord(document="base", version=2, former=1, since=0.0, stages=stages)

    def seen(self) -> dict[str, Seen]:
        return {name: one.seen() for name, one in self.clusters.items()}

    @rule(seconds=st.sampled_from([0.0, 1.0, 10.0, 31.0]))
    def turn(self, seconds: float) -> None:
        self.now += seconds
        old, seen = self.rollout, self.seen()
        new = stepping.step(old, seen, self.now)
        fresh = new.given.keys() - old.given.keys()
        tally = stepping.tallied(new, seen, self.now)
        most = new.stages.most_failures
        if fresh:
            counted = len(new.given) - len(tally.failed) - len(tally.lost)
            assert counted <= min(new.goal, stepping.targets(new.stages, len(seen))[new.stage])
            assert len(tally.failed) <= most
            assert len(tally.lost) <= len(tally.good) + most + 1
        assert new.stage >= old.stage
        if new.state in ("stopped", "rolled-back") and new != old:
            assert not fresh, "who fails is not followed by others"
        if new.state == "done" and old.state in stepping.UNDER_WAY:
            assert new.stage == stepping.stage_count(new.stages) - 1 or not seen
            found = stepping.tallied(old, seen, self.now)
            assert len(found.failed) <= most
            assert not [name for name in found.waiting if self.clusters[name].reach == "here"]
        again = stepping.step(new, seen, self.now)
        assert (again.given.keys(), again.state) == (new.given.keys(), new.state), "a turn done twice does nothing more"
        self.rollout = new

    @rule(name=st.sampled_from(NAMES))
    def take(self, name: str) -> None:
        one = self.clusters.get(name)
        if one is not None and name in self.rollout.given and one.reach == "here":
            one.has, one.error = True, ""

    @rule(name=st.sampled_from(NAMES))
    def refuse(self, name: str) -> None:
        one = self.clusters.get(name)
        if one is not None and name in self.rollout.given and one.reach == "here" and not one.has:
            one.error = "no"

    @rule(name=st.sampled_from(NAMES), reach=st.sampled_from(["here", "late", "away"]))
    def cut_or_heal(self, name: str, reach: Reach) -> None:
        if name in self.clusters:
            self.clusters[name].reach = reach

    @rule(name=st.sampled_from(NAMES), well=st.booleans())
    def fall_ill_or_recover(self, name: str, well: bool) -> None:
        if name in self.clusters:
            self.clusters[name].well = well

    @rule(name=st.sampled_from(NAMES), here=st.booleans())
    def join_or_leave(self, name: str, here: bool) -> None:
        if not here:
            self.clusters.pop(name, None)
        elif name not in self.clusters:
            self.clusters[name] = Cluster()

    @rule()
    def pause_or_resume(self) -> None:
        if self.rollout.state in stepping.UNDER_WAY:
            self.rollout = stepping.paused(self.rollout, "admin", self.now)
        elif self.rollout.state in ("paused", "stopped"):
            self.rollout = stepping.resumed(self.rollout, self.seen(), "admin", self.now)

    @invariant()
    def only_known_clusters_count(self) -> None:
        if hasattr(self, "rollout") and self.rollout.state == "done":
            assert not self.rollout.given

    def teardown(self) -> None:
        """When all is well again it ends, in no more turns than there are stages, clusters and rests between."""
        if not hasattr(self, "rollout"):
            return
        if self.rollout.state in ("paused", "stopped"):
            self.rollout = stepping.resumed(self.rollout, self.seen(), "admin", self.now)
        for _ in range(40):
            for name, one in self.clusters.items():
                one.reach, one.well = "here", True
                if name in self.rollout.given:
                    one.has, one.error = True, ""
            self.turn(10.0)
        assert self.rollout.state in ("done", "rolled-back"), self.rollout


TestRollouts = Rollouts.TestCase
TestRollouts.settings = hypothesis_settings(max_examples=60, stateful_step_count=40, deadline=None)

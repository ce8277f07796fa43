"""What does a pod's stager know of its run? One file of the job's Secret; and where everything is in a pod."""

from dataclasses import dataclass

import msgspec

from hansa import services
from hansa.drivers.runs import environment, plans
from hansa.drivers.runs.stager.plan import Plan
from hansa.services import events

ORDER_FOLDER = "/hansa/order"
MOUNT = "/hansa/mount"
END = "/job/.hansa-end"  # the script's exit code
NOTES = "/hansa/notes"  # of the stagers alone: no script sees it
STAGED = f"{NOTES}/staged"  # how the outputs fared, so that a sidecar that is started again knows
MOUNTED = f"{NOTES}/mounted"


@dataclass(frozen=True, slots=True)
class Links:
    """Where a pod fetches, without keys of its own, what the manager keeps for it."""

    input: str = ""
    gate: str = ""
    plan: str = ""


YES, NO = b"yes", b"no"


class Paper(msgspec.Struct, frozen=True, kw_only=True):
    """As much of an order as staging needs, with the keys of its stores."""

    plan: str  # see `runs.stager.plan`
    log_level: str = ""
    input_name: str = ""
    input_url: str = ""  # where the input is, if it was sent and a Secret cannot carry it
    gate_url: str = ""  # where the word is that outputs may be stored, once it is given; "": they may
    plan_url: str = ""  # where the plan with the keys of then is, if they may have been replaced by then

    @classmethod
    def of(cls, order: services.RunOrder, links: "Links") -> "Paper":
        return cls(
            plan=plans.plan(order, None).to_json().decode(),
            log_level=order.service.log_level,
            input_name=environment.input_name(events.interpret(order.event)),
            input_url=links.input,
            gate_url=links.gate,
            plan_url=links.plan,
        )

    @property
    def steps(self) -> Plan:
        return Plan.from_json(self.plan.encode())


class Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stager's last word: the container's termination message."""

    stored: int = 0
    error: str = ""  # an input could not be fetched, or an output could not be stored
    thrown_away: bool = False
    left: bool = False  # a failed script left outputs, which are not stored

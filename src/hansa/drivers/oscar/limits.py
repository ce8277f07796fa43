"""How much of a peer do we put up with? The numbers of this driver, each with its trade-off."""

from dataclasses import dataclass

from hansa.kernel import bounded_json
from hansa.services import LARGEST_DEFINITION


@dataclass(frozen=True, slots=True)
class Limits:
    call_timeout: float = 20.0
    """Seconds one call may take altogether, waiting for its turn included."""
    connections: int = 256
    """Open connections to all peers together."""
    at_once: int = 32
    """Calls under way to one peer: one that hangs takes no more of the connections than these."""
    keep_idle: float = 4.0
    """Seconds an idle connection is kept; less than a manager keeps it, so that it does not close under a request."""
    rest: float = 30.0
    """Seconds nothing is asked of a peer whose answer was a flood."""
    small_answer: int = 256 * 1024
    """Bytes of an answer that holds a few fields."""
    status_answer: int = 8 * 2**20
    """Bytes of a status: some ten thousand nodes."""
    definition_answer: int = 2 * LARGEST_DEFINITION
    """Bytes of a service definition: as much as a manager takes, what its answer adds, and what it writes longer (an
    OSCAR has six bytes for each `<`, `>` and `&`). What is there before a create may have to be kept."""
    definition_parts: int = 2 * bounded_json.MOST_PARTS
    """The same for its strings, lists, objects and commas."""
    page_answer: int = 8 * 2**20
    """Bytes of one page of jobs."""
    log_answer: int = 10 * 2**20
    """Bytes of one job's log that are read, with its timestamps: as much as a manager keeps of one."""
    run_answer: int = 64 * 2**20
    """Bytes a synchronous run may answer."""
    answers: int = 256 * 2**20
    """Bytes of all answers that are being read at the same time; a single peer gets half of them."""
    error_answer: int = 64 * 1024
    """Bytes read of an answer that says no; a longer one is not quoted."""
    parts: int = 100_000
    """Strings, lists, objects and commas of a JSON answer: how much memory it takes, whatever its length."""
    many_parts: int = 1_000_000
    """The same for a status and a page of jobs."""
    pages: int = 50
    """Pages of a job listing that are read before its figures are taken as they are."""
    kind_fresh: float = 300.0
    """Seconds until a peer is asked again what it can do: how long an upgrade stays unnoticed."""

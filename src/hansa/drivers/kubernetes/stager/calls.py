"""What do manager and worker pod say to each other? One call, one reply; over HTTP with the worker's own token."""

import msgspec

PORT = 8719
TURN = "/hansa/turn"  # shared with the script's container, and with nobody else
GO, CALL, OUT, END = f"{TURN}/go", f"{TURN}/call", f"{TURN}/out", f"{TURN}/end"


class Call(msgspec.Struct, frozen=True, kw_only=True):
    plan: str  # what to bring and to carry for this call, with keys that end with it
    input_name: str
    input: bytes | None  # what was sent, if that is the input
    variables: dict[str, str]
    seconds: float


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    body: bytes
    exit_code: int | None
    reason: str
    spoilt: bool = False  # the script still runs, or left a mess: this worker is of no more use

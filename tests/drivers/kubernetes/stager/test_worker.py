"""What reaches a caller from a former call to the same worker? Nothing, whatever that call's script left, and whether
or not the script of this one comes to run."""

import base64

from drivers.kubernetes.stager.pod import answered, call
from hansa.drivers.runs.stager.plan import Fetch, Plan, Store

SECRET = "of the former caller"
# Each a folder in which a file is that the script closed, or closed the way to.
LEAVING = f"""
cd "$TMP_OUTPUT_DIR"; mkdir -p read-only closed closed-below/low closed-file
for place in read-only closed closed-below/low closed-file; do echo {SECRET} > $place/f; done
chmod 0 closed closed-below/low closed-file/f; chmod 0555 read-only closed-below closed-file
"""


def test_what_a_script_closed_is_not_the_next_callers() -> None:
    looking, leaving = 'ls -A "$TMP_OUTPUT_DIR"; echo mine', 'echo mine > "$TMP_OUTPUT_DIR/mine"'
    former, looked, left = answered(call(LEAVING), call(looking), call(leaving))
    assert (former.exit_code, former.spoilt) == (0, False)
    assert (looked.body, looked.exit_code) == (b"mine\n", 0)
    assert base64.b64decode(left.body) == b"mine\n"


def test_what_a_script_printed_is_not_the_answer_of_a_call_that_never_ran() -> None:
    away = Store("s3", "http://127.0.0.1:1", access_key="a", secret_key="s", lent=True)
    hopeless = Plan((away,), Fetch(0, "bucket", "key", "input"), patience=0.0)
    former, failed = answered(call(f"echo {SECRET}"), call("echo mine", hopeless))
    assert former.body.decode() == f"{SECRET}\n"
    assert (failed.body, failed.exit_code, failed.spoilt) == (b"", None, True)


def test_what_still_prints_after_its_call_prints_to_nobody() -> None:
    lingering = f"(while [ ! -e /job/mine ]; do sleep 0.05; done; echo {SECRET}; touch /job/said) & exit 0"
    waiting = "touch /job/mine; while [ ! -e /job/said ]; do sleep 0.05; done; echo mine"
    _, next_one = answered(call(lingering), call(waiting))
    assert next_one.body == b"mine\n"


def test_a_worker_that_cannot_be_cleared_runs_nothing_more() -> None:
    _, refused = answered(call("chmod 0555 /job"), call("echo mine"))
    assert (refused.body, refused.exit_code, refused.spoilt) == (b"", None, True)

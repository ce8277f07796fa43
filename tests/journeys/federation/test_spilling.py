"""Is a synchronous run answered by a member when there is no room here, and only where its service says so?"""

import httpx

from journeys.federation.conftest import Deploy
from journeys.federation.stories import fresh, member, outputs
from real.federation import Federation

SPILLING = {"hansa/spill-runs": "true"}
SCRIPT = 'cat "$INPUT_FILE_PATH"; echo " read by $OSCAR_SERVICE_NAME"'


def run(client: httpx.Client, name: str, body: bytes) -> httpx.Response:
    return client.post(f"/run/{name}", content=body, timeout=60)


def test_a_run_without_room_is_answered_by_a_member(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    name = fresh("spill")
    deploy([member("visby", f"{name}-visby")], name=name, script=SCRIPT, annotations=SPILLING)
    answer = run(alice, name, b"{}")
    assert answer.status_code == 200, answer.text
    assert answer.text.strip() == f"{{}} read by {name}-visby"


def test_its_files_go_to_the_origins_store(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    name = fresh("spill")
    script = 'echo "$OSCAR_SERVICE_NAME" > "$TMP_OUTPUT_DIR/where"'
    deploy([member("visby", f"{name}-visby")], name=name, script=script, annotations=SPILLING)
    assert run(alice, name, b"{}").status_code == 200
    assert outputs(hansa, alice, name) == {"out/where": f"{name}-visby\n".encode()}


def test_a_script_that_fails_there_fails_here(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    name = fresh("spill")
    deploy([member("visby", f"{name}-visby")], name=name, script="echo no; exit 3", annotations=SPILLING)
    answer = run(alice, name, b"{}")
    assert answer.status_code == 502
    assert "no" in answer.text


def test_without_the_wish_nothing_is_spilled(hansa: Federation, alice: httpx.Client, deploy: Deploy) -> None:
    name = fresh("stay")
    deploy([member("visby", f"{name}-visby")], name=name, script=SCRIPT)
    answer = run(alice, name, b"{}")
    assert answer.status_code == 503
    assert "never run here" in answer.text

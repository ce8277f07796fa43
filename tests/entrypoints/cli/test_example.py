"""The first example is a valid FDL whose script does what its page says, with the host's tools alone."""

import os
import subprocess
from pathlib import Path

from hansa.services import fdl

EXAMPLE = Path(__file__).parents[3] / "examples" / "01-first-service"


def test_the_fdl_holds_no_surprise() -> None:
    parsed = fdl.parse((EXAMPLE / "fdl.yaml").read_text(), lambda name: (EXAMPLE / name).read_text())
    (definition,) = parsed.definitions
    assert parsed.warnings == ()
    assert (definition.cluster_id, definition.name) == ("lubeck", "first-service")
    assert definition.service["script"] == (EXAMPLE / "script.sh").read_text()
    assert [io["path"] for io in (*definition.service["input"], *definition.service["output"])] == [
        "first-service/in",
        "first-service/out",
    ]


def test_the_script_counts_and_capitalises(tmp_path: Path) -> None:
    env = {
        "PATH": os.environ["PATH"],
        "INPUT_FILE_PATH": str(EXAMPLE / "greeting.txt"),
        "TMP_OUTPUT_DIR": str(tmp_path),
    }
    done = subprocess.run(
        ["sh", str(EXAMPLE / "script.sh")], env=env, capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "greeting.txt has 2 lines and 15 words\n"
    assert done.stdout.strip() in (EXAMPLE / "README.md").read_text()
    written = (tmp_path / "greeting.txt").read_text()
    assert written == (EXAMPLE / "greeting.txt").read_text().upper()

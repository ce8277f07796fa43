"""The federation examples run: their README's commands, and jobs that the coordinator has no room for."""

from pathlib import Path

import pytest

from docs.test_readme_tour import _SH, run, running
from real.playground import Playground

ROOT = Path(__file__).parents[2]
GRAY = "P2\n4 2\n255\n76\n150\n29\n255\n226\n179\n105\n0\n"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
__all__ = ["running"]


@pytest.mark.deep
def test_star_tree_and_mesh(running: Playground) -> None:
    guide = _SH.findall((ROOT / "docs" / "guides" / "federate-a-service.md").read_text())[0]
    assert "└─ riga/grayify-riga  (in sync)" in run(guide, running)
    for folder in ("02-federation-star", "03-federation-tree", "04-federation-mesh"):
        (commands,) = _SH.findall((ROOT / "examples" / folder / "README.md").read_text())
        said = run(commands, running)
        assert "visby/grayify-visby  (in sync)" in said
        assert "riga/grayify-riga  (in sync)" in said
        # a call that waits for the script, then the picture that the upload made
        run(".venv/bin/hansa run grayify --file examples/flag.ppm --async --wait > /dev/null", running)
        run(".venv/bin/hansa bucket get grayify/out/event-file.pgm gray.pgm", running)
        assert (running.folder / "gray.pgm").read_text() == GRAY
        assert run(".venv/bin/hansa service rm grayify --yes && .venv/bin/hansa service ls -c visby", running)

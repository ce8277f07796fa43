"""Writes `deploy/manifests/*.yaml`: what the Helm chart makes of a few sets of values, for those who use no Helm.

Run it after changing the chart; a test fails when they are stale. `--check` only says whether they are. Helm is the one
the tests use (`HANSA_SETUP_KUBERNETES=yes make test` builds it), or the one of this machine.
"""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from real.kubernetes import helm_client  # noqa: E402 - the tests' own Helm, known since the line above

CHART = ROOT / "deploy" / "helm" / "hansa"
FOLDER = ROOT / "deploy" / "manifests"
NAME = NAMESPACE = "hansa"

# The Secret is made by hand: a password in a public file is none.
_ALWAYS: Mapping[str, Any] = {"existingSecret": "hansa", "persistence": {"keep": False}}
VARIANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "manager": ("A manager whose users' pods run in one namespace, oscar-svc, which is made here.", {}),
    "manager-namespaces": (
        "A manager whose users get namespaces of their own, which it makes.",
        {"kubernetes": {"reach": "made"}},
    ),
    "manager-restricted": (
        "A manager with rights in one namespace for users' work, which has to be there: hansa-work. It sees no nodes.",
        {
            "kubernetes": {"namespaces": ["hansa-work"]},
            "rbac": {"nodes": False},
            "settings": {"jobs": {"cpu": "8", "memory": "16Gi"}},
        },
    ),
    "hub": ("The hub of a federation.", {"role": "hub"}),
}
_HEAD = """\
# {about}
#
# Made from deploy/helm/hansa by scripts/render_manifests.py; change the chart, not this file. Before it:
#
#     kubectl create namespace {namespace}
#     kubectl label namespace {namespace} pod-security.kubernetes.io/enforce=restricted
#     kubectl -n {namespace} create secret generic hansa --from-literal=admin-password="$(openssl rand -base64 18)"
#
# Put the image your nodes can pull in place of localhost/hansa, in all places; then kubectl apply -f this file.
"""
_OF_HELM = ("helm.sh/chart:", "app.kubernetes.io/managed-by: Helm", "# Source:")


def render(program: Path) -> dict[str, str]:
    """The files by their names."""
    made = {}
    for name, (about, values) in VARIANTS.items():
        words = ("template", NAME, str(CHART), "--namespace", NAMESPACE)
        told = helm_client.Helm(program).run(*words, values={**_ALWAYS, **values})
        if not told.ok:
            raise SystemExit(told.stderr)
        lines = [line for line in told.stdout.splitlines() if not line.strip().startswith(_OF_HELM)]
        made[f"{name}.yaml"] = _HEAD.format(about=about, namespace=NAMESPACE) + "\n".join(lines) + "\n"
    return made


def _program() -> Path:
    found = helm_client.found() or shutil.which("helm")
    if found is None:
        raise SystemExit(f"there is no Helm to render with: {helm_client.hindrance()}")
    return Path(found)


def stale(made: Mapping[str, str]) -> list[str]:
    """Which files say something else, or should not be there."""
    there = {path.name: path.read_text() for path in FOLDER.glob("*.yaml")}
    return sorted(name for name in {*made, *there} if made.get(name) != there.get(name))


def main() -> int:
    made = render(_program())
    old = stale(made)
    if "--check" in sys.argv[1:]:
        if old:
            print(f"stale: {', '.join(old)}; call python scripts/render_manifests.py", file=sys.stderr)
        return 1 if old else 0
    FOLDER.mkdir(exist_ok=True)
    for name in old:
        if name in made:
            (FOLDER / name).write_text(made[name])
        else:
            (FOLDER / name).unlink()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""`python -m bench`: run the suites, print their figures, and after a full run write `docs/benchmarks.md`."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from bench import ROOT, api, deciding, federation, hub, kubernetes, standby, starts
from bench.figures import FULL, QUICK, TINY, Part, Sizes, as_page, as_text, load, machine

SUITES: Mapping[str, Callable[[Sizes], Part]] = {
    "reads": api.reads,
    "submissions": api.submissions,
    "starts": starts.starts,
    "federated-create": federation.creates,
    "decisions": deciding.decisions,
    "delegated-jobs": federation.delegated,
    "hub": hub.hub,
    "standby": standby.standby,
    "kubernetes": kubernetes.on_kubernetes,
}
_SIZES = {"full": FULL, "quick": QUICK, "tiny": TINY}
_PAGE = ROOT / "docs" / "benchmarks.md"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--quick", action="store_const", const="quick", dest="size", help="less than a minute")
    parser.add_argument("--size", choices=_SIZES, help="`tiny` only shows that it works")
    parser.add_argument("--only", choices=SUITES, action="append", help="this suite; may be repeated")
    parser.add_argument("--without", choices=SUITES, action="append", default=[], help="not this one; may be repeated")
    parser.add_argument("--write", type=Path, metavar="FILE", help=f"the page to write; a full run writes {_PAGE.name}")
    given = parser.parse_args(arguments)
    size = given.size or "full"
    before = load()
    print(f"{machine()}; load average {before}", flush=True)
    chosen = [name for name in given.only or SUITES if name not in given.without]
    parts = []
    for name in chosen:
        part = SUITES[name](_SIZES[size])
        print(as_text([part]), flush=True)
        parts.append(part)
    after = load()
    print(f"\nload average {before} before, {after} after")
    page = given.write or (_PAGE if size == "full" and len(chosen) == len(SUITES) else None)
    if page is not None:
        page.write_text(as_page(parts, (before, after)))
        print(f"written: {page}")


if __name__ == "__main__":
    main()

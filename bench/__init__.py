"""How fast is Hansa? Ratios measured in one run on one machine, because machines differ and are never quiet.

`python -m bench` runs every suite and prints a table; the full run also writes `docs/benchmarks.md`. A suite is a
function from `Sizes` to figures; `__main__` lists them.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# The manager that is measured is started by the same code as the manager that is tested.
for _folder in ("src", "tests"):
    if str(ROOT / _folder) not in sys.path:
        sys.path.insert(0, str(ROOT / _folder))

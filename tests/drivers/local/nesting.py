"""Folders nested deeper than a path is long, and than a function may call itself."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import os, sys
os.chdir(sys.argv[1])
top, bottoms = os.open(".", os.O_RDONLY), []
for chain in range(20):
    os.mkdir(f"c{chain}", dir_fd=top)
    here = os.open(f"c{chain}", os.O_RDONLY, dir_fd=top)
    for _ in range(150):
        os.mkdir("d", dir_fd=here)
        here, above = os.open("d", os.O_RDONLY, dir_fd=here), here
        os.close(above)
    bottoms.append(here)
for chain in range(19, 0, -1):
    os.rename(f"c{chain}", "x", src_dir_fd=top, dst_dir_fd=bottoms[chain - 1])
"""


def nest(folder: Path) -> None:
    subprocess.run([sys.executable, "-c", SCRIPT, folder], check=True)

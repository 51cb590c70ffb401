"""Interrupt `make` at random moments, then let it end: nothing half-written may be left behind.

Usage: python tests/interrupts.py [TIMES]   in a clone of this commit; 8 times by default, then once
to its end: it must succeed, and the clone must be as it was committed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent


def interrupt(clone: Path, seconds: float) -> None:
    """Start make, and press Ctrl-C after some seconds: a signal to all of its processes."""
    make = subprocess.Popen(
        ["make"],
        cwd=clone,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        code = make.wait(seconds)
        print(f"ended by itself with {code} within {seconds:.0f} s", flush=True)
        return
    except subprocess.TimeoutExpired:
        os.killpg(make.pid, signal.SIGINT)
    try:
        make.wait(20)
    except subprocess.TimeoutExpired:
        print(said(clone, "ps", "-s", str(make.pid), "-o", "stat,etime,args"), flush=True)
        raise
    changed = said(clone, "git", "status", "--porcelain")
    there = (clone / ".venv" / "ok").exists()
    print(
        f"interrupted after {seconds:.0f} s, packages {'there' if there else 'not there'}; "
        f"{changed or 'nothing changed'}",
        flush=True,
    )


def said(folder: Path, *command: str) -> str:
    """Run a program; return what it prints."""
    return subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout.strip()


def main(times: int) -> None:
    """Interrupt, again and again, and then let it end."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    moments = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
        for n in range(times):
            interrupt(clone, moments.uniform(1, 60 if n % 2 else 240))
        start = time.time()
        code = subprocess.run(["make", "-s"], cwd=clone).returncode
        changed = said(clone, "git", "status", "--porcelain")
        left = said(clone, "find", ".", "-name", "*.part", "-not", "-path", "./.venv/*")
        print(f"to its end: exit {code} in {time.time() - start:.0f} s; {changed or 'unchanged'}")
        sys.exit(bool(code or changed or left))


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 8)

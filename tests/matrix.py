"""All chapters, figures included, on other machines than this one: `make matrix`.

Usage: python tests/matrix.py [--weights] [ROW ...]    all rows, or those whose names begin so

With `--weights` (`make matrix ROWS="--weights without"`) it runs what is left out otherwise: the
chapters that need trained weights, of the models that are there, and the tests of `make test-real`.

Some rows take features from this processor; others have environments of their own, which the
Makefile makes (`.venv-oldest-book`, `.venv-newest`); the last is ARM, where the variable
PE_NUMPY_ARM names a Python for it that has the packages of the lock. Under qemu-user, its libraries
are in the folders of this system (libc6:arm64; not QEMU_LD_PREFIX, which the homework checker's
processes do not get), and the emulator is called with QEMU_CPU=neoverse-n1: the signed pointers of
newer processors make it 18 times slower.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scripts import script

from pe_numpy.book.fetch import FOLDER, weights_folder

ROOT = Path(__file__).parent.parent
WIDE = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
WIDEST = [feature for feature in WIDE if "512" in feature or feature == "X86_V4"]


def without(features: list[str], blas: str) -> dict[str, str]:
    """Variables that take features from NumPy, and from its BLAS what came after a processor."""
    return {"NPY_DISABLE_CPU_FEATURES": " ".join(features), "OPENBLAS_CORETYPE": blas}


ROWS = {  # name: Python, variables
    "as it is": (sys.executable, {}),
    "without AVX-512": (sys.executable, without(WIDEST, "Haswell")),
    "without AVX2": (sys.executable, without(WIDE, "Nehalem")),
    "oldest NumPy": (str(ROOT / ".venv-oldest-book" / "bin" / "python"), {}),
    "newest packages": (str(ROOT / ".venv-newest" / "bin" / "python"), {}),
    "ARM": (os.environ.get("PE_NUMPY_ARM", ""), {}),
}
CHAPTERS = (
    "-m pytest -q -n 2 --dist loadscope -p no:cacheprovider --nbval --nbval-current-env "
    "--nbval-cell-timeout=1200 notebooks"
)
REAL = "-m pytest -c tests/real/pytest.ini tests/real"
VERSIONS = (
    "from platform import machine, python_version; import matplotlib, numpy; "
    "print(machine(), python_version(), numpy.__version__, matplotlib.__version__)"
)


def with_weights() -> list[str]:
    """Commands for what needs trained weights, of the models that are there."""
    build = script("notebooks/build.py")
    stems = [stem for stem in build.toc.trained() if not build.missing(stem)]
    chapters = " ".join(f"notebooks/{stem}.ipynb" for stem in stems)
    return [*([CHAPTERS.replace("notebooks", chapters)] if stems else []), REAL]


def main(names: list[str]) -> int:
    """Run the rows and print their table; 1 if one of them failed."""
    failed, commands = False, [CHAPTERS]
    if "--weights" in names:
        names, commands = [name for name in names if name != "--weights"], with_weights()
        os.environ[FOLDER] = str(weights_folder().resolve())  # a kernel runs in another folder
    print(f"{'row':18} {'machine':8} {'Python':8} {'NumPy':7} {'mpl':7} result", flush=True)
    for name, (python, variables) in ROWS.items():
        if names and not any(name.startswith(wanted) for wanted in names):
            continue
        if not Path(python).is_file():
            print(f"{name:18} not run: {python or 'PE_NUMPY_ARM'} is not there", flush=True)
            continue
        env = {**os.environ, **variables, "PYTHONPATH": str(ROOT)}
        versions = run(python, "-c", VERSIONS, env=env).stdout.split()
        for command in commands:
            start = time.time()
            done = run(python, *command.split(), env=env)
            failed |= done.returncode != 0
            last = (done.stdout.strip() or done.stderr.strip() or "nothing").splitlines()[-1]
            said = re.sub(r" in [\d.]+s.*|=", "", last).strip()
            machine, *others = (*versions, *"????")[:4]
            words = f"{machine:8} {others[0]:8} {others[1]:7} {others[2]:7}"
            print(f"{name:18} {words} {said}, {time.time() - start:.0f} s", flush=True)
            if done.returncode:
                print(*re.findall(r"^(?:FAILED|ERROR) .*$", done.stdout, re.M)[:20], sep="\n")
    return int(failed)


def run(*command: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program and keep what it says."""
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

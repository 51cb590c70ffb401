"""What the Makefile does, where there is no make (on Windows): set up, then build or test.

Usage: python make.py         like `make`: executes every notebook and builds the web book
       python make.py test    like `make test`

It needs Python 3.11 or newer. Variables of the environment are set and dropped as the Makefile
says; what is installed goes into .venv and is installed again when the lock has changed.
"""

import os
import re
import subprocess
import sys
import venv
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parent
HOME = ROOT / ".venv"
BIN = HOME / ("Scripts" if os.name == "nt" else "bin")
LOCK = ROOT / "requirements" / "dev.lock"
LAST = """
The book is ready. Read it in a browser: open docs/_build/html/index.html. Or type one of these:

    {here} make.py test    # prove all of it
    {python} -m pe_numpy list    # every function; those with * are homework"""
TARGETS = {
    "all": ["notebooks/build.py", "docs/build.py"],
    "test": [
        "-m pytest -q -n 2 --dist loadscope --nbval --nbval-current-env --nbval-cell-timeout=120"
    ],
}


def environment() -> dict[str, str]:
    """The variables that the Makefile passes on, and those that it sets."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", "")
    dropped = re.search(r"^unexport \$\(filter (.*),", text, re.M)[1].replace("%", "*").split()
    own = {k: v for k, v in os.environ.items() if not any(fnmatchcase(k, d) for d in dropped)}
    return own | dict(re.findall(r"^export (\w+) := (.*)$", text, re.M))


def python(*arguments: str) -> None:
    """Run the Python of .venv; end where it fails."""
    command = [str(BIN / "python"), *arguments]
    code = subprocess.run(command, cwd=ROOT, env=environment()).returncode
    if code:
        sys.exit(code)


def set_up() -> None:
    """Make .venv with the packages of the lock, and with this one, unless it is there."""
    done = HOME / "ok"
    made_of = (LOCK, LOCK.with_name("bootstrap.lock"), ROOT / "pyproject.toml")
    if done.exists() and done.stat().st_mtime >= max(path.stat().st_mtime for path in made_of):
        return
    print("Setting up .venv from requirements/dev.lock ...", flush=True)
    venv.create(HOME, clear=True, with_pip=True)
    python(*"-m pip install -qq --require-hashes -r requirements/bootstrap.lock".split())
    python(*"-m uv pip install -q --require-hashes -r requirements/dev.lock".split())
    python(*"-m uv pip install -q --no-deps --no-build-isolation -e .".split())
    done.touch()


def main(arguments: list[str]) -> None:
    """Set up, and run a target."""
    if sys.version_info < (3, 11):  # noqa: UP036
        sys.exit("make.py: pe_numpy needs Python 3.11 or newer")
    target, *others = arguments or ["all"]
    if others or target not in TARGETS:
        sys.exit(f"make.py: it knows {' and '.join(TARGETS)}; got {' '.join(arguments)}")
    set_up()
    for command in TARGETS[target]:
        python(*command.split())
    if target == "all":
        print(last_words(), flush=True)


def last_words() -> str:
    """What to do with the book, in lines that work as they are printed."""
    windows = os.name == "nt"
    own = (BIN / "python").relative_to(ROOT)
    return LAST.format(here="py" if windows else "python3", python=own)


if __name__ == "__main__":
    main(sys.argv[1:])

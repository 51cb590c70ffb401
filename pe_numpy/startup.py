"""Takes the current folder off the import path of `python -m pe_numpy`, before all else.

Python puts that folder first. In a folder of submissions, a file called numpy.py or json.py would
be imported in place of the library, and run inside the checker. The script `pe-numpy` never sees
that folder. Python itself imports functools, types, warnings and their like before this line runs:
if one of these came from the folder, the call ends here. Who imports pe_numpy from a program of
their own keeps their path.
"""

import os
import sys
from importlib.util import find_spec


def is_command() -> bool:
    """Whether this is `python -m pe_numpy`, not a program that imports the package."""
    return sys.argv[:1] == ["-m"] and any(word.endswith("pe_numpy") for word in sys.orig_argv)


def leave_folder() -> None:
    """Take the current folder off the path, if it is there because of `-m pe_numpy`."""
    try:
        here = os.getcwd()
    except OSError:  # it was deleted, and is not on the path
        return
    if not is_command() or sys.flags.safe_path or sys.path[0] != here:
        return
    del sys.path[0]
    files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    hiding = sorted(os.path.basename(file) for file in files if os.path.dirname(file) == here)
    if hiding:
        raise SystemExit(
            f"python -m pe_numpy: {', '.join(hiding)} in this folder took the place of Python's "
            "own; call pe-numpy, or python -P -m pe_numpy"
        )


def need_numpy() -> None:
    """End the command in one line where Python has no NumPy, as before `.venv` is activated."""
    if is_command() and find_spec("numpy") is None:
        raise SystemExit(
            "python -m pe_numpy: this Python has no NumPy; in the book's folder, type `source "
            ".venv/bin/activate` after `make` (Windows: `.venv\\Scripts\\activate`), or "
            "`python -m pip install numpy`"
        )


leave_folder()
need_numpy()

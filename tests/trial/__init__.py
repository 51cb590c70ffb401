"""A class of sixty files: right, wrong, broken, hostile and copied ones.

Each student hands in one file with three functions. Most are put together from the answers of
`tests/answers`, by their places there; the rest of a file is written here. What the homework must
say of each stands in notebooks/results/class.csv.
"""

from __future__ import annotations

import ast
import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pe_numpy.copy.copy import SOLUTIONS, copy

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RESULTS = ROOT / "notebooks" / "results" / "class.csv"
ASSIGNMENT = HERE / "class.toml"
EXERCISES = ("softmax", "sinusoidal", "rope")
RIGHT = ("odd 2", "odd 23", "odd 26")  # places of the right answers
SECONDS = 8  # that a function gets: endless ones cost as much
Text = str | bytes | Callable[[Path], object]
CLASS: dict[str, tuple[str, str, Text]] = {}  # by student: the kind, what it is, the file


# ---- files from answers --------------------------------------------------------------------------


class Kept(NamedTuple):
    """An answer as it stands in its file, with what the file has beside its answers."""

    exercise: str
    text: str
    flaw: str
    helpers: list[str]


@cache
def _kept(file: str) -> list[Kept]:
    """The answers of a file, in their order."""
    text = (ROOT / "tests" / "answers" / f"{file}.py").read_text(encoding="utf-8")
    nodes = [n for n in ast.parse(text).body[1:] if getattr(n, "module", "") != "answers"]
    answers = [n for n in nodes if isinstance(n, ast.FunctionDef) and n.decorator_list]
    helpers = [ast.unparse(node) for node in nodes if node not in answers]
    found = []
    for node in answers:
        (how,) = node.decorator_list
        flaw = how.args[0].value if isinstance(how, ast.Call) else ""
        node.decorator_list = []
        found.append(Kept(node.name, ast.unparse(node), flaw, helpers))
    return found


def kept(place: str) -> Kept:
    """An answer by its place, as in "rope 3"."""
    file, number = place.split()
    return _kept(file)[int(number) - 1]


def of(*places: str) -> str:
    """A file of answers that are named by their places, or written out."""
    found = [Kept("", place, "", []) if "\n" in place else kept(place) for place in places]
    helpers = dict.fromkeys(text for one in found for text in one.helpers)
    return "\n\n\n".join([*helpers, *(one.text for one in found)]) + "\n"


def but(place: str = "", **written: str) -> str:
    """A right file, but for one answer, or for one that is written out."""
    wrong = {kept(place).exercise: place} if place else written
    return of(*{**dict(zip(EXERCISES, RIGHT, strict=True)), **wrong}.values())


OWN = of(*RIGHT)


def student(kind: str, name: str, what: str, text: Text) -> None:
    """Add a student to the class."""
    assert name not in CLASS
    CLASS[name] = kind, what, text


def notebook(*cells: str) -> str:
    """A notebook with these code cells."""
    made = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": c} for c in cells]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})


# ---- right ---------------------------------------------------------------------------------------

RIGHT_TEXT = "\n".join(
    (SOLUTIONS / f"{stem}.py").read_text(encoding="utf-8")
    for stem in ("10_attention", "20_sinusoidal", "40_rope_derived")
)
student("right", "ada", "the solutions of the book", RIGHT_TEXT)
student("right", "anna", "loops over rows and fractions", of("odd 1", "odd 22", "odd 26"))
student("right", "bela", "other odd styles", OWN)
student("right", "bo", "a notebook with a plot's magic", notebook("%matplotlib inline\n" + OWN))
student("right", "carl", "prints and writes files", "print('hello')\nopen('out', 'w')\n" + OWN)
student("right", "chen", "reads its command line", "import sys\nassert len(sys.argv) == 1\n" + OWN)
student("right", "dai", "a byte order mark", "\ufeff" + OWN)
student("right", "dora", "a helper of its own", OWN + "\nfrom helper import two\nassert two == 2\n")
student("right", "ed", "warns when it is imported", "import warnings\nwarnings.warn('x')\n" + OWN)
student("right", "rosa", "an unused library that is not there", "import no_such_library\n" + OWN)
student("right", "emil", "a thread that sleeps on", "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\n" + OWN)  # fmt: skip

# ---- wrong ---------------------------------------------------------------------------------------

for name, place in {
    "fay": "rope 1", "finn": "rope 1", "gil": "rope 2", "hal": "rope 6", "hana": "rope 6",
    "ida": "rope 11", "inka": "rope 13", "jan": "sinusoidal 1", "jon": "sinusoidal 4",
    "kim": "sinusoidal 6", "klara": "sinusoidal 12", "lea": "attention 1", "lou": "attention 5",
}.items():  # fmt: skip
    student("wrong", name, kept(place).flaw, but(place))
student("wrong", "mai", "three mistakes", of("attention 4", "sinusoidal 7", "rope 4"))
ROPE = '\ndef rope(x, positions, frequencies=None, layout="interleaved"):\n    '
student("wrong", "mo", "nothing is returned", but(rope=ROPE + "x = 2 * x"))

# ---- broken --------------------------------------------------------------------------------------

student("broken", "nat", "a syntax error", OWN + "def more(:\n")
student("broken", "nils", "a crash", but(rope=ROPE + "import ctypes; ctypes.string_at(0)"))
student("broken", "noa", "an empty file", "")
student("broken", "olaf", "an endless function", but(rope=ROPE + "while True: pass"))
student("broken", "olga", "an endless import", OWN + "import time\nwhile True: time.sleep(1)\n")
student("broken", "oskar", "all memory", but(rope=ROPE + "return bytearray(10**11)"))
student("broken", "pam", "a class for a function",
        but(rope="\nclass rope:\n    def __init__(self, *args): pass"))  # fmt: skip
student("broken", "paul", "a folder", Path.mkdir)
student("broken", "pia", "a notebook that is none", '{"cells": 3}')
student("broken", "quin", "one function is a stub", but(rope=ROPE + "raise NotImplementedError"))
student("broken", "ravi", "a name misspelled", OWN.replace("def rope(", "def ropes("))

# ---- hostile -------------------------------------------------------------------------------------

student("hostile", "numpy", "a file called numpy.py", OWN)
student("hostile", "sam", "deletes the folder that it works in",
        "import os, shutil\nshutil.rmtree(os.getcwd())\n" + OWN)  # fmt: skip
student("hostile", "sara", "deletes the folder of the results",
        "import os, shutil\nshutil.rmtree(os.path.dirname(os.getcwd()))\n" + OWN)  # fmt: skip
student("hostile", "sven", "leaves a detached child",
        "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', "
        "'import time; time.sleep(99)', __file__], start_new_session=True)\n" + OWN)  # fmt: skip
student("hostile", "theo", "a huge output",
        "import sys\nfor _ in range(50):\n    print('x' * 10**6)\n    "
        "print('y' * 10**6, file=sys.stderr)\n" + OWN)  # fmt: skip
student("hostile", "tom", "ends the program", OWN + "import sys\nsys.exit(0)\n")
student("hostile", "uli", "ends the process in a function",
        but(softmax="\ndef softmax(x, axis=-1):\n    import os; os._exit(0)"))  # fmt: skip
student("hostile", "ute", "changes NumPy", but("rope 1") + "\nnp.array_equal = np.allclose = "
        "lambda *a, **o: True\nnp.max = None\n")  # fmt: skip

WRONG = but("rope 1")
student("hostile", "uma", "a pipe in the place of its results, and no more",
        "import os\nfor name in ('../rope.out', '../import error', 'softmax.out'):\n"
        "    os.mkfifo(name)\nos._exit(0)\n" + OWN)  # fmt: skip
student("hostile", "urs", "ends the checker", OWN + "import os\nos.kill(os.getppid(), 9)\n")
student("hostile", "udo", "rewrites its neighbours", OWN + """
from pathlib import Path
for place in Path(__file__).parent.glob("*.py"):
    if place.name != Path(__file__).name:
        place.write_text("def rope(x, positions): return 0 * x")
""")  # fmt: skip
student("hostile", "una", "looks for the right function in all objects", WRONG + """
import gc
for one in gc.get_objects():
    if type(one).__name__ == "Exercise" and one.name == "rope":
        rope = one.reference
""")  # fmt: skip
student("hostile", "ugo", "looks for it in the frames that call it", WRONG + """
import sys
frame = sys._getframe()
while frame:
    if "EXERCISES" in frame.f_globals:
        rope = frame.f_globals["EXERCISES"]["rope"].reference
    frame = frame.f_back
""")  # fmt: skip
student("hostile", "ulla", "looks for it where modules are kept", WRONG + """
import sys
for one in sys.meta_path:
    if hasattr(one, "kept"):
        rope = one.kept["pe_numpy.homework.registry"].EXERCISES["rope"].reference
""")  # fmt: skip
student("hostile", "uta", "lets another Python compute", but(rope=ROPE + """
    import pickle, subprocess, sys
    code = ("import pickle, sys, pe_numpy; given = pickle.load(sys.stdin.buffer); "
            "sys.stdout.buffer.write(pickle.dumps(pe_numpy.rope(*given)))")
    given = pickle.dumps((x, positions, frequencies, layout))
    done = subprocess.run([sys.executable, "-c", code], input=given, capture_output=True)
    return pickle.loads(done.stdout)
"""))  # fmt: skip
student("hostile", "ulf", "leaves a child in another session, without environment",
        OWN + "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', "
        "'import time; time.sleep(99)', __file__], start_new_session=True, env={})\n")  # fmt: skip
student("hostile", "unni", "starts processes, each of which starts more", OWN + """
import os, time
first = os.getpid()
for _ in range(6):
    os.fork()
if os.getpid() != first:
    time.sleep(99)
""")  # fmt: skip
student("hostile", "uwe", "fills the disk", OWN + """
for n in range(9):
    with open(str(n), "wb") as file:
        file.write(bytes(2**26))
""")  # fmt: skip

# ---- copied --------------------------------------------------------------------------------------

student(
    "copied",
    "vera",
    "calls the package",
    but(rope=ROPE + "import pe_numpy; return pe_numpy.rope(x, positions, frequencies, layout)"),
)
student(
    "copied",
    "vic",
    "reads the registry",
    "from pe_numpy.homework.registry import EXERCISES\n"
    + but(rope="\nrope = EXERCISES['rope'].reference"),
)
student("copied", "vito", "carries the licence of a copy", copy(["rope"]) + of(*RIGHT[:2]))
student("copied", "will", "imports a neighbour", "from ada import rope, sinusoidal, softmax\n"
        "softmax, sinusoidal, rope = softmax, sinusoidal, rope\n")  # fmt: skip
student("copied", "xaver", "changes the checker", but("rope 1") + "\nimport pe_numpy.homework.check"
        " as check\ncheck.judge = check.difference = lambda *a, **o: ''\n")  # fmt: skip


# ---- the class -----------------------------------------------------------------------------------

ENDINGS = {"bo": ".ipynb", "pia": ".ipynb"}
NEIGHBOURS = {
    "helper/__init__.py": "two = 2\n",
    "json/__init__.py": "raise SystemExit('imported')\n",
    "random/__init__.py": "raise SystemExit('imported')\n",
}


def write(folder: Path) -> list[str]:
    """Write the files of the class, and tell their paths."""
    for name, text in NEIGHBOURS.items():
        (folder / name).parent.mkdir()
        (folder / name).write_text(text, encoding="utf-8")
    paths = []
    for name, (_, _, text) in CLASS.items():
        path = folder / f"{name}{ENDINGS.get(name, '.py')}"
        if callable(text):
            text(path)
        else:
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        paths.append(str(path))
    return paths


# ---- what is said of it --------------------------------------------------------------------------


def rows_of(grades: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """A row for each student, from what `check --json` prints of a class."""
    rows = []
    for one in grades:
        said = {verdict["name"]: verdict for verdict in one["verdicts"]}
        kind, what, _ = CLASS[one["student"]]
        notes = dict.fromkeys(v["problem"] for v in said.values() if not v["cases"])
        rows.append(
            {
                **{"student": one["student"], "kind": kind, "what": what},
                **{name: _word(said[name]) for name in EXERCISES},
                "points": f"{one['total']:g}",
                "problem": "; ".join(notes),
                "flags": "; ".join(one["flags"]),
            }
        )
    return rows


def _word(verdict: dict[str, Any]) -> str:
    """A verdict in a word, as a summary of the class has it."""
    if verdict["passed"]:
        return "right"
    ran = verdict["cases"] and not verdict["problem"].endswith(" not written yet")
    return verdict["mistake"] or ("another mistake" if ran else "not run")


def summary_of(rows: Sequence[dict[str, str]]) -> dict[str, Counter[str]]:
    """How often each mistake was made, the commonest first."""
    words = {name: Counter(row[name] for row in rows) for name in EXERCISES}
    return {name: Counter(dict(found.most_common())) for name, found in words.items()}


def read() -> list[dict[str, str]]:
    """The rows that were looked through."""
    return list(csv.DictReader(io.StringIO(RESULTS.read_text(encoding="utf-8"))))


def record(rows: Sequence[dict[str, str]]) -> None:
    """Write the rows."""
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*rows[0]], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)

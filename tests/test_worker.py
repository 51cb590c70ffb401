"""The process that runs an answer: what reaches it, what it gives back, and what it can't do."""

import io
import math
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from pe_numpy.__main__ import main
from pe_numpy.homework import runner, worker
from pe_numpy.homework.cases import call
from pe_numpy.homework.registry import EXERCISES
from pe_numpy.homework.worker import FUNCTIONS, pack, unpack

APART = pytest.mark.skipif(not runner.apart(), reason="unshare is refused here")
OWN = """
def rope_frequencies(d, base=10000.0):
    return [base ** (-2 * i / d) for i in range(d // 2)]
"""
NONE = """
def rope_frequencies(d, base=10000.0):
    return [0.0] * (d // 2)
"""


def report(folder, text, *names, **limits):
    path = folder / "answers.py"
    path.write_text(text)
    return runner.check_file(path, names, **{"seconds": 30, **limits})


def note(folder, text):
    """What is told of lines that fail; the answer below them is right all the same."""
    result = report(folder, text + OWN)
    assert result.passed, str(result)
    return " ".join(result.notes)


@pytest.fixture(params=["apart", "together"])
def room(request, monkeypatch):
    """With the room of its own that Linux gives a process, and without."""
    if request.param == "together":
        monkeypatch.setattr(runner, "apart", lambda: ())
    elif not runner.apart():
        pytest.skip("unshare is refused here")


# ---- what travels -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXERCISES)
def test_every_case_arrives_as_it_was_sent(name):
    """A function has a name in the table, a generator its state, an array its layout."""
    for one in EXERCISES[name].all_cases():
        args, options, drive = unpack(io.BytesIO(pack(tuple(one))))
        sent = call(EXERCISES[name].reference, one)
        found = worker.called(EXERCISES[name].reference, args, options, drive)
        assert [a.tobytes() for a in found[0]] == [a.tobytes() for a in sent.results]
        assert found[1] == sent.error
        arrays = zip((*args, *options.values()), (*one.args, *one.options.values()), strict=True)
        for a, b in arrays:
            if isinstance(b, np.ndarray):
                assert a.dtype == b.dtype and a.shape == b.shape and a.flags.writeable
                assert a.flags.c_contiguous == b.copy(order="K").flags.c_contiguous


def test_what_has_no_name_does_not_travel():
    with pytest.raises(TypeError, match=r"of worker\.py; got <function"):
        pack([lambda x: x])
    with pytest.raises(TypeError, match="got <class"):
        pack({"a": type})
    assert unpack(io.BytesIO(pack(FUNCTIONS["halved"])))(4.0) == 3.0
    assert math.isnan(unpack(io.BytesIO(pack(math.nan))))


def test_the_worker_imports_nothing_of_the_package():
    """Else the reference would be in the process, or it would not start."""
    lines = Path(worker.__file__).read_text(encoding="utf-8").splitlines()
    imported = {line.split()[1].partition(".")[0] for line in lines if "import " in line[:12]}
    assert imported - sys.stdlib_module_names - {"numpy"} == set()


# ---- the reference is not there -----------------------------------------------------------------

SEARCHES = {
    "modules": "import sys\nfound = [m for n, m in sys.modules.items() if 'pe_numpy' in n]",
    "meta path": "import sys\nfound = [f.kept for f in sys.meta_path if hasattr(f, 'kept')]",
    "garbage": (
        "import gc\nfound = [o for o in gc.get_objects() if hasattr(o, 'reference')]\n"
        "found += [f for f in gc.get_objects() if getattr(f, '__name__', '') == 'rope_frequencies'"
        " and f is not globals().get('rope_frequencies')]"
    ),
    "frames": (
        "import sys\nframe, found = sys._getframe(), []\nwhile frame:\n"
        "    found += [v for d in (frame.f_locals, frame.f_globals) for v in d.values()"
        " if hasattr(v, 'reference') or getattr(v, '__name__', '').startswith('pe_numpy')]\n"
        "    frame = frame.f_back"
    ),
    "classes": "found = [c for c in object.__subclasses__() if c.__module__.startswith('pe_num')]",
    "import": "import importlib\nfound = [importlib.import_module('pe_' + 'numpy')]",
    "a path": "import sys\nsys.path.insert(0, {root!r})\nimport pe_numpy\nfound = [pe_numpy]",
    "a file": "found = [open({package!r} + '/rotary/rope.py').read()]",
    "a link": "import os\nos.symlink({package!r}, 'x')\nfound = [open('x/__init__.py').read()]",
    "a descriptor": (
        "import os\nfd = os.open({package!r}, os.O_RDONLY)\n"
        "found = [os.read(os.open('__init__.py', os.O_RDONLY, dir_fd=fd), 99)]"
    ),
    "its own root": "found = [open('/proc/self/root' + {package!r} + '/__init__.py').read()]",
    "a child": (
        "import subprocess, sys\nfound = [subprocess.run([sys.executable, '-c', "
        "'import sys; sys.path.insert(0, sys.argv[1]); import pe_numpy; print(pe_numpy)', "
        "{root!r}], capture_output=True, check=True).stdout]"
    ),
    "a path that lies": (
        "import io\nclass Lie:\n    n = 0\n    def __fspath__(self):\n        self.n += 1\n"
        "        return {package!r} + '/__init__.py' if self.n % 2 == 0 else '/dev/null'\n"
        "found = [io.FileIO(Lie()).read()]"
    ),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_nothing_leads_to_the_reference(tmp_path, room, name):
    package = str(runner.PACKAGE)
    search = SEARCHES[name].replace("{package!r}", repr(package))
    search = search.replace("{root!r}", repr(str(runner.PACKAGE.parent)))
    body = "".join(f"    {line}\n" for line in f"{search}\nreturn found".splitlines())
    text = (
        f"def search():\n{body}try:\n    got = search()\nexcept Exception:\n    got = []\n"
        "assert not got, got\n"
    )
    assert note(tmp_path, text) == ""


def test_a_neighbours_answer_can_not_be_read_where_it_lies(tmp_path, room):
    paths = [tmp_path / "right.py", tmp_path / "thief.py"]
    paths[0].write_text(OWN)
    paths[1].write_text(NONE + f"exec(open({str(paths[0])!r}).read())\n")
    right, thief = runner.check_files(paths)
    assert right.passed and not thief.passed
    assert "others' answers are not there for an answer (line 4" in thief.notes[0]


def test_the_hook_is_not_changed_through_the_frame_of_what_it_refuses(tmp_path, room):
    text = """
import sys
def written():
    try:
        return open(PLACE, "w")
    except OSError as error:
        return error
frame = written().__traceback__.tb_next.tb_frame
for name, value in list(frame.f_locals.items()):
    for change in (lambda: value.clear(), lambda: frame.f_locals.update({name: ()})):
        try:
            change()
        except Exception:
            pass
places = frame.f_globals, frame.f_builtins
kept = [dict(place) for place in places]
lies = {name: lambda *a, **o: () for name in ("isinstance", "frozenset", "PermissionError", "type",
    "str", "range", "len", "_REFUSED", "_CHANGES", "_WRITES", "guard", "os")}
for place in places:
    place.update(lies)
found = written()
for place, was in zip(places, kept):
    place.clear()
    place.update(was)
assert type(found) is not PermissionError, "still refused"
""".replace("PLACE", repr(str(tmp_path / "outside")))
    assert "AssertionError: still refused" in note(tmp_path, text)
    assert not (tmp_path / "outside").exists()


def test_a_forger_of_results_knows_none(tmp_path, room):
    text = """
import os, json
os.write(200, json.dumps([]).encode() + b"\\n")
os.write(200, json.dumps(["", [[[3], "", [], 0]], False]).encode() + b"\\n")
"""
    assert not report(tmp_path, text + NONE).passed


# ---- what it may not do -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("os.kill(os.getppid() or 99, 9)", "os.kill is refused"),
        ("os.killpg(os.getpgid(0), 9)", "os.killpg is refused"),
        ("os.system('true')", "os.system is refused"),
        ("os.fork()", "os.fork is refused"),
        ("import subprocess; subprocess.run(['true'])", "subprocess.Popen is refused"),
        ("os.execv('/bin/true', ['true'])", "os.exec is refused"),
        ("os.posix_spawn('/bin/true', ['true'], {})", "os.posix_spawn is refused"),
        ("import socket; socket.create_connection(('127.0.0.1', 9))", "socket.connect is refused"),
        ("import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1))", "is refused"),
        ("open({outside!r}, 'w')", "an answer may write only in its own folder"),
        ("open({outside!r}, 'a')", "an answer may write only in its own folder"),
        ("open('../answers.py', 'wb')", "an answer may write only in its own folder"),
        ("os.mkdir({outside!r} + '.d')", "an answer may write only in its own folder"),
        ("os.rename('answers.py', {outside!r})", "an answer may write only in its own folder"),
        ("os.remove({outside!r})", "an answer may write only in its own folder"),
        ("os.chmod({outside!r}, 0)", "an answer may write only in its own folder"),
        ("os.open(b'/', os.O_RDONLY)", "an answer may write only in its own folder"),
        (
            "os.makedirs('a/b/c'); fd = os.open('.', os.O_RDONLY); os.chdir('a/b/c'); "
            "os.open('../../x', os.O_WRONLY | os.O_CREAT, dir_fd=fd)",
            "an answer may write only in its own folder",
        ),
    ],
)
def test_what_no_answer_needs_is_refused(tmp_path, room, line, words):
    outside = tmp_path / "outside"
    outside.write_text("whole")
    text = "import os\n" + line.replace("{outside!r}", repr(str(outside)))
    assert words in note(tmp_path, text + "\n")
    assert outside.read_text() == "whole" and outside.stat().st_mode & 0o600


def test_what_answers_do_is_allowed(tmp_path, room):
    text = """
import os, tempfile, threading, shutil, numpy as np
from pathlib import Path
np.save("a.npy", np.ones(3))
assert np.load("a.npy").sum() == 3
Path("d/e").mkdir(parents=True)
Path("d/e/f").write_text("x")
os.rename("d/e/f", os.path.abspath("d/g"))
shutil.rmtree("d")
with tempfile.NamedTemporaryFile() as file:
    file.write(b"x")
open(os.devnull, "w").close()
open(__file__).read()
threading.Thread(target=print).start()
assert sorted(os.listdir(Path(__file__).parent)) == ["a.npy", "answers.py"]
"""
    assert note(tmp_path, text) == ""


# ---- by compiled code: only a room of its own helps ---------------------------------------------

LIBC = "import ctypes, os\nlibc = ctypes.CDLL(None)\n"


def alive(mark):
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += [place.parent.name] if mark.encode() in place.read_bytes() else []
    return found


@APART
def test_a_child_of_another_session_without_environment_does_not_live_on(tmp_path):
    mark = f"86{os.getpid()}"
    text = (
        LIBC
        + f"""
if libc.fork() == 0:
    libc.setsid()
    if libc.fork() == 0:
        words = (ctypes.c_char_p * 3)(b"sleep", b"{mark}", None)
        libc.execve(b"/bin/sleep", words, (ctypes.c_char_p * 1)(None))
    libc._exit(0)
import time
time.sleep(0.3)
"""
    )
    assert note(tmp_path, text) == "" and alive(mark) == []


@APART
def test_the_checker_can_not_be_signalled(tmp_path):
    """A program that checks a file goes on, though the file signals all processes that it may."""
    path = tmp_path / "answers.py"
    kills = "for n in (os.getppid() or 2, -1, *range(2, 40000)): libc.kill(n, 9)\n"
    path.write_text(LIBC + kills + OWN)
    code = "import sys, pe_numpy.homework.runner as r; print(r.check_file(sys.argv[1]))"
    command = [sys.executable, "-c", code, path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "rope_frequencies: right" in done.stdout, done.stderr


@APART
def test_many_processes_end_with_the_first(tmp_path):
    text = (
        LIBC
        + """
import time
end = time.monotonic() + 1
made = 0
while time.monotonic() < end and made < 60:
    if libc.fork() == 0:
        libc.sleep(99)
        libc._exit(0)
    made += 1
"""
    )
    start = time.monotonic()
    assert note(tmp_path, text) == "" and time.monotonic() - start < 20


@APART
def test_the_package_is_empty_for_compiled_code_too(tmp_path):
    place = str(runner.PACKAGE / "__init__.py").encode()
    assert note(tmp_path, LIBC + f"assert libc.open({place!r}, 0) == -1\n") == ""


# ---- disk, memory, pipes ------------------------------------------------------------------------


def test_a_file_that_fills_the_disk_is_told_or_stopped(tmp_path, room):
    text = "for n in range(9):\n    with open(str(n), 'wb') as f:\n        f.write(bytes(2**24))\n"
    result = report(tmp_path, text + OWN)
    stopped = "OSError: [Errno 28] No space left on device" in " ".join(result.notes)
    (verdict,) = result.verdicts
    assert stopped if runner.apart() else verdict.problem == "it wrote 144 MB of files"
    assert report(tmp_path, f"open('x', 'wb').truncate(2**30)\n{OWN}").notes
    assert [path.name for path in tmp_path.iterdir()] == ["answers.py"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name here")
@pytest.mark.parametrize("name", ["../rope_frequencies.out", "../import error", "answers.py"])
def test_a_pipe_with_a_name_is_never_waited_for(tmp_path, room, name):
    start = time.monotonic()
    text = f"import os\nif os.path.exists({name!r}): os.remove({name!r})\nos.mkfifo({name!r})\n"
    (verdict,) = report(tmp_path, text + "os._exit(0)\n" + OWN).verdicts
    assert verdict.problem == "the process ended before the function did"
    assert time.monotonic() - start < 15


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have fewer limits")
def test_limits_are_tried():
    found = runner.limits_not_in_force()
    assert ["compiled" in line for line in found].count(True) == (not runner.apart())
    assert ("the number of processes" in found) == (os.geteuid() == 0)
    assert not {"the memory of a process", "the size of a file"} & {*found}


def test_a_limit_that_is_not_in_force_is_told(monkeypatch):
    text = Path(worker.__file__).read_text(encoding="utf-8")
    changed = text.replace('    limit(job["left"], job["megabytes"])\n', "")
    assert text != changed
    monkeypatch.setattr(runner, "apart", lambda: ())
    monkeypatch.setattr(runner.inspect, "getsource", lambda module: changed)
    found = runner.limits_not_in_force()
    assert {"the memory of a process", "the size of a file"} < {*found} and len(found) >= 3


# ---- arrays of other libraries ------------------------------------------------------------------

LIBRARY = """
import numpy as np
class Tensor:
    def __init__(self, array):
        self.array = array
    def __array__(self, dtype=None, copy=None):
        return self.array
    def view(self, *shape):
        return Tensor(self.array.reshape(shape))
    def transpose(self, a, b):
        return Tensor(self.array.swapaxes(a, b))
    @property
    def shape(self):
        return self.array.shape
def asarray(array):
    return Tensor(np.array(array))
"""
PORT = """
def merge_heads(x):
    *batch, H, L, K = x.shape
    return x.transpose(-2, -3).{}(*batch, L, H * K)
"""


def checked(capsys, *words):
    """What `check` prints on a command line."""
    main(["check", *map(str, words)])
    return capsys.readouterr().out


def test_an_answer_in_another_library_gets_its_arrays_from_a_command_line(
    tmp_path, monkeypatch, capsys, room
):
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "tensors.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(str(tmp_path / "library"))
    for method, told in (("view", "right in all"), ("reshape", "it failed with AttributeError")):
        path = tmp_path / "answers.py"
        path.write_text(PORT.format(method))
        assert told in checked(capsys, path, "--to", "tensors")
    assert "merge_heads: it failed" in checked(capsys, path)  # NumPy's transpose has all axes


@pytest.mark.parametrize("name", ["no_such_library", "no.such.library"])
def test_a_library_that_is_not_there_is_told(tmp_path, name, capsys):
    (tmp_path / "answers.py").write_text(OWN)
    assert main(["check", str(tmp_path / "answers.py"), "--to", name]) == 2
    assert f"--to must name a library that is installed; got {name}" in capsys.readouterr().err


def test_an_answer_in_torch_is_checked(tmp_path, capsys):
    pytest.importorskip("torch")
    path = tmp_path / "answers.py"
    path.write_text(
        """
import math, torch
def softmax(x, axis=-1):
    top = x.amax(axis, keepdim=True)
    e = torch.exp(x - torch.where(torch.isfinite(top), top, torch.zeros_like(top)))
    total = e.sum(axis, keepdim=True)
    return e / torch.where(total == 0, torch.ones_like(total), total)
"""
        + PORT.format("reshape")
    )
    words = ("--to", "torch", "--megabytes", 20000, "--seconds", 100)
    assert checked(capsys, path, *words).count("right in all") == 2

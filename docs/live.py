"""Live cells: fetch Python for the browser, check it, and lay it where the pages find it.

Usage: python docs/live.py         fetch what is missing into docs/_build/live (kept between builds)
       python docs/live.py --pin   write the hashes of `requirements/live.toml` anew

A page can also be opened without a server, and then it may load nothing but scripts and pictures.
So each group of files becomes one script that holds them as text (gzip, base64). Where Node.js is,
what Python imports at its start is compiled ahead: the first output comes in half the time.
"""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

import toc

from pe_numpy.files import write_whole

HERE = Path(__file__).parent
ROOT = HERE.parent
KEPT = HERE / "_build" / "live"
PINS = ROOT / "requirements" / "live.toml"
COMPILE = HERE / "live-compile.mjs"
WORKER = HERE / "_static" / "live-worker.js"
CELLS = HERE / "live_cells.csv"  # chapter, id of a cell, seconds if many, why it differs
RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
# What the chapters read, besides the package: as it lies in the repository.
BOOK = (
    "pe_numpy/**/*.*",
    "notebooks/contents.toml",
    "notebooks/results/*.*",
    "tests/golden/models/**/*.*",
)
FONTS = "matplotlib/fontlist.json"
# Parts of the wheels that draw no figure and run no cell: stubs, headers, samples, fonts for paper,
# slanted Mono and Serif (an upright one stands for them), letters and WebP of Pillow.
UNUSED = "|".join(
    (
        r"\.(pyi|pxd|h|a|c)$",
        r"^numpy/f2py/",
        r"/mpl-data/(sample_data|images|fonts/(afm|pdfcore))",
        r"/DejaVuS(ansMono|erif)-\w*(Oblique|Italic)",
        r"^PIL/_(imagingft|webp)",
    )
)
OFFER = r"<script[^>]*live-cells\.js[^>]*></script>"  # what puts buttons at a page's cells
SECONDS = 120  # to wait for one source

# ---- fetch --------------------------------------------------------------------------------------


def pins() -> dict:
    """Return sources and hashes."""
    return tomllib.loads(PINS.read_text(encoding="utf-8"))


def sha256(data: bytes) -> str:
    """Return the hash of a file's bytes."""
    return hashlib.sha256(data).hexdigest()


def missing() -> list[str]:
    """Files that are not kept, or are not what they should be."""
    return [
        name
        for name, digest in pins()["sha256"].items()
        if not (KEPT / name).exists() or sha256((KEPT / name).read_bytes()) != digest
    ]


def megabytes() -> int:
    """How large the scripts are all together, to a megabyte; 0 if something is missing."""
    scripts = [] if missing() else packed().glob("*.js")
    return round(sum(path.stat().st_size for path in scripts) / 1e6)


def fetch() -> str:
    """Fetch what is missing; return why there are no live cells, or nothing."""
    said = []
    for source in pins()["sources"]:
        if not missing():
            break
        with tempfile.TemporaryDirectory() as folder:
            try:
                client, name = source.split()
                package = download(client, name, Path(folder))
            except (OSError, subprocess.SubprocessError) as error:
                said.append(f"{source}: {reason(error)}")
                continue
            keep(package)
    left = missing()
    return f"{', '.join(left[:3])} not found ({'; '.join(said)})" if left else ""


def download(client: str, name: str, folder: Path) -> Path:
    """Fetch a package by name and version, without what it depends on."""
    if client == "pip":
        command = [sys.executable, "-m", "pip", "download", "-qqq", "--no-deps", "--no-cache-dir"]
        command += ["--retries", "0", "--timeout", "10", "--only-binary", ":all:", name]
    else:
        command = ["npm", "pack", "--silent", "--fetch-retries=0", "--fetch-timeout=10000", name]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=SECONDS)
    return next(folder.iterdir())


def reason(error: Exception) -> str:
    """One line of what a client said."""
    if isinstance(error, subprocess.CalledProcessError):
        lines = error.stderr.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit {error.returncode}"
    return (
        f"longer than {SECONDS} s" if isinstance(error, subprocess.TimeoutExpired) else str(error)
    )


def keep(package: Path) -> None:
    """Keep each file of a package that has the hash of one that is wanted."""
    wanted = {digest: name for name, digest in pins()["sha256"].items()}
    names = set(wanted.values())
    KEPT.mkdir(parents=True, exist_ok=True)
    for _, data in contents(package, names):
        if sha256(data) in wanted:
            write_whole(KEPT / wanted[sha256(data)], data)


def contents(package: Path, names: set[str]) -> Iterator[tuple[str, bytes]]:
    """Files with certain names in a wheel, or in a package of npm."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as wheel:
            for path in wheel.namelist():
                if Path(path).name in names:
                    yield Path(path).name, wheel.read(path)
    else:
        with tarfile.open(package) as archive:
            for member in archive:
                if Path(member.name).name in names:
                    file = archive.extractfile(member)
                    assert file is not None
                    yield Path(member.name).name, file.read()


def pin() -> None:
    """Write the hashes anew: of the files in npm's package, and those in its lock file."""
    with tempfile.TemporaryDirectory() as folder:
        package = download("npm", f"pyodide@{pins()['version']}", Path(folder))
        files = dict(contents(package, {*RUNTIME, "pyodide-lock.json"}))
    lock = json.loads(files["pyodide-lock.json"])
    packages = lock["packages"]
    rows = [(f'"{name}"', sha256(files[name])) for name in RUNTIME]
    rows += [(f'"{p["file_name"]}"', p["sha256"]) for p in map(packages.get, pins()["wheels"])]
    head = PINS.read_text(encoding="utf-8").partition("[info]\n")[0]
    info, digests = (
        [f'{key} = "{x}"\n' for key, x in pairs] for pairs in (lock["info"].items(), rows)
    )
    text = "".join([head, "[info]\n", *info, "\n[sha256]\n", *digests])
    write_whole(PINS, text)


# ---- lay out ------------------------------------------------------------------------------------


def lay(site: Path) -> None:
    """Write runtime, wheels and book as scripts into a site, if they are kept."""
    if missing():
        return
    target = site / "_static" / "live"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(packed(), target)
    licences(target / "licences")
    tell(site)
    offer_none(site)


def offer_none(site: Path) -> None:
    """Take the buttons from cells that need trained weights, which a page has not."""
    for stem in toc.trained():
        page = site / "chapters" / f"{stem}.html"
        text = page.read_text(encoding="utf-8")
        page.write_text(re.sub(OFFER, "", text), encoding="utf-8")


def said() -> list[dict[str, str]]:
    """Rows on cells that run long in the page, or otherwise than in the book."""
    with CELLS.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def tell(site: Path) -> None:
    """Note in the pages what is said of their cells."""
    for stem in {row["chapter"] for row in said()}:
        path, page = ROOT / "notebooks" / f"{stem}.ipynb", site / "chapters" / f"{stem}.html"
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        ids = [cell["id"] for cell in cells if cell["cell_type"] == "code"]
        before, *parts = page.read_text(encoding="utf-8").split('<div class="cell ')
        for row in said():
            if row["chapter"] == stem and row["cell"] in ids:
                n = ids.index(row["cell"])
                data = "".join(
                    f' data-{k}="{escape(row[k])}"' for k in ("seconds", "note") if row[k]
                )
                parts[n] = parts[n].replace('"', f'"{data}', 1)
        page.write_text('<div class="cell '.join([before, *parts]), encoding="utf-8")


def packed() -> Path:
    """Give the scripts, one a group of files, and write them anew if something has changed."""
    folder, stamp, text = KEPT / "packed", KEPT / "packed.txt", book()
    makers = (Path(__file__), PINS, WORKER, COMPILE)
    state = sha256(b"".join([text, node().encode(), *(path.read_bytes() for path in makers)]))
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != state:
        stamp.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for group, files in groups(text).items():
            write_script(folder / f"{group}.js", files)
        write_whole(stamp, state)
    return folder


def groups(text: bytes) -> dict[str, dict[str, bytes]]:
    """Files by name in groups: the runtime, numpy, matplotlib and the book, whose zip is given."""
    kept = {name: (KEPT / name).read_bytes() for name in pins()["sha256"]}
    # Which wheels fit; none is to be fetched from elsewhere.
    lock = json.dumps({"info": pins()["info"], "packages": {}}).encode()
    ahead = compiled(lock, text)
    kept["python_stdlib.zip"] = lean(kept["python_stdlib.zip"], ahead["library"])
    wheels = {n: lean(data, ahead["packages"]) for n, data in kept.items() if n.endswith(".whl")}
    numpy = {name: data for name, data in wheels.items() if name.startswith("numpy-")}
    with zipfile.ZipFile(whole := io.BytesIO(text), "a") as archive:
        for name, data in ahead["book"].items():
            add(archive, name, data)
    return {
        "python": {name: kept[name] for name in RUNTIME} | {"lock.json": lock},
        "numpy": numpy,
        "matplotlib": {name: data for name, data in wheels.items() if name not in numpy},
        "book": {"book.zip": whole.getvalue(), "live-worker.js": WORKER.read_bytes()},
    }


def node() -> str:
    """Give the version of Node.js, if it is there."""
    try:
        command = ["node", "--version"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def compiled(lock: bytes, text: bytes) -> dict[str, dict[str, bytes]]:
    """Compile what Python imports in a page: code by place and path; nothing without Node.js.

    Only the Python that runs in the page compiles for it; the one that runs here has another
    version.
    """
    found: dict[str, dict[str, bytes]] = {"library": {}, "packages": {}, "book": {}}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "lock.json").write_bytes(lock)
        (work / "book.zip").write_bytes(text)
        command = ["node", str(COMPILE), str(KEPT), str(work)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"Python starts slowly in the pages, it was not compiled ahead: {reason(error)}")
            return found
        for place, files in found.items():
            for path in sorted((work / place).rglob("*.pyc")):
                files[path.relative_to(work / place).as_posix()] = path.read_bytes()
    return found


def lean(archive: bytes, ahead: dict[str, bytes]) -> bytes:
    """A zip without what no page needs, and with compiled code in the place of its source."""
    with (
        zipfile.ZipFile(io.BytesIO(archive)) as old,
        zipfile.ZipFile(buffer := io.BytesIO(), "w") as new,
    ):
        for name in old.namelist():
            if name + "c" in ahead:
                add(new, name + "c", ahead[name + "c"])
            elif name == FONTS:
                add(new, name, fonts(old.read(name)))
            elif not re.search(UNUSED, name):
                add(new, name, old.read(name))
    return buffer.getvalue()


def fonts(listed: bytes) -> bytes:
    """Give the list of fonts without those that are left out."""
    whole = json.loads(listed)
    for kind in ("afmlist", "ttflist"):
        whole[kind] = [f for f in whole[kind] if not re.search(UNUSED, f"/mpl-data/{f['fname']}")]
    return json.dumps(whole).encode()


def write_script(path: Path, files: dict[str, bytes]) -> None:
    """Write files as a script that hands them to the page."""
    text = {n: base64.b64encode(gzip.compress(d, 9, mtime=0)).decode() for n, d in files.items()}
    path.write_text(f'peLive.take("{path.stem}",{json.dumps(text)});\n', encoding="ascii")


def book() -> bytes:
    """Zip the package and what the chapters read, and the code that runs cells."""
    from IPython.lib import pretty

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for pattern in BOOK:
            for path in sorted(ROOT.glob(pattern)):
                if path.is_file() and "__pycache__" not in path.parts:
                    add(archive, str(path.relative_to(ROOT)), path.read_bytes())
        add(archive, "cells.py", (HERE / "cells.py").read_bytes())
        add(archive, "pretty.py", Path(pretty.__file__).read_bytes())
    return buffer.getvalue()


def add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Add a file without the time at which it was written."""
    archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def licences(folder: Path) -> None:
    """Put the licences of all that is handed on beside it."""
    from importlib.metadata import distribution

    shutil.copytree(HERE / "licences", folder)
    for path in sorted(KEPT.glob("*.whl")):
        with zipfile.ZipFile(path) as wheel:
            for name in wheel.namelist():
                if re.search(r"dist-info/.*(LICEN[CS]E|COPYING|NOTICE|AUTHORS)[^/]*$", name):
                    file = "-".join([path.name.split("-")[0], *Path(name).parts[1:]])
                    (folder / file.replace("licenses-", "")).write_bytes(wheel.read(name))
    for part in distribution("ipython").files or []:
        if re.search(r"dist-info/.*(LICENSE|COPYING)", str(part)):
            (folder / f"IPython-{part.name}").write_bytes(Path(part.locate()).read_bytes())


def main(arguments: list[str]) -> None:
    """Fetch, or pin."""
    if "--pin" in arguments:
        pin()
        return
    why = fetch()
    here = f"Python for the pages is in docs/_build/live ({megabytes()} MB)"
    print(f"no live cells: {why}" if why else here)


if __name__ == "__main__":
    main(sys.argv[1:])

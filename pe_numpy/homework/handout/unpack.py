"""Run the checker out of its archive; `runpy.run_path` lets a notebook import the package from it.

Inside `checker.pyz` this is `__main__.py`.
"""

import atexit
import runpy
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path


def unpack() -> None:
    """Unpack the archive into a folder, for as long as this process runs."""
    if sys.version_info < (3, 11):  # noqa: UP036 (an archive asks nobody before it runs)
        sys.exit("the checker needs Python 3.11 or newer")
    folder = tempfile.mkdtemp(prefix="checker-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with zipfile.ZipFile(Path(__file__).parent) as archive:
        archive.extractall(folder)
    sys.path.insert(0, folder)


if __name__ in ("__main__", "<run_path>"):
    unpack()
if __name__ == "__main__":
    runpy.run_module("pe_numpy", run_name="__main__", alter_sys=True)

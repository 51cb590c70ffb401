"""Run chapters in the page: which cells take long, and which show something else than the book.

Usage: python tests/browser/live_times.py [STEM ...]   all chapters without a stem (half an hour)

It needs the site that `make test-book` opens. What it prints are rows of docs/live_cells.csv: cells
that take 3 s or more on this machine, and those that differ, for which a reason is to be written.
Seconds are those in which a processor worked for the browser: they are the same beside other work.
"""

import functools
import http.server
import shutil
import sys
import threading

import nbformat
import psutil
from conftest import ROOT, SITE, Quiet
from playwright.sync_api import sync_playwright

RUN = """async ([code, number]) => {
  const start = performance.now();
  const { text, figures, error } = await peLive.run(code, { number });
  return [(performance.now() - start) / 1000, text, figures.length, error];
}"""


def worked():
    """Seconds of all processes of the browser."""
    own = psutil.Process().children(recursive=True)
    return sum(sum(process.cpu_times()[:2]) for process in own)


def rows(page, path):
    """Run the code cells of a chapter one after the other; yield what is to be said of them."""
    page.evaluate("peLive.run('import matplotlib.pyplot', { fresh: true })")
    page.evaluate("peLive.begin()")
    code = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    for n, cell in enumerate(code, 1):
        before = worked()
        passed, text, figures, error = page.evaluate(RUN, [cell.source, n])
        seconds = min(passed, worked() - before)
        printed = "".join(o.text for o in cell.outputs if o.output_type == "stream")
        drawn = sum("image/png" in o.get("data", {}) for o in cell.outputs)
        differs = (text, figures, error) != (printed, drawn, None)
        if seconds >= 3 or differs:
            long = f"{seconds:.0f}" if seconds >= 3 else ""
            why = (error or "other output").splitlines()[-1] if differs else ""
            yield f"{path.stem},{cell.id},{long},{why}"


def main(stems):
    """Run the chapters with the given stems, or all."""
    handler = functools.partial(Quiet, directory=str(SITE))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.set_default_timeout(0)
        page.goto(f"http://127.0.0.1:{server.server_address[1]}/chapters/00_how_to_read.html")
        for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")):
            page_of = SITE / "chapters" / f"{path.stem}.html"
            offered = "live-cells.js" in page_of.read_text(encoding="utf-8")
            if offered and (not stems or path.stem in stems):
                for row in rows(page, path):
                    print(row, flush=True)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])

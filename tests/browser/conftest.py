"""Only `make test-book` collects this folder: it needs Playwright and Chromium."""

import functools
import http.server
import shutil
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SITE = ROOT / "docs" / "_build" / "html"


def pytest_ignore_collect(config):
    return None if config.rootpath == Path(__file__).parent else True


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def address():
    """The site as a server of this machine offers it."""
    handler = functools.partial(Quiet, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.fixture(scope="session")
def chromium():
    """The Chromium of this machine, without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser
        browser.close()


# What fades or slides arrives at once: a colour on its way is neither, a sidebar is not yet there.
ARRIVE = "document.getAnimations().forEach(a => a instanceof CSSTransition && a.finish());"


def settle(page):
    """Wait until a change has been drawn, and the page's scripts have measured what it changed."""
    page.evaluate(ARRIVE)
    page.evaluate("() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")


def in_mode(page, mode):
    """Light or dark, as the reader's system asks for it; the theme follows."""
    page.emulate_media(color_scheme=mode)
    page.wait_for_function("mode => document.documentElement.dataset.theme == mode", arg=mode)
    page.evaluate(ARRIVE)


def resize(page, width, height=900):
    """Make the window as wide as that, and wait until the page has taken its place in it."""
    page.set_viewport_size({"width": width, "height": height})
    settle(page)


def unfold(page):
    """Open all that is folded."""
    page.evaluate("document.querySelectorAll('main details').forEach(d => { d.open = true; })")


def axe(page, context=None, **options):
    """What axe finds wrong in a page, or in a part of it."""
    from axe_playwright_python.sync_playwright import Axe

    options = {"resultTypes": ["violations"], "preload": False, **options}
    there = page.evaluate("'axe' in window")
    tool = Axe("null") if there else Axe()  # its half a megabyte is read once a page
    found = tool.run(page, context=context, options=options).response["violations"]
    return [
        f"{one['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:200]}"
        for one in found
        for node in one["nodes"]
    ]


def axe_in_both_modes(page):
    """What axe finds wrong in the light and in the dark."""
    found = []
    for mode in ("light", "dark"):
        in_mode(page, mode)
        found += axe(page)
    return found


class Reader:
    """Someone who reads pages, and notes what goes wrong on them."""

    def __init__(self, browser, address, **options):
        self.address, self.wrong = address, []
        self.context = browser.new_context(**options)
        self.context.route("**/*", self.route)
        self.page = self.context.new_page()
        self.page.on("console", lambda m: m.type == "error" and self.wrong.append(m.text))
        self.page.on("pageerror", lambda e: self.wrong.append(str(e)))
        self.page.on("response", lambda r: r.status >= 400 and self.wrong.append(r.url))

    def route(self, route):
        if route.request.url.startswith((self.address, "data:", "blob:")):
            route.continue_()
        else:
            self.wrong.append(f"asks {route.request.url}")
            route.abort()

    def open(self, name):
        """Open a page and wait until its letters are there."""
        self.page.goto(self.address + name, wait_until="load")
        self.page.evaluate("async () => { await document.fonts.ready }")
        return self.page


@pytest.fixture(scope="session")
def reader(chromium, address):
    one = Reader(chromium, address)
    yield one
    one.context.close()


@pytest.fixture(autouse=True)
def at_a_desk(reader):
    """Each test begins with a wide window in the light."""
    reader.wrong.clear()
    reader.page.set_viewport_size({"width": 1280, "height": 900})
    reader.page.emulate_media(color_scheme="light")

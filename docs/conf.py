"""Sphinx's configuration of the web book; `docs/build.py` lays out the pages and calls it."""

import sys
from pathlib import Path

sys.path.insert(
    0, str(Path(__file__).parent)
)  # for `displays`, `drawings`, `maths`, `web` and `live`

import live

project = "pe_numpy"
author = "The pe_numpy authors"
copyright = f"2026, {author}"
version = release = "0.2.0"

extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
extensions += ["displays", "drawings", "maths", "web"]
nb_execution_mode = "off"  # the outputs are stored, and tested
nb_merge_streams = True
nb_code_prompt_show = "Show the {type}"
nb_code_prompt_hide = "Hide the {type}"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
add_module_names = False
smartquotes = False  # "half" in a docstring is Python
default_role = "py:obj"  # `rope` in a docstring is a link
autodoc_typehints = "none"  # the docstrings say more than the annotations
html_math_renderer = "mathml"  # of `maths`

html_theme = "sphinx_book_theme"
html_title = "pe_numpy: a textbook that runs"
HERE = Path(__file__).parent
html_static_path = [str(HERE / "_static"), str(HERE.parent / "figures" / "00_four_places.png")]
templates_path = [str(HERE / "_templates")]
html_additional_pages = {"search": "search.html"}
html_favicon = str(HERE / "_static" / "favicon.svg")
html_css_files = ["book.css", "maths.css"]
html_js_files = [
    ("live.js", {"defer": "defer", "data-live": str(live.megabytes())}),
    ("live-cells.js", {"defer": "defer"}),
    ("book.js", {"defer": "defer"}),
    ("letters.js", {"defer": "defer"}),
    ("explore.js", {"defer": "defer"}),
    ("search.js", {"defer": "defer"}),
]
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system is
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navbar_persistent": [],  # one search box is enough
    "show_toc_level": 2,
    "use_download_button": False,
    "use_fullscreen_button": False,
    "home_page_in_toc": True,
    "search_bar_text": "Search the book ...",
    "extra_footer": "Text, figures and code are under the MIT licence.",
}

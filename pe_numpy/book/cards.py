"""One card per scheme: what an engineer asks about it, on twenty lines.

Source: the register of schemes, whose line of code a test runs beside the scheme itself; the
docstrings of the package, its census and its homework; and ``cards.csv`` beside this module, which
`docs/cards.py` measures: with the detector, by counting, and from the study. Typed here are the
models that use a scheme beside the one that the census has for them.
Axes: none.
"""

from __future__ import annotations

import csv
import difflib
import inspect
import itertools
import re
import sys
import textwrap
from importlib import resources

import pe_numpy
from pe_numpy import contents
from pe_numpy.book.census import users_of
from pe_numpy.copy.copy import WHOLE
from pe_numpy.homework.registry import EXERCISES
from pe_numpy.judging.schemes import SCHEMES
from pe_numpy.transformer.encodings import Encoding, Reach

WIDTH = 80
LABEL = 11
PAPERS = tuple(f"pe_numpy.{room}." for room in ("absolute", "relative", "rotary"))
KEPT = ("equation", "code")
SHOWN = 8  # models that a card names
PLACES = {
    "0": "none",
    "1": "1, the token vector",
    "2": "2, queries and keys",
    "3": "3, the score of a pair",
    "4": "4, the weighted sum",
}
BESIDE = {  # their settings in the census, and Llama 4's temperature
    "none": ("Command R7B", "Llama 4", "EXAONE 4"),
    "learned": ("Whisper",),
    "yarn": ("DeepSeek-V2", "DeepSeek-V3"),
    "longrope": ("Phi-3", "Phi-3.5-MoE", "Phi-4-multimodal"),
    "rotary_values": ("DeepSeek-V4",),
    "temperature": ("Llama 4",),
}


def card(name: str) -> str:
    """Give the card of a scheme as text, at most 80 columns wide.

    Parameters
    ----------
    name : str
        A key of `pe_numpy.judging.schemes.SCHEMES`.

    Returns
    -------
    Lines, each fact behind its label.

    Raises
    ------
    ValueError
        If there is no such scheme; the message has the nearest.

    Examples
    --------
    >>> print(card("alibi").partition("convention")[0])
    ALiBi (alibi), chapter 35
    place      3, the score of a pair
    what       a fixed penalty on distance; symmetric, the same as the paper's if
               causal
    equation   softmax(q_i K^T + m [-(i - 1), ..., -2, -1, 0])
    """
    name = known(name)
    lines = [title(name)]
    for label, text in facts(name).items():
        wrapped, marks = _wrap(text, label in KEPT), itertools.chain([label], itertools.repeat(""))
        lines += [f"{mark:{LABEL}}{x}" for mark, x in zip(marks, wrapped, strict=False)]
    return "\n".join(lines)


def known(name: str) -> str:
    """Return the name of a scheme as it is; refuse any other, and suggest the nearest."""
    if name in SCHEMES:
        return name
    texts = {row.label.lower(): key for key, row in SCHEMES.items()}
    names = {**texts, **{key: key for key in SCHEMES}}
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    if name in pe_numpy.__all__:
        raise ValueError(_no_scheme(name))
    hint = f"did you mean {names[near[0]]}?" if near else f"there are {', '.join(SCHEMES)}"
    raise ValueError(f"card: there is no scheme {name!r}; {hint}")


def _no_scheme(name: str) -> str:
    """What to try for a function: the card of its scheme, its code, its chapter."""
    own = [key for key, row in SCHEMES.items() if row.function == name and row.place]
    ways = [f"card {' '.join(own)}"] * bool(own) + [f"copy {name}"] * (name not in WHOLE)
    tried = ", ".join(f"`python -m pe_numpy {way}`" for way in ways)
    tried += f"{' or ' * bool(tried)}chapter {contents.chapter_of(name)}"
    return f"card: {name} is a function, not a scheme; try {tried}"


def title(name: str) -> str:
    """The scheme's name in texts, if that is a name, its name in code, its chapter."""
    row = SCHEMES[name]
    known_as = name if row.label == row.label.lower() else f"{row.label} ({name})"
    return f"{known_as}, chapter {int(row.chapter[:2])}"


def facts(name: str) -> dict[str, str]:
    """What is known of a scheme, label -> text; equation and code keep their lines."""
    scheme, function = SCHEMES[name], SCHEMES[name].function
    users, summary = users_of(name), contents.summary_of(function)
    own, block = _own_words(name), _block(name, function)
    more = f" and {len(users) - SHOWN} more" if len(users) > SHOWN else ""
    used = [", ".join(users[:SHOWN]) + more] if users else []
    if name in BESIDE:
        used.append(f"beside another scheme {', '.join(BESIDE[name])}")
    row = measured()[name]
    found = {
        "place": "; ".join(PLACES[n] for n in row.pop("place").split("+")),
        "what": re.sub(rf"^{scheme.label}[.\d]*: ", "", scheme.words or own or summary),
        "equation": block or (summary if own else _formulas(function)),
        "convention": _convention(function),
        "code": scheme.code,
        **row,
        "used by": "; ".join(used) or "no model of the census",
    }
    of_its_name = (exercise for exercise in EXERCISES if exercise.startswith(name))
    trap = EXERCISES[function if function in EXERCISES else next(of_its_name)].mistakes[0]
    found["trap"] = f"{trap.name}. {trap.advice}"
    return {label: text for label, text in found.items() if text}


def measured() -> dict[str, dict[str, str]]:
    """The rows of ``cards.csv``, by name: each a fact by its label."""
    text = (resources.files("pe_numpy.book") / "cards.csv").read_text(encoding="utf-8")
    return {row.pop("name"): row for row in csv.DictReader(text.splitlines())}


def _own_words(name: str) -> str:
    """What the docstring says of a class, or of a bare function, that is one scheme's alone."""
    each = {key: row.make(Reach(8)) for key, row in SCHEMES.items()}
    made = {
        key: type(one) if isinstance(one, Encoding) else getattr(one, "func", one)
        for key, one in each.items()
    }
    if sum(thing == made[name] for thing in made.values()) > 1 or not inspect.getdoc(made[name]):
        return ""
    doc = " ".join((inspect.getdoc(made[name]) or "").split())
    return re.sub(r"^Chapters? [\d, and]+: ", "", re.split(r"\.(?: |$)", doc)[0])


def _block(name: str, function: str) -> str:
    """The formula of a module with one scheme; of one with several, what is labelled so."""
    module = getattr(pe_numpy, function).__module__
    if not module.startswith(PAPERS):
        return ""
    block, functions = _formulas(function), [row.function for row in SCHEMES.values()]
    if len({f for f in functions if getattr(pe_numpy, f).__module__ == module}) == 1:
        return block
    for label, formula in re.findall(r"^(\S.*?) {2,}(.*(?:\n .*)*)", block, re.M):
        words = re.sub(r"\W", "", label.lower()), name.replace("_", "")
        if min(map(len, words)) > 2 and (
            words[0].startswith(words[1]) or words[1].startswith(words[0])
        ):
            return re.sub(r"\n +", "\n", formula)
    return ""


def _formulas(function: str) -> str:
    """The first block of formulas in the docstring of a function's module."""
    found = re.search(r"::\n\n((?: {4}.*\n)+)", _doc_of(function))
    return inspect.cleandoc("\n" + found[1]) if found else ""


def _convention(function: str) -> str:
    module = getattr(pe_numpy, function).__module__
    if not module.startswith((*PAPERS, "pe_numpy.transformer.attention")):
        return ""
    part = r"^Convention: (.*?)(?=^[A-Z]\w+(?: from [\w ]+)?:|^`|\Z)"
    found = re.search(part, _doc_of(function), re.M | re.S)
    return " ".join(found[1].split()) if found else ""


def _doc_of(function: str) -> str:
    """The docstring of a function's module."""
    return inspect.getdoc(sys.modules[getattr(pe_numpy, function).__module__]) or ""


def _wrap(text: str, kept: bool) -> list[str]:
    """Lines of a text; where its own are kept, what does not fit goes on indented."""
    width, indent = WIDTH - LABEL, "    " if kept else ""
    lines = []
    for line in text.split("\n"):
        if kept and len(line) > width:  # several formulas side by side
            line = re.sub(r"(?<=.{20}\S) {3,}(?=\S)", "\n", line)
        for part in line.split("\n"):
            lines += textwrap.wrap(part, width, subsequent_indent=indent, break_on_hyphens=False)
    return lines

"""Formulas of docstrings as mathematics: the reference pages show them as the chapters do.

A docstring is read in a terminal, so its formulas are plain text, ``theta_i = base^(-2i/d)``. Here
this text becomes TeX, which `maths` draws. Words stay words, and labels stand in a column.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx

GREEK = "alpha beta gamma delta zeta eta theta lambda mu pi rho sigma tau phi psi omega Phi Omega"
FUNCTIONS = "cos sin exp ln log max min mod floor ceil clip diag softmax softplus sigmoid norm"
SHORT_WORDS = "PE at by if in is of on or to"
ELSEWHERE = ("positions", "rope_config", "weights")  # what they show is no formula
SIGNS = {"<=": r"\le ", ">=": r"\ge ", "..": r"\dots ", "...": r"\dots ", "~": r"\sim "}
SIGNS |= {
    "+=": r"\mathrel{+}=",
    ".": r"\cdot ",
    "<": r"\langle ",
    ">": r"\rangle ",
    "{": r"\{",
    "}": r"\}",
}
TOKEN = re.compile(
    r"""(?P<gap>[ ]{2,}(?![=:]))
    | sum[ ]over[ ](?P<sum>.+?)[ ]of[ ]
    | integral[ ]from[ ](?P<low>\S+)[ ]to[ ](?P<high>\S+)[ ]of[ ]
    | sqrt(?P<root>(?=\())
    | (?P<script>[_^])
    | (?P<words>the[ ]delta[ ]rule | \ba(?=[ ][a-z]{3}) | [A-Za-z]{3,}-\w+(?:-\w+)*)
    | (?P<name>[A-Za-z]+(?:'s)?)(?P<zero>0?)
    | (?P<sign><= | >= | \+= | \.{2,3} | ~ | (?<=[ ])\.(?=[ ]) | <(?=\w) | (?<=\w)> | [{}])
    | (?P<number>\d[\d,.]*\d) | [ ]+ | .""",
    re.X,
)
LABEL = re.compile(r"((?=.*[a-z]{3})[A-Za-z][\w -]*?|) {2,}(?![=: ])(.*)")


def as_tex(text: str) -> str:
    """A line of plain text as TeX."""
    found, at = "", 0
    base, scripts = 0, ""  # where the letter begins that a script belongs to, and what it has
    while at < len(text):
        m = TOKEN.match(text, at)
        assert m is not None
        at = m.end()
        if m["script"]:
            if m["script"] in scripts:  # K^c_j^T: the whole of K^c_j is transposed
                found, scripts = f"{found[:base]}{{{found[base:]}}}", ""
            inner, at = script(text, at)
            found += f"{m['script']}{{{inner}}}"
            scripts += m["script"]
            continue
        base, scripts = len(found), ""
        if m["gap"]:
            found += r"\quad "
        elif m["sum"]:
            found += rf"\sum_{{{as_tex(m['sum'])}}} "
        elif m["low"]:
            found += rf"\int_{{{as_tex(m['low'])}}}^{{{as_tex(m['high'])}}} "
        elif m["root"] is not None:
            end = closing(text, at)
            found += rf"\sqrt{{{as_tex(text[at + 1 : end])}}}"
            at = end + 1
        elif m["words"] or m["name"]:
            word = m["words"] or m["name"]
            letters = "" if m["words"] else named(word)
            before = " " if re.search(r"[\w,;)\]] $", text[: m.start()]) else ""
            after = " " if re.match(r" [\w(\[]", text[at:]) else ""
            found += letters or as_text(before + word + after)
            found += "_0" if m["zero"] else ""
        else:
            found += SIGNS.get(m[0], m[0]) if m["sign"] else m[0]
    return re.sub(r"(?:\\text\{[^{}]*\} *){2,}", joined, found)


def joined(words: re.Match) -> str:
    """Neighbouring words in one piece."""
    inside = " ".join(re.findall(r"\{([^{}]*)\}", words[0]))
    return as_text(re.sub(" +", " ", inside))


def as_text(words: str) -> str:
    """Words as TeX."""
    return r"\text{" + words.replace("_", r"\_") + "}"


def named(name: str) -> str:
    """A letter, a Greek letter, or a function; nothing, if it is a word."""
    if name == "eps":
        return r"\varepsilon "
    if name == "sum" or name in GREEK.split():
        return rf"\{name} "
    if name[0] == "d" and name[1:] in GREEK.split():
        return rf"d\{name[1:]} "
    if name in FUNCTIONS.split():
        return rf"\operatorname{{{name}}}"
    return name if len(name) < 3 and name not in SHORT_WORDS.split() else ""


def closing(text: str, at: int) -> int:
    """Where the bracket that opens at a place is closed."""
    depth = 0
    for n in range(at, len(text)):
        depth += (text[n] in "([{") - (text[n] in ")]}")
        if not depth:
            return n
    raise ValueError(f"closing: no end of the bracket at {at} of {text!r}")


def script(text: str, at: int) -> tuple[str, int]:
    """What stands below or above a letter, and where it ends: a bracket, a number, or a name."""
    if text[at] in "({":
        end = closing(text, at)
        return as_tex(text[at + 1 : end]), end + 1
    m = re.compile(r"-?(?:\d+|[A-Za-z]+)").match(text, at)
    assert m is not None, text[at:]
    end, word = m.end(), m[0]
    if len(word) > 3 and text[end : end + 1] == "(":  # b_bucket(i - j)
        end = closing(text, end) + 1
    return as_tex(text[at:end]), end


def display(found: re.Match) -> str:
    """A block of plain formulas, as Sphinx wants mathematics."""
    lines = [line[4:] for line in found[1].splitlines() if line.strip()]
    parts = [m.groups() if (m := LABEL.fullmatch(line)) else ("", line) for line in lines]
    if any(label for label, _ in parts):
        rows = [rf"& {as_text(label)} && {as_tex(rest)}" for label, rest in parts]
    else:
        rows = [f"& {as_tex(line)}" for line in lines]
    body = r" \\ ".join(rows)
    return f":\n\n.. math::\n\n   \\begin{{aligned}} {body} \\end{{aligned}}\n\n"


def show(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list) -> None:
    """Exchange the plain formulas of a module's docstring."""
    if what == "module" and name.rpartition(".")[2] not in ELSEWHERE:
        text = "\n".join(lines) + "\n"
        lines[:] = re.sub(r"::\n\n((?: {4}.*\n|\n(?= {4}))+)", display, text).split("\n")


def setup(app: Sphinx) -> dict[str, bool]:
    """Join Sphinx's build."""
    app.connect("autodoc-process-docstring", show)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

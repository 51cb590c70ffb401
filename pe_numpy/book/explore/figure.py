"""A figure that answers the hand: a picture, controls, values, and the function that computes them.

Python computes, draws and writes; the page's script, `docs/_static/explore.js`, only puts texts
and attributes in their places. What an element shows is a `State`: under "t5" the text of the
element with the key t5, under "hand0@transform" that attribute of hand0. So the picture that is
seen without scripts, the settings that are computed beforehand and what Python computes in the page
all come from one function.

What has `data-drag="name"` in a picture can be dragged, and moves the slider of that name: from
value to value, as long as the picture of the next has it nearer to the pointer.

Controls hand over texts, as a page has them; `read` makes numbers of them.
"""

from __future__ import annotations

import base64
import html
import inspect
import io
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import numpy as np

State = dict[str, str]
BUILT = "Computed by pe_numpy when the book was built."


# ---- what a reader types ------------------------------------------------------------------------


def whole(text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"a whole number is wanted here; got {text!r}") from None


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"a number is wanted here; got {text!r}")
    return value


def rows(text: str) -> np.ndarray:
    """A matrix: a line or a semicolon ends a row; commas and brackets may stand."""
    lines = text.translate(str.maketrans(",[]()", "     ")).replace(";", "\n").splitlines()
    found = [[number(word) for word in line.split()] for line in lines if line.strip()]
    if not found or len({len(row) for row in found}) > 1:
        raise ValueError(f"rows of equal length are wanted here; got {text!r}")
    return np.array(found)


def from_npy(packed: str) -> dict[str, str]:
    r"""A matrix of a .npy file (in base64) as text, under "rows"; what is wrong, under "error".

    >>> buffer = io.BytesIO()
    >>> np.save(buffer, np.float32([[0.1, 2], [3, -4e-5]]))
    >>> from_npy(base64.b64encode(buffer.getvalue()).decode())
    {'rows': '0.1 2.0\n3.0 -4e-05'}
    """
    try:
        found = np.lib.format.read_array(io.BytesIO(base64.b64decode(packed)), allow_pickle=False)
        if found.ndim != 2 or found.dtype.kind not in "fiu":
            got = f"{found.dtype} {found.shape}"
            raise ValueError(f"numbers in rows and columns are wanted; got {got}")
    except ValueError as error:
        return {"error": f"this .npy file: {error}"}
    return {"rows": "\n".join(" ".join(map(str, row)) for row in found)}


@dataclass(frozen=True)
class Control:
    """One thing that a reader sets.

    Parameters
    ----------
    name, label : str
        The argument of the function; what a reader sees.
    start : text
        Its value to begin with.
    read : function
        Makes an argument of the text; its ValueError is shown.
    values : texts
        Those that are computed beforehand, in order; any others need Python in the page.
    kind : "number", "choice", "steps", "field", "rows" or "cells"
        A slider with a number to type; a menu; a slider with buttons; a line of text; lines of
        text, also from a file (text or .npy); a square of numbers.
    heads : texts
        Words of the rows and columns of "cells".
    """

    name: str
    label: str
    start: str
    read: Callable[[str], Any] = whole
    values: Sequence[str] = ()
    kind: str = "number"
    heads: Sequence[str] = ()

    def markup(self, figure: str) -> str:
        """The control, with its label."""
        key, label = f"{figure}-{self.name}", html.escape(self.label)
        attributes = f'id="{key}" data-name="{self.name}"'
        start = html.escape(self.start)
        if self.kind == "choice":
            options = "".join(
                f"<option{' selected' * (value == self.start)}>{html.escape(value)}</option>"
                for value in self.values
            )
            return f'<label for="{key}">{label}</label><select {attributes}>{options}</select>'
        if self.kind == "cells":
            return self._cells(key)
        if self.kind == "field":
            field = f'<input {attributes} data-live type="text" value="{start}">'
            return f'<label for="{key}">{label}</label>{field}'
        if self.kind == "rows":
            lines = self.start.count("\n") + 1
            return (
                f'<label for="{key}">{label}</label><textarea {attributes} data-live '
                f'rows="{lines}" spellcheck="false">{start}</textarea>'
                f'<input type="file" data-into="{self.name}" data-live '
                f'accept=".txt,.csv,.npy,text/*" aria-label="{label}, from a file: text or .npy">'
            )
        values = html.escape(json.dumps(self.values))
        slide = (
            f'<input type="range" min="0" max="{len(self.values) - 1}" '
            f'value="{list(self.values).index(self.start)}" data-slides="{self.name}" '
            f'data-values="{values}" aria-label="{label}, slider" aria-valuetext="{start}">'
        )
        field = f'<input {attributes} type="number" step="any" value="{start}">'
        if self.kind == "steps":
            field = field.replace('type="number" step="any"', 'type="hidden"')
            buttons = (("back", "Back"), ("forward", "Forward"), ("play", "Play"))
            slide += "".join(f'<button data-do="{do}">{words}</button>' for do, words in buttons)
            return f"<span>{label}</span>{field}{slide}"
        return f'<label for="{key}">{label}</label>{field}{slide}'

    def _cells(self, key: str) -> str:
        matrix = [line.split() for line in self.start.splitlines()]
        head = "".join(f'<th scope="col">{html.escape(word)}</th>' for word in self.heads)
        lines = [f"<tr><td></td>{head}</tr>"]
        for i, row in enumerate(matrix):
            cells = "".join(
                f'<td><input id="{key}-{i}-{j}" data-name="{self.name}" data-live data-row="{i}" '
                f'type="number" step="any" value="{cell}" '
                f'aria-label="{html.escape(f"{self.heads[i]} for {self.heads[j]}")}"></td>'
                for j, cell in enumerate(row)
            )
            lines.append(f'<tr><th scope="row">{html.escape(self.heads[i])}</th>{cells}</tr>')
        legend = f"<legend>{html.escape(self.label)}</legend>"
        return f"<fieldset>{legend}<table>{''.join(lines)}</table></fieldset>"


@dataclass(frozen=True)
class Bet:
    """A question to bet on, and a button whose move answers it.

    Parameters
    ----------
    question : str
        What happens to what is measured?
    answers : mapping
        From the words of an answer to what it claims: "same", "more" or "less"; "other" is a change
        of what is no number.
    move : str
        Words of the button.
    change : mapping
        From a control to its new text, or to the number that is added.
    subject : str
        What is measured, where a sentence begins with it.
    measured : texts
        Keys of the state; their texts are compared.
    """

    question: str
    answers: Mapping[str, str]
    move: str
    change: Mapping[str, str | int]
    subject: str
    measured: Sequence[str]

    def markup(self) -> str:
        """The question, a button for each answer, and the move."""
        answers = "".join(
            f'<button aria-pressed="false" data-bet="{claim}">{html.escape(words)}</button>'
            for words, claim in self.answers.items()
        )
        change = html.escape(json.dumps(self.change))
        return (
            f'<div class="explore-bet" data-subject="{html.escape(self.subject)}" '
            f'data-measure="{" ".join(self.measured)}"><span>{html.escape(self.question)}</span>'
            f'{answers}</div><div><button data-do="move" data-change="{change}">'
            f"{html.escape(self.move)}</button>"
            '<span class="explore-seen" aria-live="polite"></span></div>'
        )


@dataclass(frozen=True)
class Explorable:
    """A picture with controls.

    Parameters
    ----------
    title : str
        What a reader can do here.
    alt : str
        What the picture shows, for those who hear it.
    controls : Controls
        The first two are in view, the others behind `more`.
    compute : function
        Takes a value of each control by name; returns the State. "note" is the line below the
        picture.
    picture : str
        The inside of an SVG, elements with their `data-key`.
    height : int
        Of the picture; it is 480 wide.
    values : pairs (words, key)
        A table below the controls.
    interval : int
        Milliseconds between the frames of what plays.
    bet : Bet
        A question that a move answers.
    more : str
        What the third and later controls are for.
    """

    title: str
    alt: str
    controls: Sequence[Control]
    compute: Callable[..., State]
    picture: str
    height: int
    values: Sequence[tuple[str, str]] = ()
    interval: int = 1000
    bet: Bet | None = None
    more: str = "More settings"

    def state(self, given: Mapping[str, str]) -> State:
        """What the figure shows for these settings; what is wrong with them, under "error"."""
        arguments = {}
        for control in self.controls:
            try:
                arguments[control.name] = control.read(given[control.name])
            except ValueError as error:
                return {"error": f"{control.label}: {error}"}
        try:
            return self.compute(**arguments)
        except ValueError as error:
            return {"error": str(error)}

    def start(self) -> dict[str, str]:
        """The settings to begin with."""
        return {control.name: control.start for control in self.controls}

    def beforehand(self) -> dict[str, Any]:
        """All settings that are computed beforehand; only what differs from the first picture."""
        first, found = self.state(self.start()), {}
        choices = [control.values or (control.start,) for control in self.controls]
        for setting in itertools.product(*choices):
            names = (control.name for control in self.controls)
            found["|".join(setting)] = self.state(dict(zip(names, setting, strict=True)))
        keys = [key for key in first if any(state[key] != first[key] for state in found.values())]
        return {
            "keys": keys,
            "first": [first[key] for key in keys],
            "states": {
                setting: [state[key] if state[key] != first[key] else 0 for key in keys]
                for setting, state in found.items()
            },
        }

    def markup(self, name: str, plays: bool = False) -> str:
        """The figure in HTML, as it stands without scripts."""
        values = "".join(
            f'<tr><th scope="row">{html.escape(words)}</th><td data-key="{key}"></td></tr>'
            for words, key in self.values
        )
        shown = (
            f'<div><svg data-key="svg" viewBox="0 0 480 {self.height}" role="img" '
            f'aria-label="{html.escape(self.alt)}">{self.picture}</svg>'
            '<p class="explore-note" data-key="note" aria-live="polite"></p></div>'
        )
        table = f'<div class="explore-values"><table>{values}</table></div>' if values else ""
        state = self.state(self.start())
        data = json.dumps(self.beforehand(), separators=(",", ":"), ensure_ascii=False)
        controls = [f"<div>{c.markup(name)}</div>" for c in self.controls]
        hands = "".join(controls[:2]) + (self.bet.markup() if self.bet else "")
        if controls[2:]:
            more = f"<summary>{html.escape(self.more)}</summary>{''.join(controls[2:])}"
            hands += f"<details>{more}</details>"
        hands += (
            '<div><button data-do="copy">Copy link</button>'
            '<button data-do="compute" hidden>Compute</button></div>'
        )
        code = html.escape(inspect.getsource(self.compute))
        how = f"<details><summary>The code behind it</summary><pre>{code}</pre></details>"
        return "\n".join([
            f'<figure class="explore" id="{name}" data-explore="{name}" '
            f'data-interval="{self.interval}"{" data-plays" * plays}>',
            f"<figcaption>{html.escape(self.title)}</figcaption>",
            f'<script type="application/json">{data.replace("<", chr(92) + "u003c")}</script>',
            filled(shown, state),
            f'<div class="explore-controls" hidden>{hands}</div>',
            filled(table, state) if table else "",
            f'<p class="explore-source" data-source>{BUILT}</p>{how}' if table else "",
            "</figure>",
        ])  # fmt: skip


def filled(markup: str, state: State) -> str:
    """Put a state into its places, as the page's script does."""
    tree = ElementTree.fromstring(markup)
    places = {element.get("data-key"): element for element in tree.iter()}
    for key, value in state.items():
        name, _, attribute = key.partition("@")
        element = places.get(name)
        if element is not None and attribute:
            element.set(attribute, value)
        elif element is not None:
            element.text = value
    return ElementTree.tostring(tree, encoding="unicode", method="html")


# ---- what pictures are made of ------------------------------------------------------------------


def text(x: float, y: float, words: str = "", key: str = "", look: str = "") -> str:
    """Words at a place; `look` is a class of the style sheet, such as "middle" or "end"."""
    return f'<text x="{x:g}" y="{y:g}"{_key(key)}{_look(look)}>{html.escape(words)}</text>'


def path(d: str, key: str = "", look: str = "line") -> str:
    """A line."""
    return f'<path d="{d}"{_key(key)}{_look(look)}/>'


def box(x: float, y: float, width: float, height: float, key: str = "", look: str = "box") -> str:
    """A rectangle."""
    size = f'width="{width:g}" height="{height:g}"'
    return f'<rect x="{x:g}" y="{y:g}" {size}{_key(key)}{_look(look)}/>'


def clock(
    x: float, y: float, r: float, name: str, hands: Sequence[str] = ("query",), drag: str = ""
) -> str:
    """A clock face of radius r; from the key "name-key" to "name-query" a grey wedge, if asked.

    A hand points right; the state turns it by the attribute that `turn` gives. `drag` has the
    control of each hand, a letter or a word.
    """
    parts = [f'<circle r="{r:g}" class="line"/>']
    if len(hands) > 1:  # a broad circle, of which the state shows a part: in degrees
        parts.append(
            f'<circle r="{r / 4:g}" class="wedge" stroke-width="{r / 2:g}" pathLength="360"'
            f"{_key(f'{name}-wedge')}/>"
        )
    tip = f"M0 0H{r:g}M{r - 7:g} -4L{r:g} 0L{r - 7:g} 4"
    for hand, control in zip(hands, drag.split() or [""] * len(hands), strict=True):
        held = path(f"M{r / 2:g} 0H{r:g}", look="handle") if control else ""
        key = _key(f"{name}-{hand}") + (f' data-drag="{control}"' if control else "")
        parts.append(f"<g{key}>{path(tip, look=hand)}{held}</g>")
    whole_face = "".join(parts)
    return f'<g transform="translate({x:g} {y:g})"{_key(name)}>{whole_face}</g>'


def turn(point: np.ndarray) -> str:
    """Turn what points right so that it points to (a, b); the y of a picture runs downwards."""
    degrees = math.degrees(math.atan2(-point[1], point[0]))
    return f"rotate({degrees:.1f})"


def _key(key: str) -> str:
    return f' data-key="{key}"' if key else ""


def _look(look: str) -> str:
    return f' class="{look}"' if look else ""

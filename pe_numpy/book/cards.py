"""One card a scheme: what an engineer asks of it, on twenty lines.

Source: the docstrings of the package, its census and its homework, and ``cards.csv`` beside this
module, which `docs/cards.py` measures: with the detector, by counting, and from the study. Typed
here are the line of code, which a test runs beside the scheme itself, the words for a scheme whose
function serves another, too, and the models that use a scheme beside the one that the census has
for them.
Axes: L queries, S keys, D model width, H heads, K width of one head, A coordinates of a position.
Symbols: x are token vectors, i and j the positions of queries and keys; scores are the plain
q @ k.T / sqrt(K); what else a line uses, it names as the function's docstring does.
Convention: lines are written for one head, q (L, K) and k (S, K); what wants an axis of heads gets
one by [None].
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
from pe_numpy.book.census import ENCODINGS, users_of
from pe_numpy.homework.registry import EXERCISES
from pe_numpy.judging.schemes import every_scheme

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
WORDS = {  # where the function's summary is of another scheme, too
    "partial_rope": "RoPE of the first half of the components, as if these were all; the rest stay",
}
TURN = "rope(q, i, theta) @ rope(k, j, theta).T / sqrt(K)"
GRID = "rope_nd(q, i, omega) @ rope_nd(k, j, omega).T / sqrt(K)"
MOVED = "rotary_distance_scores(q, k, distance)"

# The function that a scheme is, and how it is called.
CODE = {
    "none": ("attention", "attention(q, k, v)[0]"),
    "sinusoidal": ("sinusoidal", "x + sinusoidal(i, D)"),
    "multiplicative": ("sinusoidal", "x * (1 + sinusoidal(i, D))"),
    "learned": ("learned", "x + learned(table, i)"),
    "hierarchical": ("hierarchical", "x + hierarchical(table, i)"),
    "recurrent": ("recurrent", "x + recurrent(start, lambda p: np.tanh(p @ W + b), L)[i]"),
    "floater": ("floater", "x + floater(start, lambda p, t: A @ p, i)"),
    "rope": ("rope", "rope(q, i) @ rope(k, j).T / sqrt(K)"),
    "shaw": (
        "shaw_scores",
        "shaw_scores(q, k, key_table, relative_distance(i, j))\n"
        "shaw_values(weights, v, value_table, relative_distance(i, j))",
    ),
    "relative_key_query": (
        "relative_key_query_scores",
        "relative_key_query_scores(q, k, table, relative_distance(i, j))",
    ),
    "nezha": (
        "nezha_table",
        "table = nezha_table(clip, K)\n"
        "shaw_scores(q, k, table, relative_distance(i, j))\n"
        "shaw_values(weights, v, table, relative_distance(i, j))",
    ),
    "transformer_xl": (
        "transformer_xl_scores",
        "r = sinusoidal(np.arange(1 - S, L), D) @ W_r\n"
        "distance = relative_distance(i, j)\n"
        "transformer_xl_scores(q[None], k[None], r[None], u, v, distance)",
    ),
    "t5": ("t5_bias", "scores + t5_bias(table, relative_distance(i, j), bidirectional=False)"),
    "tupe": (
        "tupe_scores",
        "bias = t5_bias(table, relative_distance(i, j), bidirectional=False)\n"
        "p_q, p_k = positions[i] @ U_q, positions[j] @ U_k\n"
        "tupe_scores(q[None], k[None], p_q[None], p_k[None], bias)",
    ),
    "deberta": (
        "deberta_scores",
        "q_table, k_table = (relative @ W_qr)[None], (relative @ W_kr)[None]\n"
        "deberta_scores(q[None], k[None], q_table, k_table, relative_distance(i, j))",
    ),
    "alibi": ("alibi_bias", "scores + alibi_bias(alibi_slopes(H), relative_distance(i, j))"),
    "kerple": ("kerple_log_bias", "scores + kerple_log_bias(p, a, relative_distance(i, j))"),
    "sandwich": ("sandwich_bias", "scores + sandwich_bias(H, relative_distance(i, j))"),
    "fire": ("fire_bias", "scores + fire_bias(params, i, j)"),
    "forgetting": (
        "forgetting_bias",
        "sums = np.cumsum(np.log(gates), axis=-1)\nscores + forgetting_bias(sums, sums)",
    ),
    "cope": ("cope_bias", "scores + cope_bias(q, scores, table, mask) / sqrt(K)"),
    "rerope": (
        "rerope_distance",
        f"distance = rerope_distance(relative_distance(i, j), window)\n{MOVED}",
    ),
    "self_extend": (
        "self_extend_distance",
        f"distance = self_extend_distance(i, j, window, group)\n{MOVED}",
    ),
    "dual_chunk": ("chunk_distance", f"distance = chunk_distance(i, j, size, local)\n{MOVED}"),
    "streaming": (
        "streaming_distance",
        f"distance = streaming_distance(i, j, window, sinks)\n{MOVED}",
    ),
    "xpos": ("xpos", "xpos(q, i) @ xpos(k, j, key=True).T / sqrt(K)"),
    "pope": ("pope", "pope(q, i) @ pope(k, j, bias=phase).T / sqrt(K)"),
    "rotary_values": (
        "rotary_values",
        "rope(q, i) @ rope(k, j).T / sqrt(K)\nrotary_values(weights, v, i, j)",
    ),
    "partial_rope": ("rope", f"theta = rope_frequencies(K // 2, base)\n{TURN}"),
    "proportional_rope": (
        "proportional_frequencies",
        f"theta = proportional_frequencies(K, 0.5, base)\n{TURN}",
    ),
    "linear": (
        "linear_scaling",
        f"theta = linear_scaling(rope_frequencies(K, base), s)\n{TURN}",
    ),
    "ntk": ("ntk_scaling", f"theta = ntk_scaling(K, s, base)\n{TURN}"),
    "dynamic_ntk": (
        "dynamic_ntk_scaling",
        f"theta = dynamic_ntk_scaling(K, S, L0, s, base)\n{TURN}",
    ),
    "yarn": (
        "yarn_scaling",
        "theta, t = yarn_scaling(K, s, L0, base)\n"
        "rope(t * q, i, theta) @ rope(t * k, j, theta).T / sqrt(K)",
    ),
    "longrope": (
        "longrope_scaling",
        "theta, t = longrope_scaling(K, S, short, long, L0, s, base)\n"
        "rope(t * q, i, theta) @ rope(t * k, j, theta).T / sqrt(K)",
    ),
    "llama3": (
        "llama3_scaling",
        f"theta = llama3_scaling(rope_frequencies(K, base), s, L0)\n{TURN}",
    ),
    "leaky_rerope": (
        "rerope_distance",
        f"distance = rerope_distance(relative_distance(i, j), window, s)\n{MOVED}",
    ),
    "temperature": (
        "attention_temperature",
        "t = attention_temperature(i, floor_scale)\n(t[:, None] * q) @ k.T / sqrt(K)",
    ),
    "alibi_signed": (
        "alibi_bias",
        "m = alibi_slopes(H)\nscores + alibi_bias(m, relative_distance(i, j), future_slopes=-m)",
    ),
    "axial": ("axial_frequencies", f"omega = axial_frequencies(K, base=base)\n{GRID}"),
    "mixed": ("mixed_frequencies", f"omega = mixed_frequencies(rng, K, base)\n{GRID}"),
    "mrope": ("mrope_frequencies", f"omega = mrope_frequencies([2, 1, 1], base)\n{GRID}"),
}


def card(name: str) -> str:
    """Give the card of a scheme as text, at most 80 columns wide.

    Parameters
    ----------
    name : str
        A key of `pe_numpy.judging.schemes.every_scheme()`.

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
    what       a fixed penalty on distance; symmetric, and under a causal mask the
               paper's
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
    if name in CODE:
        return name
    texts = {label.lower(): key for key, (label, *_) in ENCODINGS.items() if key in CODE}
    names = {**texts, **{key: key for key in CODE}}
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    hint = f"did you mean {names[near[0]]}?" if near else f"there are {', '.join(CODE)}"
    raise ValueError(f"card: there is no scheme {name!r}; {hint}")


def title(name: str) -> str:
    """The scheme's name in texts, if that is a name, its name in code, its chapter."""
    label, _, chapter = ENCODINGS[name]
    known_as = name if label == label.lower() else f"{label} ({name})"
    return f"{known_as}, chapter {int(chapter[:2])}"


def facts(name: str) -> dict[str, str]:
    """What is known of a scheme, label -> text; equation and code keep their lines."""
    function, code = CODE[name]
    users, summary = users_of(name), contents.summary_of(function)
    own, block = _own_words(name), _block(name, function)
    more = f" and {len(users) - SHOWN} more" if len(users) > SHOWN else ""
    used = [", ".join(users[:SHOWN]) + more] if users else []
    if name in BESIDE:
        used.append(f"beside another scheme {', '.join(BESIDE[name])}")
    row = measured()[name]
    found = {
        "place": "; ".join(PLACES[n] for n in row.pop("place").split("+")),
        "what": re.sub(rf"^{ENCODINGS[name].label}[.\d]*: ", "", WORDS.get(name) or own or summary),
        "equation": block or (summary if own else _formulas(function)),
        "convention": _convention(function),
        "code": code,
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
    schemes = every_scheme()
    made = {
        key: type(s.encoding) if s.encoding else getattr(s.scores, "func", s.scores)
        for key, s in schemes.items()
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
    block = _formulas(function)
    if len({f for f, _ in CODE.values() if getattr(pe_numpy, f).__module__ == module}) == 1:
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

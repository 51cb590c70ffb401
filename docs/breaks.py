"""The page *Break a real model*, and its teaser: what Gemma writes when its positions are wrong.

`notebooks/results/real_break.py` measures; this module lays its table, break.json, into the page.
Without scripts the page shows all mistakes with the first sentence. `_static/break.js` shows any,
and `_static/sandbox.js` lets the detector of chapter 70 measure a score that the reader writes.
"""

from __future__ import annotations

import functools
import html
import json
from pathlib import Path
from typing import Any, NamedTuple

from pe_numpy.book import own_words, passport

HERE = Path(__file__).parent
TABLE = HERE.parent / "notebooks" / "results" / "break.json"
MARK, OWN, SANDBOX = (f"<!-- {name} -->\n" for name in ("break", "own words", "sandbox"))
RUN = 'python -m pe_numpy run gemma "TEXT" --steps 20'
SCRIPT = 'python notebooks/results/real_break.py {name} "TEXT"'


class Mistake(NamedTuple):
    """A mistake of the dial: what it is, where the book explains it, and the command.

    `what` is a sentence; `why` and `code` are pairs of words and a link; `option` is that of the
    command `run`, if it has one.
    """

    label: str
    what: str
    why: tuple[str, str]
    code: tuple[str, str]
    option: str = ""


REAL = "chapters/81_real_rope.ipynb#wrong-position-ids-a-shift-is-free-wrong-order-is-expensive"
SYMPTOM = "chapters/SYMPTOMS.md#"
NO_ORDER = (
    "the model ignores word order",
    f"{SYMPTOM}the-model-ignores-word-order-no-position-reaches-the-scores",
)
SHORT = (
    "position interpolation hurts short texts",
    f"{SYMPTOM}position-interpolation-hurts-short-texts-all-pairs-become-slower",
)
MISTAKES = {
    "shift": Mistake(
        "all shifted by 100",
        "Every position is 100 larger, for queries and for keys. Both hands of each clock move. "
        "The angle between them stays, and RoPE's scores depend only on that angle.",
        ("RoPE's theorem, tested on this model", REAL),
        (
            "the output changes with where the text begins",
            f"{SYMPTOM}rotary_value-the-output-changes-with-where-the-text-begins",
        ),
        "--positions shift=100",
    ),
    "written": Mistake(
        "only the written part shifted",
        "The model reads the sentence at the right positions. Each token that it writes is told a "
        "position that is 100 too large, so it seems far from the sentence.",
        (
            "positions of queries and keys with a KV cache",
            "chapters/41_rope_computed.ipynb#rope-with-a-kv-cache",
        ),
        (
            "the model rambles after n_ctx",
            f"{SYMPTOM}context-shift-the-model-rambles-after-n_ctx-the-query-keeps-its-old-position",
        ),
    ),
    "zero": Mistake(
        "all zero",
        "Every token is told position 0. All distances are 0, and only the causal mask still knows "
        "the order.",
        (
            "a causal mask already carries position",
            "chapters/11_why_position.ipynb#a-causal-mask-already-carries-position",
        ),
        NO_ORDER,
        "--positions zero",
    ),
    "reverse": Mistake(
        "reversed",
        "The first token is told the last position, and the last token the first. Each distance "
        "has the wrong sign, so the past looks like the future.",
        ("a wrong order is worse than none", REAL),
        (
            "the sign of the distance, in T5",
            f"{SYMPTOM}t5-all-earlier-tokens-in-bucket-0-the-sign-of-the-distance",
        ),
        "--positions reverse",
    ),
    "halve": Mistake(
        "halved",
        "Every position is half as large. All angles between tokens are half of what they were in "
        "training.",
        ("what a uniform stretch costs", REAL),
        SHORT,
    ),
    "double": Mistake(
        "doubled",
        "Every position is twice as large, as if each query and each key were rotated twice.",
        (
            "a key that is rotated twice",
            "chapters/41_rope_computed.ipynb#rope-with-a-kv-cache",
        ),
        ("symptoms with a cache", f"{SYMPTOM}with-a-cache-or-in-a-batch"),
    ),
    "base": Mistake(
        "one base for all layers",
        "Gemma's local layers have base 10,000, its global layers 1,000,000. Here all layers have "
        "1,000,000, so 15 of the 18 layers rotate too slowly.",
        (
            "the base of each layer",
            "chapters/42_rope_in_models.ipynb#the-base-of-each-layer-local-and-global-layers",
        ),
        ("the wrong base", f"{SYMPTOM}rope_theta-500000-the-wrong-base"),
    ),
    "none": Mistake(
        "no rotation",
        "Queries and keys are not rotated at all. For RoPE this is the same as position 0 for "
        "every token, and the model writes the same text.",
        (
            "layers without RoPE in this model",
            "chapters/81_real_rope.ipynb#local-and-global-layers-a-mean-loss-hides-a-skill",
        ),
        NO_ORDER,
        "--encoding none",
    ),
    "linear": Mistake(
        "stretched 4 times, linear",
        "Position interpolation for four times the context length: every frequency is divided by "
        "4. Neighbours come four times closer, on short texts too.",
        (
            "position interpolation",
            "chapters/50_scaling.ipynb#position-interpolation-linear-scaling",
        ),
        SHORT,
    ),
    "yarn": Mistake(
        "stretched 4 times, YaRN",
        "YaRN for four times the context length keeps the fast pairs, divides the slow ones by 4, "
        "and sharpens the scores.",
        (
            "keep, divide, and mix between",
            "chapters/50_scaling.ipynb#ntk-by-parts-keep-divide-and-mix-between",
        ),
        (
            "fluent and wrong with rope_scaling",
            f"{SYMPTOM}gemma-3-rope_scaling-factor-8-fluent-and-wrong-on-long-prompts",
        ),
    ),
    "layout": Mistake(
        "pairs of the other layout",
        "The angles are right, but they rotate other pairs: neighbouring components (interleaved) "
        "where the weights have half-split pairs.",
        (
            "interleaved or half-split",
            "chapters/40_rope_derived.ipynb#interleaved-or-half-split",
        ),
        (
            "garbage after loading LLaMA weights",
            f"{SYMPTOM}garbage-after-loading-llama-weights-interleaved-or-half-split-rope",
        ),
    ),
    "nobos": Mistake(
        "without the first token",
        "All positions are right, but `<bos>`, which begins each text of Gemma's training, is "
        "missing. Heads that rest on it must rest on a word.",
        (
            "what a missing BOS token costs",
            "chapters/82_real_cache.ipynb#what-a-missing-bos-token-costs",
        ),
        (
            "the model repeats a phrase without end",
            f"{SYMPTOM}repetitive-output-the-model-repeats-a-phrase-without-end",
        ),
    ),
}


@functools.cache
def table() -> Any:
    """Read what was measured."""
    return json.loads(TABLE.read_text(encoding="utf-8"))


def entry(sentence: int, mistake: str) -> Any:
    """Give what was measured of a sentence with a mistake, or with "right"."""
    entries = table()["sentences"][sentence]["entries"]
    return next(one for one in entries if one["mistake"] == mistake)


def command(name: str, sentence: str) -> str:
    """Give the command that continues a sentence with a mistake."""
    option = MISTAKES[name].option
    line = f"{RUN} {option}" if option else SCRIPT.format(name=name)
    return line.replace("TEXT", sentence)


def page() -> str:
    """Give the page: the dial, what each mistake is, and a table that needs no scripts."""
    text = (HERE / "break.md").read_text(encoding="utf-8")
    before, here, after = text.partition(MARK)
    assert here, "break.md has no place for the dial"
    blocks = [raw(dial()), raw(every(0)), *(about(name) for name in MISTAKES)]
    assert OWN in after, "break.md has no place for the reader's own words"
    assert SANDBOX in after, "break.md has no place for the sandbox"
    after = after.replace(OWN, raw(own())).replace(SANDBOX, raw(sandbox()))
    return before + "\n".join(blocks) + after


def raw(text: str) -> str:
    """HTML as a block that Sphinx takes as it is."""
    return f"`````{{raw}} html\n{text}\n`````\n"


def about(name: str) -> str:
    """What a mistake is, with its links and its command."""
    one = MISTAKES[name]
    (why, why_link), (code, code_link) = one.why, one.code
    start = f'<div class="break-about" data-mistake="{name}">\n\n'
    text = f"**{one.label[0].upper()}{one.label[1:]}.** {one.what}\n\n"
    text += f"- Why? See [{why}]({why_link}).\n"
    text += f"- Find it in your code: [{code}]({code_link}).\n"
    text += "- Do it yourself:\n\n"
    text += f"```text\n{command(name, table()['sentences'][0]['text'])}\n```\n"
    return f"{start}{text}\n</div>\n"


def dial() -> str:
    """Controls and places, which the script fills; hidden without it."""
    names = {name: html.escape(one.label) for name, one in MISTAKES.items()}
    sentences = "".join(
        f'<option value="{n}">{html.escape(one["text"])} …</option>'
        for n, one in enumerate(table()["sentences"])
    )
    turns = "".join(
        f'<label><input type="radio" name="mistake" value="{name}"> {label}</label>'
        for name, label in names.items()
    )
    bets = "".join(f'<option value="{name}">{label}</option>' for name, label in names.items())
    return f"""<section class="break" aria-label="The dial">
<form hidden>
<p><label for="break-sentence">The sentence</label>
<select id="break-sentence">{sentences}</select></p>
<p><label for="break-bet">Your bet: which mistake costs this sentence most?</label>
<select id="break-bet"><option value="">no bet yet</option>{bets}</select></p>
<fieldset><legend>The mistake</legend><div>{turns}</div></fieldset>
<p><button type="submit">Let it write</button></p>
</form>
<div class="break-shown" hidden>
<div class="break-pair">{column("right")}{column("broken")}</div>
<p class="break-seen" role="status"></p>
<p class="break-verdict" role="status"></p>
<div class="break-why"></div>
<table class="break-numbers"><caption>What it costs</caption><thead><tr><td></td>
<th scope="col">right</th><th scope="col">with the mistake</th></tr></thead><tbody></tbody></table>
<h2>Four clocks</h2>
<p>The thick hand is the query of the first written word, the thin one the key of the word before
it. Each clock is one pair of layer 2: pairs 0, 16, 32 and 64 of 128. A score depends on the angle
between the hands, which is written below.</p>
<svg class="break-clocks" viewBox="0 0 320 246" role="img"></svg>
<h2>What one head attends to</h2>
<p>Each arc leads from a word up to one that head 3 of layer 2 attends to. A thick arc is a large
weight, and a ring a weight on the word itself. In the right model this head attends to the word
before. Weights below 10% are left out.</p>
<svg class="break-arcs" viewBox="0 0 320 100" role="img"></svg>
</div>
<script type="application/json">{data()}</script>
<script defer src="_static/break.js"></script>
</section>"""


def own() -> str:
    """A form for the reader's own words, which Python continues in the page."""
    known = [name for name in own_words.mistakes(1) if name != "right"]
    turns = "".join(
        f'<option value="{name}">{html.escape(MISTAKES[name].label)}</option>' for name in known
    )
    return f"""<form class="break break-own" hidden>
<p><label for="break-own-text">Your words</label>
<input id="break-own-text" type="text" maxlength="{own_words.MOST}" value="the rays of light "></p>
<p><label for="break-own-mistake">The mistake</label>
<select id="break-own-mistake">{turns}</select></p>
<p><button type="submit">Compute</button></p>
<p class="break-own-said" role="status"></p>
<dl hidden><dt>Right positions</dt><dd></dd><dt>With the mistake</dt><dd></dd></dl>
</form>"""


def sandbox() -> str:
    """An editor for the reader's own score, which Python in the page measures: see sandbox.js."""
    names = "".join(f"<option>{html.escape(name)}</option>" for name in passport.EXAMPLES)
    return f"""<form class="break sandbox" hidden>
<p><label for="sandbox-example">Begin with</label>
<select id="sandbox-example"><option value="" hidden>your own code</option>{names}</select></p>
<p><label for="sandbox-code">Your score</label>
<textarea id="sandbox-code" class="live-code"></textarea></p>
<p><button type="submit">▶ Check</button> <button type="button">Copy link</button></p>
<p class="sandbox-status" role="status"></p>
<dl></dl>
<script type="application/json">{held(passport.EXAMPLES)}</script>
<script defer src="_static/sandbox.js"></script>
</form>"""


def with_sandbox(source: str) -> str:
    """A cell of a chapter; where chapter 70 says how to test a function, a link to the sandbox."""
    told = "[Diagnosing broken RoPE](#diagnosing-broken-rope-is-my-encoding-relative)."
    place = "../break.html#your-own-encoding-gets-a-passport"
    link = f'<a class="homework-link" href="{place}">Or test it in the page.</a>'
    return source.replace(told, f"{told} {link}")


def column(side: str) -> str:
    """One of the two texts, with a line for the number of a word."""
    return (
        f'<div class="break-{side}"><p class="break-head"></p><p class="break-text">'
        '<span class="break-given"></span><span class="break-words" role="toolbar"></span></p>'
        '<p class="break-word"></p></div>'
    )


def data() -> str:
    """The table for the script, with labels and commands."""
    whole = {
        "labels": {name: one.label for name, one in MISTAKES.items()},
        "commands": {name: command(name, "TEXT") for name in MISTAKES},
        "mistakes": table()["mistakes"],
        "sentences": table()["sentences"],
    }
    return held(whole)


def held(value: Any) -> str:
    """A value as a page holds it for a script."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace("&", r"\u0026")


def words(sentence: int, mistake: str) -> str:
    """What was written, with the first wrong word marked; a blank word is seen."""
    one = entry(sentence, mistake)
    parts = [
        html.escape(word.replace("\n", "⏎")) if word.strip(" ") else "␣" for word in one["written"]
    ]
    if 0 <= one["wrong"] < len(parts):
        parts[one["wrong"]] = f"<mark>{parts[one['wrong']]}</mark>"
    return "".join(parts)


def mean(mistake: str) -> float:
    """Mean loss of all sentences with a mistake."""
    losses = [entry(n, mistake)["loss"] for n in range(len(table()["sentences"]))]
    return float(sum(losses) / len(losses))


def every(sentence: int) -> str:
    """All mistakes with one sentence, in a table that the script fills with others."""
    rows = "".join(
        f'<tr data-mistake="{name}"><th scope="row">{html.escape(label)}</th>'
        f"<td>{entry(sentence, name)['loss']:.2f}</td><td>{mean(name):.2f}</td>"
        f"<td>{words(sentence, name)}</td></tr>"
        for name, label in (("right", "right"), *((n, m.label) for n, m in MISTAKES.items()))
    )
    given = html.escape(table()["sentences"][sentence]["text"])
    return (
        '<details class="break-all" open><summary>All mistakes at once</summary><table><caption>'
        f"<q>{given}</q>, continued. The loss is of this sentence, and the mean of all. "
        "The first wrong word is marked.</caption>"
        '<thead><tr><th scope="col">positions</th><th scope="col">loss</th><th scope="col">mean of '
        f'{len(table()["sentences"])}</th><th scope="col">what it writes</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></details>"
    )


def with_teaser(front: str) -> str:
    """The front page with three lines that lead to the page."""
    before, here, after = front.partition(MARK)
    assert here, "front.md has no place for the teaser"
    given = html.escape(table()["sentences"][0]["text"])
    lines = "".join(
        f"<dt>{label}</dt><dd>{given}<b>{words(0, name).partition('⏎')[0]}</b></dd>"
        for name, label in (
            ("right", "right"),
            ("shift", "each position + 100"),
            ("zero", "each position 0"),
        )
    )
    link = '<a href="break.html"><b>Break a real model</b></a>'
    text = f"{link}: bet which mistake hurts most, and see what Gemma 3 270M writes with it."
    return before + raw(f'<div class="break-teaser"><p>{text}</p><dl>{lines}</dl></div>') + after

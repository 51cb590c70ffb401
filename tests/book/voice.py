"""How the prose reads: patterns that a native editor would change, and how many a text may have.

`python tests/book/voice.py` prints the hits of each text, and how many sentences have more than
30 words; with `budget` it writes `voice.toml` with today's counts where they are below its own.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
BUDGET = Path(__file__).with_name("voice.toml")
UNIT = "numbers?|bytes?|rows?|radians?|steps?|panels?|one|table|points?|vectors?|bits?"
OF = "token|head|layer|step|row|pair|key|position|chapter|scheme|student|dimension|component|query"
RULES = {  # pattern: what to write, and what it finds
    rf"\b(?:{UNIT}) an? (?:{OF})\b": (
        "per: one number per token",
        "one number a token",
    ),
    r"\b[Mm]end(?:s|ed|ing)?\b": (
        "fix, remedy, solve",
        "the mend for both",
    ),
    r"\bshall\b": (
        "should, must, or the plain present",
        "it shall look back",
    ),
    r"\b[Tt]h(?:at|ose) of\b": (
        "repeat the noun, or its possessive",
        "that of the changed word",
    ),
    r"\b(?!(?:let|leave|stand|stands|leaves) )\w+ alone\b": (
        "only, before its word",
        "the distance alone",
    ),
    r"\bbut for\b": (
        "except for, apart from",
        "0 but for a single 1",
    ),
    r"\b(?:[Ww]hoever|(?:and|but) who \w+s)\b": (
        "anyone who, or you",
        "but who divides them",
    ),
    r"\b[Ww]hich \w+ ha(?:s|ve) (?:the|a|your|each|row|it)\b": (
        "does: What sign does it have?",
        "which sign has a distance",
    ),
    r"\bis left\b": (
        "the rest, what remains",
        "where a key is left",
    ),
    r", for (?:it|they|the|a|there|heads|each|no)\b": (
        "because, since",
        "masked, for it is late",
    ),
    r"\bfarther|farthest\b": (
        "further, furthest, more distant",
        "the farthest key",
    ),
    r"\banew\b": (
        "again, from scratch, recompute",
        "computed anew",
    ),
    r"\bin the place of\b": (
        "instead of, rather than",
        "in the place of sums",
    ),
    r"\b(?:Predict|Ask|asks|knows|says|hears|tells) of\b": (
        "about",
        "Predict of each pool",
    ),
    r"\bon the average\b|\bin the mean\b": (
        "on average",
        "on the average",
    ),
    r"\bexactly if\b": (
        "if and only if, exactly when",
        "exactly if it is even",
    ),
    r"\b(?:is|are) no (?!longer|more|less|such|one)\w+": (
        "is not a",
        "n is no power of two",
    ),
    r"\bone (?:sees|writes|asks|adds|can)\b": (
        "you, we",
        "one sees the rows",
    ),
    r"(?:^|(?<=[.!?] ))(?:Cached|Printed|Missing|These they) ": (
        "the subject first",
        "Printed are two rows",
    ),
    r"\bthe root of\b": (
        "the square root of",
        "the root of K",
    ),
    r"\b(?:components|keys?|positions?|rows?) more\b(?! than)": (
        "extra, too many",
        "two components more",
    ),
    r"\bfilms?\b": (
        "video",
        "images and films",
    ),
    r"\bhardly\b|\bnext to no": (
        "barely, almost none",
        "it hardly moves",
    ),
    r"\bdear\b|\brubbish\b|\bplainest\b": (
        "expensive, garbage, simplest",
        "the plainest vector",
    ),
    r"\bwith a pencil\b|\bby loops\b": (
        "by hand, with explicit loops",
        "written by loops",
    ),
    r"\bkey heads?\b": (
        "KV heads",
        "two key heads",
    ),
}
LONG, WORDY = 40, 30  # words of a sentence: none may have more, and few should


def texts() -> dict[str, str]:
    """All prose that a reader meets: chapters, pages."""
    found = {}
    for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.py")):
        cells = re.split(r"^# %%", path.read_text(encoding="utf-8"), flags=re.M)
        marked = [cell.split("\n", 1)[1] for cell in cells if cell.startswith(" [markdown]")]
        found[path.stem] = re.sub(r"^# ?", "", "\n\n".join(marked), flags=re.M)
    for path in [ROOT / "README.md", *sorted((ROOT / "notebooks").glob("*.md"))]:
        found[path.stem] = path.read_text(encoding="utf-8")
    return found


def plain(text: str) -> str:
    """Prose without code, formulas, links' targets, headings and needs; a line each."""
    text = re.sub(r"```.*?```|\$\$.*?\$\$", " ", text, flags=re.S)
    text = re.sub(r"(?<=\n\n)(?: {4}.*\n)+", "\n", text)  # indented code
    text = re.sub(r"`[^`\n]*`|\$[^$]*\$", " X ", text)
    text = re.sub(r"\]\([^)]*\)|<[^>]*>", " ", text)
    lines = [line for line in text.split("\n") if not re.match(r"\s*#|\d+ minutes\. ", line)]
    blocks = re.split(
        r"\n\s*\n|\n(?=\s*(?:[-*|]|\d+\.) )", re.sub(r"\||·", "\n\n", "\n".join(lines))
    )
    return "\n".join(" ".join(block.split()) for block in blocks)


def sentences(text: str) -> list[str]:
    """The sentences of a text, without code."""
    return re.split(r"(?<=[.!?])\s+|\n", plain(text))


def wordy(text: str) -> int:
    """How many sentences have more than 30 words."""
    return sum(len(s.split()) > WORDY for s in sentences(text))


def hits(text: str) -> dict[str, int]:
    """How often each pattern occurs, and sentences that are too long or too finely cut."""
    found = {rule: len(re.findall(rule, plain(text), re.M)) for rule in RULES}
    found["long"] = sum(len(s.split()) > LONG for s in sentences(text))
    found["semicolons"] = sum(s.count("; ") > 1 for s in sentences(text))
    found["colons"] = sum(len(re.findall(r": (?=[a-z])", s)) > 1 for s in sentences(text))
    return found


def budget() -> dict[str, dict[str, int]]:
    """How many hits, and how many sentences above 30 words, a text may have, by its name."""
    return tomllib.loads(BUDGET.read_text(encoding="utf-8"))


if __name__ == "__main__":
    now = {name: hits(text) for name, text in texts().items()}
    counts = {
        "hits": {name: sum(found.values()) for name, found in now.items()},
        "wordy": {name: wordy(text) for name, text in texts().items()},
    }
    if sys.argv[1:] == ["budget"]:
        lines = ["# Hits, and sentences above 30 words, that a text may have: they only fall."]
        for kind, old in budget().items():
            rows = {name: min(n, old.get(name, 0)) for name, n in counts[kind].items()}
            lines += [f"\n[{kind}]", *(f'"{name}" = {n}' for name, n in rows.items() if n)]
        BUDGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, found in now.items():
        if not sys.argv[1:] or name in sys.argv[1:]:
            print(f"{counts['hits'][name]:4} {counts['wordy'][name]:4} {name}")
            if name in sys.argv[1:]:
                for rule, count in found.items():
                    if count:
                        print(f"     {count:3} {rule}  ->  {RULES.get(rule, ('',))[0]}")
    print(*(sum(own.values()) for own in counts.values()))

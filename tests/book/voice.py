"""How the prose reads: patterns that a native editor would mend, and how many a text may have.

`python tests/book/voice.py` prints the hits of each text, `... budget` writes `voice.toml` with
today's counts where they are below those that it holds: budgets only fall.
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
LONG = 40  # words of a sentence


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
    """Prose without code, formulas, the targets of links and headings; a line each."""
    text = re.sub(r"```.*?```|\$\$.*?\$\$", " ", text, flags=re.S)
    text = re.sub(r"`[^`\n]*`|\$[^$]*\$", " X ", text)
    text = re.sub(r"\]\([^)]*\)|<[^>]*>", " ", text)
    lines = [line for line in text.split("\n") if not re.match(r"\s*#", line)]
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*|]|\d+\.) )", "\n".join(lines).replace("|", "\n"))
    return "\n".join(" ".join(block.split()) for block in blocks)


def hits(text: str) -> dict[str, int]:
    """How often each pattern occurs, and sentences that are too long or too finely cut."""
    prose = plain(text)
    found = {rule: len(re.findall(rule, prose, re.M)) for rule in RULES}
    sentences = re.split(r"(?<=[.!?])\s+|\n", prose)
    found["long"] = sum(len(s.split()) > LONG for s in sentences)
    found["semicolons"] = sum(s.count("; ") > 1 for s in sentences)
    found["colons"] = sum(len(re.findall(r": (?=[a-z])", s)) > 1 for s in sentences)
    return found


def budget() -> dict[str, int]:
    """How many hits a text may have, by its name."""
    return tomllib.loads(BUDGET.read_text(encoding="utf-8"))


if __name__ == "__main__":
    now = {name: hits(text) for name, text in texts().items()}
    if sys.argv[1:] == ["budget"]:
        old = budget() if BUDGET.exists() else {}
        rows = {name: min(sum(h.values()), old.get(name, 10**6)) for name, h in now.items()}
        lines = [f'"{name}" = {count}' for name, count in rows.items() if count]
        BUDGET.write_text(
            "# Hits that a text may have: they only fall.\n" + "\n".join(lines) + "\n"
        )
    for name, found in now.items():
        if not sys.argv[1:] or name in sys.argv[1:]:
            print(f"{sum(found.values()):4} {name}")
            if name in sys.argv[1:]:
                for rule, count in found.items():
                    if count:
                        print(f"     {count:3} {rule}  ->  {RULES.get(rule, ('',))[0]}")
    print(sum(sum(found.values()) for found in now.values()))

"""Experiments of chapter 80 on all-MiniLM-L6-v2: its position table, and what it does with it.

Each is a generator of rows (setting, text, value), which `real.py` here writes to `real.csv`.
What a row was measured on is in its column `text`; rows about the table itself have none there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import pe_numpy
from pe_numpy import sinusoidal
from pe_numpy.models.embed import tokenizer_of

Row = tuple[str, str, float]
CLS, SEP = 101, 102
STEADY = slice(128, 510)  # rows between those of texts cut at 128 and at 512 tokens
BOTH = (  # a sentence, the one with its roles exchanged, and a paraphrase of the first
    ("The dog bites the man.", "The man bites the dog.", "A man is bitten by a dog."),
    ("Mary gave John a book.", "John gave Mary a book.", "John received a book from Mary."),
    ("The cat chased the mouse.", "The mouse chased the cat.", "The mouse was chased by the cat."),
    ("France defeated Germany.", "Germany defeated France.", "Germany lost to France."),
    (
        "The teacher praised the student.",
        "The student praised the teacher.",
        "The student was praised by the teacher.",
    ),
    ("Alice is taller than Bob.", "Bob is taller than Alice.", "Bob is shorter than Alice."),
    ("The car hit the truck.", "The truck hit the car.", "The truck was hit by the car."),
    (
        "The lawyer sued the bank.",
        "The bank sued the lawyer.",
        "The lawyer took the bank to court.",
    ),
    ("The boy taught the girl.", "The girl taught the boy.", "The girl learned from the boy."),
    ("Oil floats on water.", "Water floats on oil.", "Water carries oil on its surface."),
)
NOUNS = "dog man, cat mouse, teacher student, boy girl, lawyer bank, doctor nurse"
VERBS = "chased praised hit sued taught helped feared called followed paid"


# ---- the table ----------------------------------------------------------------------------------


def step_matrix(rows: np.ndarray, r: int = 10) -> tuple[float, np.ndarray, np.ndarray]:
    """Fit z[p + 1] = M z[p] + b in the first r components of some rows.

    Returns the share of the variance that it explains, the eigenvalues with a positive angle from
    the fastest to the slowest, and for each the plane's complex hand at each row, (rotations, rows).
    """
    centred = rows - rows.mean(axis=0)
    z = centred @ np.linalg.svd(centred, full_matrices=False)[2][:r].T  # (rows, r)
    before = np.column_stack([z[:-1], np.ones(len(z) - 1)])
    fit = np.linalg.lstsq(before, z[1:], rcond=None)[0]  # (r + 1, r): M transposed, and b
    explained = 1 - ((z[1:] - before @ fit) ** 2).sum() / (z[1:] ** 2).sum()
    values, planes = np.linalg.eig(fit[:r])
    order = [k for k in np.argsort(-np.angle(values)) if values[k].imag > 0]
    hands = (z @ planes - fit[r] @ planes / (1 - values)).T
    return float(explained), values[order], hands[order]


def table_of(model: Any) -> np.ndarray:
    """The position embeddings in float64."""
    return np.asarray(model.parameters["positions"], float)


def with_table(model: Any, table: np.ndarray) -> Any:
    """The same model with other position embeddings."""
    own = {**model.parameters, "positions": np.asarray(table, np.float32)}
    return model.replace(parameters=own)


def components(minilm: Any) -> Iterator[Row]:
    """How many components have 95% of the variance of the rows, beside other tables."""
    E = table_of(minilm)
    tables = {
        "rows 1 to 511": E[1:],
        "random rows": np.random.default_rng(0).standard_normal((511, 384)),
        "sinusoidal": sinusoidal(np.arange(1, 512), 384),
    }
    for name, rows in tables.items():
        share = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False) ** 2
        count = int((share.cumsum() / share.sum() < 0.95).sum()) + 1
        yield f"components for 95%, {name}", "", count


def clocks(minilm: Any) -> Iterator[Row]:
    """Wavelengths of the rotations that one step is made of, from parts of the table."""
    E = table_of(minilm)
    for first, last in ((128, 509), (128, 318), (319, 509), (1, 511)):
        explained, values, _ = step_matrix(E[first : last + 1])
        name = f"rows {first} to {last}"
        yield f"{name}, share of a step explained", "", explained
        for n, angle in enumerate(np.angle(values), 1):
            yield f"{name}, wavelength {n}", "", float(2 * np.pi / angle)


def cosines(minilm: Any) -> Iterator[Row]:
    """Mean cosine of two rows from 1 on, by their distance."""
    unit = table_of(minilm)[1:]
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    for d in (1, 2, 3, 5, 6, 10, 20, 100):
        yield f"distance {d}", "", float((unit[d:] * unit[:-d]).sum(axis=1).mean())


def norms(minilm: Any) -> Iterator[Row]:
    """Lengths of the rows that stand out, and the range of the others."""
    length = np.linalg.norm(table_of(minilm), axis=1)
    special = [0, 127, 510, 511]
    for row in special:
        yield f"row {row}", "", float(length[row])
    others = np.delete(length, special)
    yield "the others, least", "", float(others.min())
    yield "the others, largest", "", float(others.max())


# ---- sentences ----------------------------------------------------------------------------------


def changed_tables(model: Any) -> dict[str, Any]:
    """The model with position embeddings that are replaced, shifted, shuffled or resized."""
    E, rng = table_of(model), np.random.default_rng(0)
    mean, kept = E[1:].mean(axis=0), E[:1]
    U, s, V = np.linalg.svd(E[1:] - mean, full_matrices=False)
    waves = sinusoidal(np.arange(1, 512), 384)
    waves -= waves.mean(axis=0)
    waves *= np.linalg.norm(E[1:] - mean) / np.linalg.norm(waves)
    middle = (E[1:-1] + E[2:]) / 2  # rows 1.5, 2.5, ...
    stretched = np.stack([E[1:-1], middle], axis=1).reshape(-1, 384)[:511]  # rows 1, 1.5, 2, ...

    def moved(to: Callable[[np.ndarray], np.ndarray]) -> Any:
        return model.replace(places=lambda p: np.where(p == 0, 0, to(p)))

    tables = {
        "zeros": np.zeros_like(E),
        "mean row": np.concatenate([kept, np.tile(mean, (511, 1))]),
        "sinusoidal": np.concatenate([kept, mean + waves]),
        "random rows": np.concatenate([kept, rng.normal(mean, E[1:].std(axis=0), (511, 384))]),
        "own rows shuffled": np.concatenate([kept, rng.permutation(E[1:])]),
        **{
            f"{r} components": np.concatenate([kept, mean + U[:, :r] * s[:r] @ V[:r]])
            for r in (2, 6, 10, 11)
        },
        "interpolated by two": np.concatenate([kept, stretched]),
    }
    shifted = {f"shifted by {n}": moved(lambda p, n=n: p + n) for n in (1, 10, 100, 300)}
    return {
        "as trained": model,
        **{name: with_table(model, table) for name, table in tables.items()},
        **shifted,
        "shifted by 100, row 0 too": model.replace(places=lambda p: p + 100),
        "reversed": moved(lambda p: p.shape[-1] - p),
        "every second row": moved(lambda p: 2 * p),
    }


def opticks(model: Any) -> np.ndarray:
    """Newton's Opticks, from character 5,000 on, as token ids without special ones."""
    text = Path(pe_numpy.__file__).parent / "training" / "data" / "opticks.txt"
    cut = tokenizer_of("opticks", model.folder, "fetch it again")
    ids = cut.encode(text.read_text(encoding="utf-8")[5000:]).ids
    return np.array([i for i in ids if i not in (CLS, SEP)])


def framed(ids: np.ndarray) -> list[int]:
    """[CLS] and [SEP] around token ids."""
    return [CLS, *ids.tolist(), SEP]


def replaced_tables(minilm: Any) -> Iterator[Row]:
    """Cosine of a text's vector with the one that the trained table gives, mean and least."""
    ids = opticks(minilm)
    texts = {
        "20 sentences": [text for row in BOTH for text in row[:2]],
        "16 passages of 128 tokens, Opticks": [
            framed(ids[900 * n : 900 * n + 126]) for n in range(16)
        ],
    }
    for where, batch in texts.items():
        true = minilm.embed(batch)
        for name, changed in changed_tables(minilm).items():
            near = (changed.embed(batch) * true).sum(axis=1)
            yield name, where, float(near.mean())
            yield f"{name}, least", where, float(near.min())


def word_order(minilm: Any) -> Iterator[Row]:
    """Cosines of a sentence with the one whose roles are exchanged, a paraphrase, another one."""
    for name, m in (("", minilm), ("zeros, ", changed_tables(minilm)["zeros"])):
        own, swapped, said = (m.embed(list(texts)) for texts in zip(*BOTH, strict=True))
        near, para = (own * swapped).sum(axis=1), (own * said).sum(axis=1)
        other = (own @ own.T)[~np.eye(len(own), dtype=bool)]
        for what, found in (("exchanged", near), ("paraphrase", para), ("another sentence", other)):
            yield f"{name}{what}", "10 pairs", float(found.mean())
            yield f"{name}{what}, least", "10 pairs", float(found.min())
            yield f"{name}{what}, largest", "10 pairs", float(found.max())
        yield f"{name}exchanged nearer than paraphrase", "10 pairs", int((near > para).sum())


def passives(minilm: Any) -> Iterator[Row]:
    """How often the passive with the same roles is nearer than the one with exchanged roles."""
    active, right, wrong = zip(*three_of_each(), strict=True)
    a, r, w = (minilm.embed(list(texts)) for texts in (active, right, wrong))
    same, other = (a * r).sum(axis=1), (a * w).sum(axis=1)
    yield "same roles nearer", "120 sentences", int((same > other).sum())
    yield "same roles, cosine", "120 sentences", float(same.mean())
    yield "exchanged roles, cosine", "120 sentences", float(other.mean())


def three_of_each() -> list[tuple[str, str, str]]:
    """Sentences of six pairs of nouns and ten verbs: active, its passive, the other's passive."""
    pairs = [tuple(pair.split()) for pair in NOUNS.split(", ")]
    return [
        (f"The {a} {v} the {b}.", f"The {b} was {v} by the {a}.", f"The {a} was {v} by the {b}.")
        for v in VERBS.split()
        for pair in pairs
        for a, b in (pair, pair[::-1])
    ]


def neighbour_heads(minilm: Any) -> Iterator[Row]:
    """Mean weight of two heads, counted from 0: layer 0, head 2 on the token before; 1, 8 on the next."""
    ids = opticks(minilm)
    passages = [framed(ids[900 * n : 900 * n + 126]) for n in range(16)]
    tables = changed_tables(minilm)
    shown = ("as trained", "shifted by 100", "10 components", "own rows shuffled", "zeros")
    for name in shown:
        watch: dict[int, np.ndarray] = {}
        tables[name].hidden(passages, watch=watch)
        before, after = watch[0][:, 2, 1:-1, 1:-1], watch[1][:, 8, 1:-1, 1:-1]
        where = "16 passages of 128 tokens, Opticks"
        yield f"{name}, previous token", where, float(np.diagonal(before, -1, 1, 2).mean())
        yield f"{name}, next token", where, float(np.diagonal(after, 1, 1, 2).mean())


# ---- beyond the last row ------------------------------------------------------------------------


def longer_tables(E: np.ndarray, rows: int) -> dict[str, np.ndarray]:
    """A table with more rows: the first 510 stay, the rows of the last [SEP] are left out."""
    more, mean = rows - 510, E[1:].mean(axis=0)
    k = np.arange(1, rows) * 508 / (rows - 2) + 1 - 508 / (rows - 2)  # from 1 to 509
    below = np.minimum(k.astype(int), 508)
    weight = (k - below)[:, None]
    random = np.random.default_rng(0).normal(mean, E[1:].std(axis=0), (more, 384))
    return {
        "interpolated": np.concatenate([E[:1], (1 - weight) * E[below] + weight * E[below + 1]]),
        "rows 1 to 509 again": np.concatenate([E[:510], E[1 + np.arange(more) % 509]]),
        "last row again": np.concatenate([E[:510], np.tile(E[509], (more, 1))]),
        "mean row": np.concatenate([E[:510], np.tile(mean, (more, 1))]),
        "random rows": np.concatenate([E[:510], random]),
        "rotations continued": np.concatenate([E[:510], continued(E[STEADY], more)]),
    }


def continued(rows: np.ndarray, more: int, r: int = 10) -> np.ndarray:
    """Rows after the last one: its components turn on, each rotation at its own mean speed."""
    mean = rows.mean(axis=0)
    axes = np.linalg.svd(rows - mean, full_matrices=False)[2][:r]  # (r, D)
    z = (rows - mean) @ axes.T
    fit = np.linalg.lstsq(np.column_stack([z[:-1], np.ones(len(z) - 1)]), z[1:], rcond=None)[0]
    values, planes = np.linalg.eig(fit[:r])
    centre = np.linalg.solve(np.eye(r) - fit[:r].T, fit[r])
    hands = (z[-1] - centre) @ planes  # (r,) complex
    turned = hands * (values / np.abs(values)) ** np.arange(1, more + 1)[:, None]
    return np.real(turned @ np.linalg.inv(planes) + centre) @ axes + mean


def longer_texts(minilm: Any) -> Iterator[Row]:
    """Texts of 900 tokens: do questions from their second half find them, and how near is it?

    The question is 30 tokens of the text; the text whose mean vector is nearest answers. The second
    number is the mean cosine of tokens 520 to 879 with themselves when the second half is read by
    itself, from position 1 on.
    """
    ids = opticks(minilm)
    texts = [ids[900 * n : 900 * n + 900] for n in range(16)]
    where = "16 texts of 900 tokens, Opticks"

    def unit(x: np.ndarray) -> np.ndarray:
        return x / np.linalg.norm(x, axis=-1, keepdims=True)

    def read(m: Any, tokens: np.ndarray) -> np.ndarray:
        return m.hidden([framed(tokens)])[0]

    halves = [(read(minilm, t[:450]), read(minilm, t[450:])) for t in texts]
    questions = [(n, t[a : a + 30]) for n, t in enumerate(texts) for a in range(480, 870, 30)]
    asked = unit(np.array([read(minilm, q).mean(axis=0) for _, q in questions]))
    owner = np.array([n for n, _ in questions])

    def right(vectors: list[np.ndarray]) -> float:
        return float(((asked @ unit(np.array(vectors)).T).argmax(axis=1) == owner).mean())

    both = [np.concatenate(pair).mean(axis=0) for pair in halves]
    yield "two halves, found", where, right(both)
    yield "cut at 512, found", where, right([read(minilm, t[:510]).mean(axis=0) for t in texts])
    for name, table in longer_tables(table_of(minilm), 902).items():
        longer = with_table(minilm, table)
        states = [read(longer, t) for t in texts]
        yield f"{name}, found", where, right([h.mean(axis=0) for h in states])
        near = [
            (unit(h[521:881]) * unit(b[71:431])).sum(axis=-1).mean()
            for h, (_, b) in zip(states, halves, strict=True)
        ]
        yield f"{name}, cosine", where, float(np.mean(near))
    yield "questions", where, len(questions)

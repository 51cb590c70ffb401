"""Text to tokens and back: a loop oracle, a vocabulary by hand, what is refused."""

import math
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pe_numpy import load_model
from pe_numpy.models.pieces import Pieces, load_pieces

GOLDEN = Path(__file__).parent / "golden/gguf"
BYTES = [(f"<0x{n:02X}>", 0.0, 6) for n in range(256)]
SPECIAL = [("<unk>", 0.0, 2), ("<s>", -1000.0, 3), ("</s>", -1000.0, 3)]
WORDS = {  # those with equal scores are joined from the left
    **{"▁": -50.0, "a": -51.0, "b": -52.0, "c": -53.0, "<": -54.0, "s": -55.0, ">": -56.0},
    **{"ab": -1.0, "ba": -1.0, "aa": -2.0, "aaa": -1.5, "aaaa": -3.0, "bc": -0.5, "abc": -9.0},
    **{"▁a": -4.0, "▁▁": -4.0, "▁▁▁a": -5.0, "c▁": -4.0, "<s": -6.0, "<s>": -6.0, "é": -7.0},
}
WHOLE = ["\n", "\n\n", "<x>", "  c", "ac", "aca"]
ROWS = [*SPECIAL, *BYTES, *((w, s, 1) for w, s in WORDS.items()), *((w, 0.0, 4) for w in WHOLE)]
TOKENS, SCORES, KINDS = (list(column) for column in zip(*ROWS, strict=True))
V = len(TOKENS)
ID = {token: n for n, token in enumerate(TOKENS)}
PIECES = Pieces(TOKENS, SCORES, KINDS, bos=1)
PREFIXED = Pieces(TOKENS, SCORES, KINDS, bos=None, prefix=True)


def parts(text):
    """What users defined, cut out of a text: at each place the longest."""
    found, at = [["", False]], 0
    while at < len(text):
        here = [word for word in WHOLE if text.startswith(word, at)]
        if here:
            found += [[max(here, key=len), True], ["", False]]
        else:
            found[-1][0] += text[at]
        at += max(map(len, here), default=1)
    return [(part, whole) for part, whole in found if part]


def oracle(text, prefix=False):
    """Tokens of a text, by looking at all pairs before each join."""
    ids = []
    for part, whole in parts(text):
        if whole:
            ids.append(ID[part])
            continue
        row = list((" " * prefix + part).replace(" ", "▁"))
        while True:
            best, place = -math.inf, None
            for n in range(len(row) - 1):
                score = WORDS.get(row[n] + row[n + 1], -math.inf)
                if score > best:
                    best, place = score, n
            if place is None:
                break
            row[place : place + 2] = [row[place] + row[place + 1]]
        for piece in row:
            if piece in WORDS:
                ids.append(ID[piece])
            else:
                ids += [ID[f"<0x{byte:02X}>"] for byte in piece.encode()]
    return ids


TEXT = st.text(st.sampled_from("aaabbc  \n<x>sé🙂\0"), max_size=40) | st.text(max_size=12)


@settings(deadline=None, max_examples=300)
@given(TEXT, st.booleans())
def test_tokens_are_those_of_a_loop_over_all_pairs(text, prefix):
    ours = PREFIXED.encode(text) if prefix else PIECES.encode(text)[1:]
    assert ours == oracle(text, prefix)


@settings(deadline=None, max_examples=300)
@given(TEXT.filter(lambda text: "▁" not in text))
def test_the_text_comes_back(text):
    assert PIECES.decode(PIECES.encode(text)) == text
    if parts(text) == [(text, False)]:
        assert PREFIXED.decode(PREFIXED.encode(text)) == text


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", []),
        ("aba", ["ab", "a"]),  # ab and ba have one score: from the left
        ("abc", ["abc"]),  # a and bc
        ("babc", ["ba", "bc"]),  # bc comes first: ab and c can't meet any more
        ("aaaaa", ["aaa", "aa"]),
        ("   a", ["▁▁▁a"]),  # by way of ▁▁ and ▁a
        ("    a", ["▁▁", "▁▁", "a"]),  # the last two spaces came before ▁a, with the same score
        ("  c", ["  c"]),
        ("\n\n\n", ["\n\n", "\n"]),
        ("acaca", ["aca", "c", "a"]),  # the longest at each place
        ("<s>", ["<s>"]),  # the piece, as here is one: the control token of that name is another
        ("z🙂", ["<0x7A>", "<0xF0>", "<0x9F>", "<0x99>", "<0x82>"]),
        ("é\u0301", ["é", "<0xCC>", "<0x81>"]),
        ("▁a", ["▁a"]),
    ],
)
def test_by_hand(text, expected):
    ids = PIECES.encode(text)
    assert ids[0] == 1
    assert [TOKENS[n] for n in ids[1:]] == expected


def test_a_long_run_is_no_trouble():
    assert PIECES.encode("a" * 30_000)[1:] == [ID["aaa"]] * 10_000


# ---- back to text -------------------------------------------------------------------------------


def test_text_comes_as_soon_as_its_bytes_are_whole():
    ids = [
        1,
        ID["▁a"],
        ID["<0xF0>"],
        ID["<0x9F>"],
        ID["<0x99>"],
        ID["<0x82>"],
        ID["\n"],
        0,
        ID["b"],
    ]
    told, here = [], []
    for text in PIECES.stream(told.append(n) or n for n in ids):
        here.append((len(told), text))
    assert here == [(2, " a"), (6, "🙂"), (7, "\n"), (9, "b")]
    assert PIECES.decode(ids) == " a🙂\nb" and PREFIXED.decode(ids) == "a🙂\nb"


def test_bytes_that_are_no_character_are_replaced_and_the_rest_goes_on():
    a, cut = ID["a"], [ID["<0xF0>"], ID["<0x9F>"]]
    assert PIECES.decode([*cut, a, ID["<0xFF>"], a]) == "\ufffda\ufffda"
    assert PIECES.decode([a, *cut]) == "a\ufffd"
    assert list(PIECES.stream([])) == []


# ---- what is refused ----------------------------------------------------------------------------


LACKS = [row for row in ROWS if row[0] not in ("<0x00>", "<0xFF>")]


@pytest.mark.parametrize(
    "tokens, scores, kinds, bos, message",
    [
        (
            TOKENS,
            SCORES[:-1],
            KINDS,
            None,
            f"a finite score and a kind; got {V} tokens, {V - 1} scores",
        ),
        (TOKENS, SCORES, KINDS[:-2], None, f"{V} scores, {V - 2} kinds"),
        (TOKENS, [math.nan, *SCORES[1:]], KINDS, None, "a finite score"),
        (TOKENS, SCORES, KINDS, V, f"bos must be a token from 0 to {V - 1}; got {V}"),
        (TOKENS, SCORES, KINDS, -1, "bos must be a token"),
        (TOKENS, SCORES, KINDS, "1", f"bos must be a token from 0 to {V - 1}; got '1'"),
        (*zip(*LACKS, strict=True), None, "all bytes, .* got 254 bytes"),
        (["", *TOKENS[1:]], SCORES, [4, *KINDS[1:]], None, "no empty user-defined piece"),
    ],
)
def test_a_vocabulary_that_cannot_serve_is_refused(tokens, scores, kinds, bos, message):
    with pytest.raises(ValueError, match=f"^pieces: .*{message}"):
        Pieces(tokens, scores, kinds, bos)


def test_texts_and_tokens_of_another_kind_are_refused():
    with pytest.raises(ValueError, match=r"^pieces: text must be a string; got bytes"):
        PIECES.encode(b"a")
    with pytest.raises(ValueError, match=r"^pieces: text must have whole characters; .*'\\ud83d'"):
        PIECES.encode("a\ud83d")
    for token, message in (
        (V, f"below {V}; got {V}"),
        (-1, "at least 0"),
        ("a", "a whole number"),
    ):
        with pytest.raises(ValueError, match=f"^pieces: a token must be {message}"):
            PIECES.decode([1, token])


# ---- the tokenizer of a file --------------------------------------------------------------------


def file_with(folder, **keys):
    """A GGUF file of keys alone; None leaves one out."""
    codes = {bool: (7, "?"), int: (5, "i"), float: (6, "f")}

    def text(x):
        return struct.pack("<Q", len(x.encode())) + x.encode()

    def value(x):
        if isinstance(x, str):
            return 8, text(x)
        if isinstance(x, list):
            kind = value(x[0])[0] if x else 8
            inner = b"".join(value(each)[1] for each in x)
            return 9, struct.pack("<IQ", kind, len(x)) + inner
        kind, code = codes[type(x)]
        return kind, struct.pack(f"<{code}", x)

    held = {"model": "llama", "tokens": TOKENS, "scores": SCORES, "token_type": KINDS} | keys
    held = {f"tokenizer.ggml.{key}": x for key, x in held.items() if x is not None}
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, len(held))
    for key, x in held.items():
        kind, raw = value(x)
        head += text(key) + struct.pack("<I", kind) + raw
    (folder / "m.gguf").write_bytes(head)
    return folder / "m.gguf"


def test_a_file_says_whether_bos_and_a_space_come_first(tmp_path):
    both = load_pieces(file_with(tmp_path, bos_token_id=2))  # as where it says nothing
    assert both.encode("a") == [2, ID["▁a"]] and both.decode([2, ID["▁a"]]) == "a"
    neither = {"add_bos_token": False, "add_space_prefix": False}
    assert load_pieces(file_with(tmp_path, **neither)).encode("a") == [ID["a"]]


@pytest.mark.parametrize(
    "keys, message",
    [
        (
            {"model": "gpt2"},
            "m.gguf must have a tokenizer of pieces .* calls llama; got 'gpt2': the",
        ),
        ({"model": None}, "got 'none': the model loads, and reads token ids"),
        ({"model": ["llama"]}, "got \\['llama'\\]"),
        ({"scores": None}, "m.gguf must have a list of float as tokenizer.ggml.scores"),
        ({"scores": [1] * V}, "a list of float as tokenizer.ggml.scores"),
        ({"tokens": []}, "a list of str as tokenizer.ggml.tokens"),
        ({"token_type": 3}, "a list of int as tokenizer.ggml.token_type"),
        ({"token_type": [True] * V}, "a list of int as tokenizer.ggml.token_type"),
        ({}, f"bos must be a token from 0 to {V - 1}; got 'none'"),
        ({"bos_token_id": V}, f"bos must be a token from 0 to {V - 1}; got {V}"),
        ({"bos_token_id": True}, "bos must be a token"),
    ],
)
def test_a_file_without_such_a_tokenizer_is_refused(tmp_path, keys, message):
    with pytest.raises(ValueError, match=f"^pieces: .*{message}"):
        load_pieces(file_with(tmp_path, **keys))


def test_a_model_loads_without_its_tokenizer():
    assert load_model(GOLDEN / "gpt2.gguf").vocabulary == 37
    with pytest.raises(ValueError, match=r"gpt2.gguf must have a tokenizer .* got 'gpt2'"):
        load_pieces(GOLDEN / "gpt2.gguf")

"""Tasks: what items look like, the split, the known entropy, published text, bad input."""

import inspect
import math
import re
import zlib
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy.judging.tasks import (
    BOS,
    CLS,
    DATES,
    EOS,
    IGNORE,
    LETTERS,
    NOUNS,
    PAD,
    VERBS,
    date_batch,
    markov_batch,
    markov_language,
    needle_batch,
    offset_batch,
    opticks,
    reversal_batch,
    text_batch,
    text_corpus,
    to_strings,
    to_tokens,
    word_order_batch,
)

LANGUAGE = markov_language()
CORPUS = text_corpus()
TASKS = {
    "reversal": reversal_batch,
    "date": date_batch,
    "markov": lambda rng, size, **side: markov_batch(rng, size, 30, LANGUAGE, **side),
    "text": lambda rng, size, **side: text_batch(rng, size, 30, CORPUS, **side),
    "offset": offset_batch,
    "needle": needle_batch,
    "word order": word_order_batch,
}
SHAPES = {
    "reversal": {"source": (10,), "inputs": (11,), "targets": (11,)},
    "date": {"source": (17,), "inputs": (11,), "targets": (11,)},
    "markov": {"inputs": (30,), "targets": (30,)},
    "text": {"inputs": (30,), "targets": (30,)},
    "offset": {"inputs": (32,), "targets": (32,)},
    "needle": {"inputs": (32,), "targets": (32,)},
    "word order": {"inputs": (3,), "targets": ()},
}
each_task = pytest.mark.parametrize("task", TASKS)


def items(batch):
    """The rows of a batch as a set, each with all that it holds."""
    return set(
        zip(*(map(tuple, rows.reshape(len(rows), -1)) for rows in batch.values()), strict=True)
    )


def rng(seed=0):
    return np.random.default_rng(seed)


# ---- all tasks ----------------------------------------------------------------------------------


@each_task
@pytest.mark.parametrize("size", [0, 1, 13])
def test_a_batch_is_a_dictionary_of_integer_arrays_of_its_own_shapes(task, size):
    batch = TASKS[task](rng(), size)
    assert {name: rows.shape for name, rows in batch.items()} == {
        name: (size, *shape) for name, shape in SHAPES[task].items()
    }
    assert {rows.dtype for rows in batch.values()} == {np.dtype(np.int64)}


@each_task
def test_the_same_generator_gives_the_same_batch_and_goes_on_to_another(task):
    generator = rng(7)
    first, second = TASKS[task](generator, 5), TASKS[task](generator, 5)
    again = TASKS[task](rng(7), 5)
    for name, rows in first.items():
        assert_array_equal(again[name], rows)
    assert items(first) != items(second)
    assert items(first) != items(TASKS[task](rng(8), 5))


@each_task
def test_no_held_out_item_is_ever_seen_in_training(task):
    seen = {row for seed in range(20) for row in items(TASKS[task](rng(seed), 200))}
    held = items(TASKS[task](rng(99), 300, held_out=True))
    assert len(held) > 10
    assert not {row[0] for row in seen} & {row[0] for row in held}  # by what the model is given


def test_nothing_is_drawn_from_global_state():
    np.random.seed(0)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    for task in TASKS.values():
        task(rng(), 3)
    assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


# ---- strings and tokens -------------------------------------------------------------------------


def test_marks_are_the_first_three_places_of_both_alphabets():
    for alphabet in (LETTERS, DATES):
        assert [alphabet[n] for n in (PAD, BOS, EOS)] == ["_", "^", "$"]
        assert len(set(alphabet)) == len(alphabet)
    assert (len(LETTERS), len(DATES)) == (29, 36)


@given(st.lists(st.text(LETTERS[3:]), max_size=5))
def test_strings_go_to_tokens_and_back(strings):
    tokens = to_tokens(strings, LETTERS, 100)
    assert tokens.shape == (len(strings), 100)
    assert [text.rstrip("_") for text in to_strings(tokens, LETTERS)] == strings
    for text in strings:
        assert to_tokens(text, LETTERS).tolist() == [LETTERS.index(c) for c in text]
        assert to_strings(to_tokens(text, LETTERS), LETTERS) == text


def test_rows_are_padded_on_the_right_to_the_longest_or_to_a_length():
    assert to_tokens(["ab", "", "c"], "_abc").tolist() == [[1, 2], [0, 0], [3, 0]]
    assert to_tokens("ab", "_abc", 4).tolist() == [1, 2, 0, 0]
    assert to_tokens([], "_abc").shape == (0, 0)
    assert to_strings([[[1], [2]], [[3], [0]]], "_abc") == [["a", "b"], ["c", "_"]]


# ---- reversal -----------------------------------------------------------------------------------


@pytest.mark.parametrize("held_out", [False, True])
def test_targets_are_the_source_backwards_and_inputs_one_place_later(held_out):
    batch = reversal_batch(rng(), 400, held_out=held_out)
    lengths = set()
    for source, inputs, targets in zip(*batch.values(), strict=True):
        length = int((source != PAD).sum())
        lengths.add(length)
        assert (source[length:] == PAD).all() and source[:length].min() >= 3
        backwards = source[:length][::-1].tolist()
        rest = [PAD] * (10 - length)
        assert inputs.tolist() == [BOS, *backwards, *rest]
        assert targets.tolist() == [*backwards, EOS, *rest]
        word = to_strings(source[:length], LETTERS)
        assert (zlib.crc32(word.encode()) % 10 == 0) == held_out
    assert lengths == set(range(3, 11))
    assert set(batch["source"].reshape(-1).tolist()) == {PAD, *range(3, 29)}


@pytest.mark.parametrize("held_out", [False, True])
def test_inputs_and_targets_are_padded_at_the_same_places_but_for_the_marks(held_out):
    batch = reversal_batch(rng(1), 50, held_out=held_out)
    assert_array_equal(batch["inputs"] != PAD, batch["targets"] != PAD)
    assert_array_equal((batch["inputs"] != PAD).sum(1), (batch["source"] != PAD).sum(1) + 1)


def test_strings_may_be_longer_than_those_of_the_training():
    batch = reversal_batch(rng(), 50, shortest=11, longest=12)
    assert batch["source"].shape == (50, 12)
    assert set((batch["source"] != PAD).sum(axis=1).tolist()) == {11, 12}


def test_one_string_in_ten_is_held_out():
    words = [f"{n:b}".translate(str.maketrans("01", "ab")) for n in range(100_000)]
    share = sum(zlib.crc32(word.encode()) % 10 == 0 for word in words) / len(words)
    assert_allclose(share, 0.1, rtol=0, atol=0.005)


# ---- dates --------------------------------------------------------------------------------------


@pytest.mark.parametrize("held_out", [False, True])
def test_sources_name_the_day_of_the_target_in_one_of_three_styles(held_out):
    batch = date_batch(rng(), 900, held_out=held_out)
    assert (batch["source"][:, :6] != PAD).all()
    days, styles = [], set()
    months = "january february march april may june july august september october november december"
    for source, inputs, targets in zip(*batch.values(), strict=True):
        text = to_strings(source, DATES).rstrip("_")
        answer = to_strings(targets, DATES)
        assert to_strings(inputs, DATES) == "^" + answer[:-1]
        assert re.fullmatch(r"\d{4}-\d\d-\d\d\$", answer)
        day = date.fromisoformat(answer[:-1])
        month = months.split()[day.month - 1]
        written = [
            f"{day.day} {month[:3]} {day.year}",
            f"{day.day} {month} {day.year}",
            f"{month} {day.day} {day.year}",
        ]
        assert text in written
        styles.add(written.index(text) if month != "may" else 2)
        days.append(day)
        assert (zlib.crc32(answer[:-1].encode()) % 10 == 0) == held_out
    assert styles == {0, 1, 2}
    assert {day.month for day in days} == set(range(1, 13))
    assert {day.day for day in days} == set(range(1, 32))
    assert date(1900, 1, 1) <= min(days) < date(1903, 1, 1)
    assert date(2097, 1, 1) < max(days) <= date(2099, 12, 31)


def test_a_held_out_day_is_held_out_in_every_style():
    seen = {to_strings(row, DATES) for n in range(30) for row in date_batch(rng(n), 300)["targets"]}
    held = {to_strings(row, DATES) for row in date_batch(rng(99), 900, held_out=True)["targets"]}
    assert not seen & held
    assert len(held) > 700


# ---- the Markov language ------------------------------------------------------------------------


def test_table_is_the_softmax_of_its_logits_entry_by_entry():
    logits = 1.5 * np.random.default_rng(4).standard_normal((3, 3, 3))
    table = markov_language(3, 1.5, seed=4)["table"]
    for a in range(3):
        for b in range(3):
            total = sum(math.exp(x) for x in logits[a, b])
            expected = [math.exp(x) / total for x in logits[a, b]]
            assert_allclose(table[a, b], expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize(("symbols", "seed"), [(16, 0), (2, 1), (5, 2), (1, 3)])
def test_frequencies_of_pairs_are_the_eigenvector_of_the_chain_of_pairs(symbols, seed):
    language = markov_language(symbols, 2.0, seed)
    V = symbols
    chain = np.zeros((V * V, V * V))  # from "a b" to "b c"
    for a in range(V):
        for b in range(V):
            for c in range(V):
                chain[a * V + b, b * V + c] = language["table"][a, b, c]
    pairs = language["pairs"].reshape(-1)
    assert_allclose(pairs @ chain, pairs, rtol=0, atol=1e-14)
    assert_allclose(pairs.sum(), 1, rtol=1e-15)
    values, vectors = np.linalg.eig(chain.T)
    first = np.real(vectors[:, np.argmax(np.real(values))])
    assert_allclose(pairs, first / first.sum(), rtol=0, atol=1e-11)


def test_entropy_is_that_of_a_symbol_given_the_two_before_it():
    V, table, pairs = 16, LANGUAGE["table"], LANGUAGE["pairs"]
    expected = 0.0
    for a in range(V):
        for b in range(V):
            for c in range(V):
                expected -= pairs[a, b] * table[a, b, c] * math.log(table[a, b, c])
    assert_allclose(LANGUAGE["entropy"], expected, rtol=1e-12)
    assert_allclose(LANGUAGE["entropy"], 1.6411, rtol=0, atol=5e-5)
    assert type(LANGUAGE["entropy"]) is float
    one = pairs.sum(axis=0)
    assert_allclose(-(one * np.log(one)).sum(), 2.7565, rtol=0, atol=5e-5)  # of a symbol alone
    assert_allclose(markov_language(16, 0.0)["entropy"], math.log(16), rtol=1e-14)


@pytest.mark.parametrize("held_out", [False, True])
def test_sequences_have_the_frequencies_and_the_surprise_of_their_language(held_out):
    language = markov_language(4, 1.0, seed=5)
    batch = markov_batch(rng(1), 3000, 19, language, held_out)
    rows = np.concatenate([batch["inputs"], batch["targets"][:, -1:]], axis=1)  # (B, 20)
    a, b, c = rows[:, :-2], rows[:, 1:-1], rows[:, 2:]
    surprise = -np.log(language["table"][a, b, c])
    assert_allclose(surprise.mean(), language["entropy"], rtol=0, atol=0.012)  # 3.5 deviations
    for t in (0, 1, 9, 18):  # from the first pair to the last
        counts = np.zeros((4, 4))
        np.add.at(counts, (rows[:, t], rows[:, t + 1]), 1 / len(rows))
        assert_allclose(counts, language["pairs"], rtol=0, atol=0.03)
    counts = np.zeros((4, 4, 4))
    np.add.at(counts, (a, b, c), 1.0)
    assert_allclose(
        counts / counts.sum(axis=-1, keepdims=True), language["table"], rtol=0, atol=0.05
    )


def test_targets_are_the_next_symbols():
    for task in ("markov", "text"):
        batch = TASKS[task](rng(), 6)
        assert_array_equal(batch["inputs"][:, 1:], batch["targets"][:, :-1])


def test_a_language_without_chance_repeats_its_circle():
    table = np.zeros((3, 3, 3))
    table[:, 0, 1] = table[:, 1, 2] = table[:, 2, 0] = 1  # 0 1 2 0 1 2 ...
    pairs = np.zeros((3, 3))
    pairs[0, 1] = pairs[1, 2] = pairs[2, 0] = 1 / 3
    rows = markov_batch(rng(), 20, 8, {"table": table, "pairs": pairs})["inputs"]
    assert_array_equal((rows[:, 1:] - rows[:, :-1]) % 3, 1)


# ---- the text -----------------------------------------------------------------------------------


def test_the_text_is_newtons_and_plain():
    text = opticks()
    assert len(text) == 377_046 == len(text.encode("ascii"))
    assert zlib.crc32(text.encode()) == 797798203
    assert text.startswith("THE FIRST BOOK OF OPTICKS\n")
    assert text.endswith("his Sons before they corrupted themselves.\n")
    assert "By the Rays of Light I understand its least Parts" in text
    assert not set(text) & set("_[]|{}*#@\t\r")
    assert max(map(len, text.splitlines())) <= 80
    assert not re.search("gutenberg|licen[cs]e|transcrib|proofread|ebook|www|http", text, re.I)


def test_the_corpus_is_cut_once_at_nine_tenths_of_the_plain_text():
    plain = " ".join(opticks().split()).lower()
    alphabet, train, held = CORPUS["alphabet"], CORPUS["train"], CORPUS["held_out"]
    assert alphabet == "".join(sorted(set(plain)))
    assert alphabet == " &'()+,-./0123456789:;?abcdefghijklmnopqrstuvwxyz"
    assert to_strings(train, alphabet) + to_strings(held, alphabet) == plain
    assert (len(train), len(held)) == (int(0.9 * len(plain)), len(plain) - int(0.9 * len(plain)))
    small = text_corpus("One  two\nthree\tfour.", share=0.5)
    assert to_strings(small["train"], small["alphabet"]) == "one two t"
    assert to_strings(small["held_out"], small["alphabet"]) == "hree four."


def test_windows_lie_at_every_place_of_their_part_and_never_beyond():
    corpus = text_corpus("abcdefghijklmnopqrst", share=0.7)  # a to n, o to t
    batch = text_batch(rng(), 500, 4, corpus)
    assert {to_strings(row, corpus["alphabet"]) for row in batch["inputs"]} == {
        "abcdefghijklmn"[n : n + 4] for n in range(10)
    }
    assert_array_equal(batch["targets"], batch["inputs"] + 1)
    held = text_batch(rng(), 500, 4, corpus, held_out=True)
    assert {to_strings(row, corpus["alphabet"]) for row in held["inputs"]} == {"opqr", "pqrs"}
    assert (
        to_strings(text_batch(rng(), 1, 5, corpus, True)["targets"][0], corpus["alphabet"])
        == "pqrst"
    )


# ---- probes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("places", [0, 1, 3, 6])
def test_the_target_is_the_symbol_so_many_places_back(places, held_out):
    batch = offset_batch(rng(), 300, 7, places, 5, held_out=held_out)
    for row, targets in zip(batch["inputs"], batch["targets"], strict=True):
        expected = [row[i - places] if i >= places else IGNORE for i in range(7)]
        assert targets.tolist() == expected
        assert (zlib.crc32(row.astype("<i8").tobytes()) % 10 == 0) == held_out
    assert set(batch["inputs"].reshape(-1).tolist()) == set(range(5))


@pytest.mark.parametrize(("length", "keys", "values"), [(12, 3, 5), (32, 8, 8), (2, 4, 2)])
def test_the_key_that_is_asked_for_stands_once_before_and_its_value_is_the_target(
    length, keys, values
):
    batch = needle_batch(rng(), 700, length, keys, values)
    places, answers, questions = set(), set(), set()
    for row, targets in zip(batch["inputs"], batch["targets"], strict=True):
        pairs, question = [divmod(int(token), values) for token in row[:-1]], row[-1]
        asked = int(question) - keys * values
        assert 0 <= asked < keys
        (place,) = [n for n, (key, _) in enumerate(pairs) if key == asked]
        assert targets.tolist() == [IGNORE] * (length - 1) + [pairs[place][1]]
        assert all(0 <= key < keys for key, _ in pairs)
        places.add(place)
        answers.add(pairs[place][1])
        questions.add(asked)
    assert places == set(range(length - 1))
    assert answers == set(range(values))
    assert questions == set(range(keys))
    assert set(batch["inputs"][:, :-1].reshape(-1).tolist()) == set(range(keys * values))


def test_sentences_are_noun_verb_noun_and_ask_for_the_first():
    batch = word_order_batch(rng(), 3000)
    who, verb, whom = batch["inputs"].T
    assert_array_equal(batch["targets"], who)
    assert (who != whom).all()
    assert set(who.tolist()) == set(whom.tolist()) == set(range(len(NOUNS)))
    assert set(verb.tolist()) == set(range(len(NOUNS), len(NOUNS) + len(VERBS)))
    assert (len(NOUNS), len(VERBS), CLS) == (8, 4, 12)


def test_every_sentence_is_on_one_side_together_with_its_mirror_image():
    train = {row[0] for row in items(word_order_batch(rng(), 5000))}
    held = {row[0] for row in items(word_order_batch(rng(), 5000, held_out=True))}
    assert len(train) + len(held) == 8 * 7 * 4
    assert not train & held
    for side in (train, held):
        assert {(whom, verb, who) for who, verb, whom in side} == side


def test_a_token_may_stand_in_front_of_the_sentence():
    plain, marked = word_order_batch(rng(), 9), word_order_batch(rng(), 9, cls=True)
    assert_array_equal(marked["inputs"][:, 1:], plain["inputs"])
    assert_array_equal(marked["inputs"][:, 0], CLS)
    assert_array_equal(marked["targets"], plain["targets"])


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: to_tokens("aé", LETTERS), "to_tokens: each character must be in the .*; got 'é'"),
        (lambda: to_tokens(["a", "B"], LETTERS), "got 'B'"),
        (
            lambda: to_tokens("a", "aba"),
            "alphabet must hold every character once; got 3 characters, 2",
        ),
        (lambda: to_tokens("a", ""), "alphabet must hold every character once; got 0"),
        (lambda: to_tokens(["a", "abc"], "abc", 2), "a string may have 2 characters; got 3"),
        (lambda: to_tokens("a", "abc", -1), "to_tokens: length must be at least 0; got -1"),
        (
            lambda: to_strings([0, 29], LETTERS),
            "to_strings: tokens must be from 0 to 28.*got 0 to 29",
        ),
        (lambda: to_strings([IGNORE, 3], LETTERS), "tokens must be from 0 to 28, .*; got -1 to 3"),
        (lambda: to_strings([0.5], LETTERS), "to_strings: tokens must be whole numbers"),
        (lambda: to_strings(3, LETTERS), "to_strings: tokens must be an axis"),
        (lambda: reversal_batch(rng(), 2, 0), "reversal_batch: shortest must be at least 1; got 0"),
        (
            lambda: reversal_batch(rng(), 2, 5, 4),
            "reversal_batch: longest must be at least 5; got 4",
        ),
        (lambda: reversal_batch(rng(), -1), "reversal_batch: size must be at least 0; got -1"),
        (lambda: date_batch(rng(), 1.5), "date_batch: size must be a whole number; got 1.5"),
        (lambda: markov_language(0), "markov_language: symbols must be at least 1; got 0"),
        (lambda: markov_language(4, -1), "markov_language: sharpness must be at least 0; got -1"),
        (
            lambda: markov_language(4, math.inf),
            "markov_language: sharpness must be finite; got inf",
        ),
        (lambda: markov_language(3, 1e6), "sharpness must leave every symbol a chance.*; got 1e"),
        (lambda: markov_language(seed=-1), "markov_language: seed must be at least 0; got -1"),
        (lambda: markov_batch(rng(), 1, 0, LANGUAGE), "markov_batch: length must be at least 1"),
        (lambda: text_corpus("abc", 1), "share must leave some .*; got 1 of 3 characters"),
        (
            lambda: text_corpus("", 0.5),
            "text_corpus: share must leave some .* got 0.5 of 0 characters",
        ),
        (
            lambda: text_batch(rng(), 1, 10, text_corpus("0123456789abcdefghij", 0.5)),
            "text_batch: a window must be shorter than its part of the text, 10 .*; got length 10",
        ),
        (lambda: text_batch(rng(), -1, 3, CORPUS), "text_batch: size must be at least 0; got -1"),
        (lambda: text_batch(rng(), 1, 0, CORPUS), "text_batch: length must be at least 1; got 0"),
        (lambda: offset_batch(rng(), 1, 3, 3), "offset_batch: length must be at least 4; got 3"),
        (
            lambda: offset_batch(rng(), 1, places=-1),
            "offset_batch: places must be at least 0; got -1",
        ),
        (
            lambda: offset_batch(rng(), 1, symbols=0),
            "offset_batch: symbols must be at least 1; got 0",
        ),
        (lambda: offset_batch(rng(), 9, 1, 0, 1, held_out=True), "offset_batch: there are too few"),
        (lambda: needle_batch(rng(), 1, 1), "needle_batch: length must be at least 2; got 1"),
        (lambda: needle_batch(rng(), 1, keys=1), "needle_batch: keys must be at least 2; got 1"),
        (
            lambda: needle_batch(rng(), 1, values=0),
            "needle_batch: values must be at least 1; got 0",
        ),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@each_task
@pytest.mark.parametrize("seed", [0, None, np.random.RandomState(0)])
def test_what_is_no_generator_is_refused_with_the_way_to_make_one(task, seed):
    with pytest.raises(
        ValueError,
        match=r"_batch: rng must be a generator, such as np\.random\.default_rng\(0\); got",
    ):
        TASKS[task](seed, 3)


def test_held_out_is_off_unless_it_is_asked_for():
    for task in (reversal_batch, date_batch, markov_batch, text_batch, offset_batch, needle_batch):
        assert inspect.signature(task).parameters["held_out"].default is False

"""The prose keeps to the words of the field, and to its budget of patterns that need the pen."""

import re

import pytest
import voice
from reading import NOTEBOOKS

TEXTS = voice.texts()
BUDGET = voice.budget()
TERMS = {  # what a reader who searches types, where it is taught
    "10_attention": "query|key|head dimension|attention mask|softmax",
    "11_why_position": "positional encoding|permutation",
    "12_attention_blocks": "FlashAttention|sliding window|attention sink|online softmax",
    "20_sinusoidal": "sinusoidal positional encoding|wavelength",
    "21_learned": "position embedding",
    "25_grid": "2-D|patch",
    "33_t5": "relative position bias|bucket",
    "35_alibi": "ALiBi|slope",
    "40_rope_derived": "rotary position embedding|rotated",
    "41_rope_computed": "rotate_half|KV cache",
    "42_rope_in_models": "rope_theta|partial",
    "44_fewer_keys": "grouped-query attention|multi-query attention|KV heads|KV cache",
    "50_scaling": "position interpolation|NTK|YaRN|context length",
    "51_extrapolation": "length extrapolation|context length",
    "60_layers": "feed-forward|MLP|residual|layer norm",
    "63_decoding": "KV cache|prefill|speculative decoding|beam search",
    "64_real_models": "GGUF|safetensors",
    "72_which_one": "positional encoding",
}
FIRST = {  # term: the chapter that introduces it, and what explains it before that chapter
    "KV cache": ("41", "keys and values"),
    "perplexity": ("62", "surprise"),
    "autoregressive": ("60", "one at a time"),
    "RoPE": ("40", "rotary"),
    "ALiBi": ("35", "linear bias"),
    "GQA": ("44", "grouped-query"),
    "MQA": ("44", "multi-query"),
    "MLA": ("44", "latent"),
    "xPos": ("45", "decay"),
    "NTK": ("50", "scaling"),
    "YaRN": ("50", "scaling"),
}
UNEXPLAINED = {  # they only become fewer
    *(("00", "ALiBi"), ("30", "RoPE"), ("40", "xPos")),
    *((chapter, "KV cache") for chapter in ("12", "21", "22", "26")),
    *(("41", "perplexity"), ("42", "YaRN")),
}
IN_A_TITLE = (
    "positional encoding",
    "KV cache",
    "sliding[- ]window",
    "attention sinks",
    "RoPE scaling",
)


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_has_more_than_its_budget(name):
    found = voice.hits(TEXTS[name])
    assert sum(found.values()) <= BUDGET["hits"].get(name, 0), {k: n for k, n in found.items() if n}
    above = [s for s in voice.sentences(TEXTS[name]) if len(s.split()) > voice.WORDY]
    assert voice.wordy(TEXTS[name]) <= BUDGET["wordy"].get(name, 0), above


def test_each_pattern_finds_its_example_and_the_others_theirs():
    for rule, (_, example) in voice.RULES.items():
        assert re.search(rule, example), rule
    planted = voice.hits("A b; c d; e. It is: one thing: another. " + "word " * 41 + ".")
    assert [planted[name] for name in ("long", "semicolons", "colons")] == [1, 1, 1]
    assert voice.wordy("word " * 30 + "end. " + "word " * 29 + "end.") == 1
    hidden = "`one number a token` $shall$\n\n## The root of K\n\n    a: b: c\n\n9 minutes. A: b: c"
    assert not sum(voice.hits(hidden).values())


def unexplained(name, text):
    """Terms that a chapter uses before the book introduces them, without a word or a link."""
    found = set()
    for term, (home, meaning) in FIRST.items():
        lines = voice.plain(text).split("\n") if name[:2] < home else []
        first = next((line for line in lines if re.search(rf"\b{term}\b", line)), meaning)
        if not re.search(rf"{meaning}|\[", first, re.I):
            found.add((name[:2], term))
    return found


def test_a_term_is_explained_or_linked_where_it_comes_first():
    assert unexplained("12_x", "With a KV cache.\n\nIt has keys and values.") == {
        ("12", "KV cache")
    }
    assert not unexplained("12_x", "A KV cache has old keys and values. A KV cache is fast.")
    assert not unexplained("12_x", "See [the KV cache](41_x.ipynb).\n\nA KV cache is fast.")
    assert not unexplained("63_x", "With a KV cache.")
    assert set().union(*(unexplained(p.stem, TEXTS[p.stem]) for p in NOTEBOOKS)) <= UNEXPLAINED


@pytest.mark.parametrize("name", TERMS)
def test_a_chapter_has_the_words_that_people_search(name):
    missing = [t for t in TERMS[name].split("|") if t.lower() not in TEXTS[name].lower()]
    assert not missing


def test_headings_have_the_terms_of_the_field():
    headings = "\n".join(re.findall(r"^#+ .*", "\n".join(TEXTS[p.stem] for p in NOTEBOOKS), re.M))
    assert not [term for term in IN_A_TITLE if not re.search(term, headings, re.I)]

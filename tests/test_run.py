"""`python -m pe_numpy run`: released models write, also with wrong positions; clear errors."""

import argparse
import functools
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import Cache, greedy, load_model, rope_frequencies, sample, softmax, yarn_scaling
from pe_numpy.__main__ import main
from pe_numpy.book import run

tokenizers = pytest.importorskip("tokenizers")
GOLDEN = Path(__file__).parent / "golden/models"
KINDS = {}
for path in sorted(GOLDEN.glob("*/config.json")):
    KINDS.setdefault(type(load_model(path.parent)).__name__, []).append(path.parent.name)
DECODERS, ENCODERS, T5S = KINDS["Decoder"], KINDS["Encoder"], ["t5", "t5_v11"]
MASK, END = 36, 35  # the tokenizer's special tokens; of the others, token n is the word wn


@functools.cache
def golden(name):
    with np.load(GOLDEN / name / "golden.npz") as file:
        return {key: file[key] for key in file.files}


@functools.cache
def tokenizer():
    vocabulary = {f"w{n}": n for n in range(35)} | {"<end>": END, "[MASK]": MASK}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    words.add_special_tokens(["<end>", "[MASK]"])
    words.enable_truncation(30)
    words.enable_padding(length=30)  # as some files say; a prompt has none
    return words.to_str()


@pytest.fixture
def folder(tmp_path):
    """A function that makes the folder of a golden model, with changes in its config.json."""

    def make(name, **changes):
        config = json.loads((GOLDEN / name / "config.json").read_text())
        config |= {"eos_token_id": None, **changes}
        (tmp_path / "config.json").write_text(json.dumps(config))
        (tmp_path / "tokenizer.json").write_text(tokenizer())
        (tmp_path / "model.safetensors").symlink_to(GOLDEN / name / "model.safetensors")
        return tmp_path

    return make


@pytest.fixture
def call(capsys):
    """A function that runs the command; it gives exit status, output and errors."""

    def called(folder, text, *options):
        status = main(["run", str(folder), text, *map(str, options)])
        out, err = capsys.readouterr()
        return status, out.removesuffix("\n"), err

    return called


def texts(tokens):
    special = {END: "<end>", MASK: "[MASK]"}
    return " ".join(special.get(token, f"w{token}") for token in np.ravel(tokens).tolist())


def plain(tokens):
    """What the tokenizer writes: no special tokens."""
    return texts([token for token in np.ravel(tokens).tolist() if token < END])


def numbers(tokens):
    return " ".join(map(str, np.ravel(tokens).tolist()))


def continued(m, prompt, steps=20, source=None, **options):
    return greedy(m.parameters, m, [prompt], steps, source, **options)[0]


DRAWS = ("--ids", "--steps", 12, "--temperature", 0.7)


def drawn(m, prompt, source=None):
    """What these options make of a model: likeliest tokens are too often the same."""
    return numbers(
        sample(m.parameters, m, [prompt], 12, np.random.default_rng(0), 0.7, None, source)
    )


# ---- what is written ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", DECODERS)
def test_a_decoder_writes_what_transformers_writes(name, folder, call):
    prompt, written = golden(name)["prompt"][0], golden(name)["written"][0]
    place = folder(name)
    words = call(place, texts(prompt), "--steps", 20)
    assert words == (0, plain(written), "")
    assert call(place, numbers(prompt), "--ids", "--steps", 20) == (0, numbers(written), "")


@pytest.mark.parametrize("name", T5S)
@pytest.mark.parametrize("start", [3, None])
def test_a_t5_reads_the_text_and_begins_with_its_start(name, start, folder, call):
    source, place = golden(name)["source"][:1], folder(name, decoder_start_token_id=start)
    m = load_model(place)
    written = continued(m, [start or 0], source=source)
    assert call(place, texts(source), "--steps", 20) == (0, plain(written), "")
    assert call(place, numbers(source), "--ids", "--steps", 20) == (0, numbers(written), "")
    texts_of_starts = [drawn(m, [first], source) for first in (start or 0, 7)]
    assert texts_of_starts[0] != texts_of_starts[1]
    assert call(place, numbers(source), *DRAWS) == (0, texts_of_starts[0], "")


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_fills_in_masks_or_says_what_it_expects_everywhere(name, folder, call):
    place, tokens = folder(name), [3, MASK, 5, 7, MASK]
    p = softmax(load_model(place).logits([tokens])[0].astype(float))

    def line(n, of):
        best = np.argsort(-p[n])[:3].tolist()
        guesses = ", ".join(f"{of(token)} {100 * p[n, token]:.0f}%" for token in best)
        return f"{n:3} {of(tokens[n])}: {guesses}"

    masks = "\n".join(line(n, texts) for n in (1, 4))
    assert call(place, texts(tokens)) == (0, masks, "")
    everywhere = "\n".join(line(n, numbers) for n in range(5))
    assert call(place, numbers(tokens), "--ids") == (0, everywhere, "")


def test_text_without_a_mask_is_filled_in_everywhere(folder, call):
    lines = call(folder("bert"), "w3 w1 w4")[1].splitlines()
    assert [line.split(":")[0] for line in lines] == ["  0 w3", "  1 w1", "  2 w4"]


def test_a_long_text_is_read_to_its_end(folder, call):
    lines = call(folder("xlnet"), "w3 w1 w4 w2 " * 9)[1].splitlines()
    assert len(lines) == 36 and lines[-1].startswith(" 35 w2: ")


def test_draws_are_those_of_sample_and_of_the_seed(folder, call):
    place, prompt = folder("gpt2"), [3, 1, 4]
    m = load_model(place)

    def wanted(seed, *choices):
        rng = np.random.default_rng(seed)
        return numbers(sample(m.parameters, m, [prompt], 20, rng, *choices))

    found = {}
    for options, choices in (
        (("--temperature", 1.5), (0, 1.5)),
        (("--temperature", 1.5, "--seed", 5), (5, 1.5)),
        (("--temperature", 3, "--top-k", 4), (0, 3, 4)),
        (("--top-k", 4), (0, 1, 4)),
    ):
        for _ in range(2):
            result = call(place, "3 1 4", "--ids", "--steps", 20, *options)
            assert result == (0, wanted(*choices), "")
        found[result[1]] = options
    assert len({*found, numbers(continued(m, prompt))}) == 5
    status, _, err = call(place, "3 1 4", "--ids", "--temperature", 0)
    assert status == 2 and "temperature must be above 0" in err


def test_an_end_token_stops_whether_it_is_one_of_one_or_of_several(folder, call):
    prompt, written = golden("phi3")["prompt"][0], golden("phi3")["written"][0].tolist()
    for ends, last in ((6, 4), ([6, 34], 4), ([17, 13], 2), ([50256, 34], 5), (50256, 19), (18, 0)):
        place = folder("phi3", eos_token_id=ends)
        result = call(place, numbers(prompt), "--ids", "--steps", 20)
        assert result == (0, numbers(written[: last + 1]), "")
        (place / "model.safetensors").unlink()


def test_an_end_token_saves_the_work_that_is_not_needed(folder, call, monkeypatch):
    prompt, steps = golden("phi3")["prompt"][0], []
    page = load_model(GOLDEN / "phi3").page
    logits = page.logits
    monkeypatch.setattr(page, "logits", lambda *args: steps.append(1) or logits(*args))
    assert call(folder("phi3", eos_token_id=13), numbers(prompt), "--ids")[0] == 0
    assert len(steps) == 3


def test_the_end_token_of_a_model_that_sees_pictures_stands_with_its_text(folder, call):
    prompt, written = golden("gemma3")["prompt"][0], golden("gemma3")["written"][0]
    config = json.loads((GOLDEN / "gemma3/config.json").read_text())
    place = folder("gemma3", text_config={**config["text_config"], "eos_token_id": 7})
    config = json.loads((place / "config.json").read_text())
    del config["eos_token_id"]
    (place / "config.json").write_text(json.dumps(config))
    assert call(place, numbers(prompt), "--ids") == (0, numbers(written[:4]), "")


def test_a_terminal_sees_how_fast_it_was_and_nothing_else_does(folder, call, monkeypatch):
    place = folder("llama")
    assert call(place, "w3 w1", "--steps", 5)[2] == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    err = call(place, "w3 w1", "--steps", 5)[2]
    assert re.fullmatch(r"5 tokens in \d+\.\d s, \d+\.\d a second\n", err)


def test_tokens_are_written_as_they_come(folder, call):
    """What was written before an error is on the page already: GPT-2's table has 32 rows."""
    status, out, err = call(folder("gpt2"), "w3 " * 28, "--steps", 9)
    assert status == 2 and "learned: a table of 32 rows" in err
    tokens = continued(load_model(GOLDEN / "gpt2"), [3] * 28, 5)
    assert out == plain(tokens)


class Slow:
    """A tokenizer whose characters have several tokens: the third ends the first character."""

    def decode(self, tokens):
        return bytes(tokens).decode("utf-8", "replace")


def test_a_character_of_several_tokens_waits_for_the_last():
    words = run.Words.__new__(run.Words)
    words.tokenizer = Slow()
    assert [x for x in words.stream("一a".encode()) if x] == ["一", "a"]
    assert [x for x in words.stream("a一".encode()[:-1]) if x] == ["a", "\ufffd"]


def folder_of(place, name):
    """The same folder with another model."""
    (place / "config.json").write_text((GOLDEN / name / "config.json").read_text())
    (place / "model.safetensors").unlink()
    (place / "model.safetensors").symlink_to(GOLDEN / name / "model.safetensors")
    return place


# ---- wrong positions ----------------------------------------------------------------------------

HOW = {
    "shift=2": lambda last: lambda positions: positions + 2,
    "shift=-1": lambda last: lambda positions: positions - 1,
    "zero": lambda last: lambda positions: 0 * positions,
    "reverse": lambda last: lambda positions: last - positions,
}


@pytest.mark.parametrize("how", ["shift=2", "zero", "reverse"])
@pytest.mark.parametrize("name", ["gpt2", "llama", "bloom"])
def test_a_decoder_is_told_wrong_positions(name, how, folder, call):
    place, prompt = folder(name), golden(name)["prompt"][0]
    m = load_model(place)
    wrong = drawn(m.replace(places=HOW[how](4 + 12)), prompt)
    assert call(place, numbers(prompt), *DRAWS, "--positions", how) == (0, wrong, "")
    if name == "gpt2" or how != "shift=2":  # the others see distances alone
        assert wrong != drawn(m, prompt)


def test_a_shift_may_be_negative(folder, call):
    place = folder("llama")
    right = drawn(load_model(place), [3, 1, 4])
    assert call(place, "3 1 4", *DRAWS, "--positions", "shift=-300") == (0, right, "")
    status, _, err = call(folder_of(place, "gpt2"), "3 1", "--ids", "--positions", "shift=-1")
    assert status == 2 and "serves positions 0 to 31; got -1" in err


@pytest.mark.parametrize("how", ["shift=2", "zero", "reverse"])
def test_wrong_positions_reach_what_writes_alone(how, folder, call):
    source, place = golden("t5")["source"][:1], folder("t5")
    m = load_model(place)
    wrong = drawn(m.replace(places=HOW[how](0 + 12)), [0], source)
    assert call(place, numbers(source), *DRAWS, "--positions", how) == (0, wrong, "")
    assert (wrong == drawn(m, [0], source)) == (how == "shift=2")


@pytest.mark.parametrize("how", ["shift=2", "zero", "reverse"])
@pytest.mark.parametrize("name", ["bert", "roformer_electra"])
def test_an_encoder_is_told_wrong_positions(name, how, folder, call):
    place, m = folder(name), load_model(GOLDEN / name)
    logits = m.replace(places=HOW[how](3)).logits([[3, 1, 4, 7]])
    found = call(place, "3 1 4 7", "--ids", "--positions", how)[1]
    best = [line.split(": ")[1].split()[0] for line in found.splitlines()]
    assert best == logits[0].argmax(axis=-1).astype(str).tolist()
    assert found != call(place, "3 1 4 7", "--ids")[1]


@pytest.mark.parametrize("name", ["gpt2", "llama", "mpt", "gemma3", "t5"])
def test_the_encoding_is_taken_away(name, folder, call):
    place = folder(name)
    m = load_model(place)
    prompt, source = (
        ([0], golden(name)["source"][:1]) if name == "t5" else (golden(name)["prompt"][0], None)
    )
    wrong = drawn(m.without_positions(), prompt, source)
    text = numbers(prompt if source is None else source)
    assert call(place, text, *DRAWS, "--encoding", "none") == (0, wrong, "")
    assert wrong != drawn(m, prompt, source)


def ropes(m):
    return getattr(m.settings, "ropes", None) or [m.settings.rope]


LLAMA3 = {"rope_type": "llama3", "factor": 4, "high_freq_factor": 4, "low_freq_factor": 1}
OLD = {"rope_parameters": None, "rope_theta": 100}
GEMMA3 = {**OLD, "rope_theta": 1000, "rope_local_base_freq": 100, "layer_types": None,
          "sliding_window_pattern": 2}  # fmt: skip
TWO = (6, 100), (6, 50)  # Gemma 3: the layer with a window, the one without


@pytest.mark.parametrize(
    ("name", "config", "options", "wanted"),
    [
        ("llama2", {}, {"rope_theta": 50}, [rope_frequencies(4, 50)]),
        ("llama2", OLD, {"rope_theta": 50}, [rope_frequencies(4, 50)]),
        ("llama2", {}, {"scaling": "linear:4"}, [rope_frequencies(4, 1e4) / 4]),
        ("llama2", OLD, {"scaling": "linear:4"}, [rope_frequencies(4, 100) / 4]),
        ("llama2", OLD, {"scaling": "yarn:2.5"}, [yarn_scaling(4, 2.5, 32, 100)[0]]),
        ("llama2", {}, {"scaling": "yarn:4", "rope_theta": 50}, [yarn_scaling(4, 4, 32, 50)[0]]),
        ("llama", {}, {"scaling": "yarn:3"}, [yarn_scaling(4, 3, 8, 100)[0]]),
        (
            "llama",
            {**OLD, "rope_scaling": {**LLAMA3, "original_max_position_embeddings": 8}},
            {"scaling": "yarn:3"},
            [yarn_scaling(4, 3, 8, 100)[0]],
        ),
        (
            "llama2",
            {**OLD, "rope_scaling": {"type": "linear", "factor": 8}},
            {"rope_theta": 50},
            [rope_frequencies(4, 50) / 8],
        ),
        (
            "llama2",
            {**OLD, "rope_scaling": {"type": "linear", "factor": 8}},
            {"scaling": "linear:3", "rope_theta": 50},
            [rope_frequencies(4, 50) / 3],
        ),
        ("gpt_neox", {}, {"scaling": "linear:3"}, [rope_frequencies(4, 100) / 3]),
        ("gpt_neox", {}, {"rope_theta": 50}, [rope_frequencies(4, 50)]),
        ("phi3", {}, {"scaling": "yarn:2"}, [yarn_scaling(6, 2, 12, 100)[0]] * 2),
        ("deepseek_v3", {}, {"scaling": "linear:2"}, [rope_frequencies(6, 100) / 2]),
        *(
            (name, config, *options)
            for name, config in (
                ("gemma3_text", {}),
                ("gemma3", {}),
                ("gemma3_text", {**GEMMA3, "rope_scaling": {"type": "linear", "factor": 8}}),
            )
            for options in (
                (
                    {"rope_theta": 50},
                    [rope_frequencies(6, 100), rope_frequencies(6, 50) / 8],
                ),
                (
                    {"scaling": "linear:3", "rope_theta": 50},
                    [rope_frequencies(6, 100), rope_frequencies(6, 50) / 3],
                ),
                (
                    {"scaling": "yarn:3"},
                    [rope_frequencies(6, 100), yarn_scaling(6, 3, 64, 1000)[0]],
                ),
            )
        ),
    ],
)  # fmt: skip
def test_rope_has_another_base_or_is_stretched(name, config, options, wanted, folder, call):
    place = folder(name, **config)
    asked = argparse.Namespace(**{"rope_theta": None, "scaling": None, **options})
    config = json.loads((place / "config.json").read_text())
    m = load_model(place, changes=run.changes(config, asked))
    for ours, theirs in zip(ropes(m), wanted, strict=True):
        assert_allclose(ours.frequencies, theirs, rtol=1e-12)
    words = [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
    prompt = [3, 1, 4, 1, 5]
    assert call(place, numbers(prompt), *DRAWS, *words) == (0, drawn(m, prompt), "")


@pytest.mark.parametrize("option", [("--rope-theta", 50), ("--scaling", "linear:3")])
def test_another_rope_makes_another_text(option, folder, call):
    place = folder("llama2")
    assert call(place, "3 1 4 1 5", *DRAWS, *option) != call(place, "3 1 4 1 5", *DRAWS)


def test_without_options_nothing_of_the_configuration_changes():
    asked = argparse.Namespace(rope_theta=None, scaling=None)
    config = json.loads((GOLDEN / "llama/config.json").read_text())
    assert run.changes(config, asked) == {}
    assert_array_equal(
        ropes(load_model(GOLDEN / "llama"))[0].frequencies,
        ropes(load_model(GOLDEN / "llama", changes=run.changes(config, asked)))[0].frequencies,
    )


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("llama", "", (), "run: TEXT must have a token; got none from ''"),
        ("llama", " ", ("--ids",), "run: TEXT must have a token; got none from ' '"),
        ("llama", "3 x", ("--ids",), "with --ids TEXT must be whole numbers; got '3 x'"),
        ("llama", "3, 37", ("--ids",), "tokens must be from 0 to V - 1 = 36"),
        ("llama", "w3 Hase", (), "run: TEXT can't be cut into tokens: "),
        ("llama", "w3", ("--steps", -1), "steps must be at least 0"),
        ("gpt2", "w3", ("--rope-theta", 50), "need a model whose config.json describes its RoPE"),
        ("t5", "w3", ("--scaling", "yarn:4"), "describes its RoPE; got t5"),
        ("roformer", "w3", ("--rope-theta", 50), "describes its RoPE; got roformer"),
        ("llama", "w3", ("--rope-theta", 0), "--rope-theta must be above 0; got 0"),
        ("llama", "w3", ("--rope-theta", "nan"), "--rope-theta must be above 0; got nan"),
        *(
            ("llama", "w3", ("--scaling", words), f"such as yarn:4; got '{words}'")
            for words in ("yarn", "yarn:", "yarn:x", "yarn:0.5", "yarn:nan", "dynamic:4", "4", ":4")
        ),
        *(
            (name, "w3", ("--positions", words), f"shift=N, zero or reverse; got '{words}'")
            for name, words in (
                ("llama", "shift=x"), ("llama", "shift=1.5"), ("t5", "shift"), ("llama", "random"),
                ("llama", ""), ("bert", "shift=2x"),
            )
        ),
        ("bert", "w3", ("--encoding", "none"), "need a model that writes; got bert"),
        ("xlnet", "w3", ("--attention", "heads.png"), "need a model that writes; got xlnet"),
        ("whisper", "w3", (), "must read text; got whisper: give what it reads to load_model's"),
        ("vit", "w3", (), "must read text; got vit"),
    ],
)  # fmt: skip
def test_a_wrong_call_gets_a_line_and_status_2(name, text, options, message, folder, call):
    status, out, err = call(folder(name), text, *options)
    assert (status, out) == (2, "") and message in err
    assert err.startswith("python -m pe_numpy: ") and err.count("\n") == 1


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", None, "folder must hold config.json; there is none in"),
        ("config.json", "{", "config.json must hold JSON"),
        ("config.json", '{"model_type": "lstm"}', "model_type must be one of bert, bloom"),
        ("model.safetensors", None, "safetensors"),
        ("model.safetensors", "12345678", "model.safetensors"),
        ("tokenizer.json", None, "FOLDER must hold tokenizer.json; there is none in"),
        ("tokenizer.json", "{}", "run: tokenizer.json can't be read: "),
    ],
)
def test_a_missing_or_broken_file_is_named(file, content, message, folder, call):
    place = folder("llama")
    (place / file).unlink()
    if content is not None:
        (place / file).write_text(content)
    status, out, err = call(place, "w3 w1")
    assert (status, out) == (2, "") and message in err
    if file == "tokenizer.json":
        assert call(place, "3 1", "--ids")[0] == 0


def test_a_package_that_is_missing_is_named(folder, call, monkeypatch):
    place = folder("llama")
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("pe_numpy.book.plots.real_models", "pe_numpy.book.plots.style"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    status, out, err = call(place, "w3", "--attention", "heads.png")
    assert (status, out) == (2, "") and "--attention needs matplotlib, `pip install" in err
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    status, out, err = call(place, "w3")
    assert (status, out) == (2, "") and "text needs the tokenizers package, `pip install" in err
    assert call(place, "3", "--ids")[0] == 0


def test_an_encoding_that_is_not_none_is_a_wrong_call(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["run", "folder", "text", "--encoding", "all"])
    assert "invalid choice: 'all'" in capsys.readouterr().err


def test_the_help_says_what_wrong_positions_and_scalings_reach(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["run", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "one part of it reads and another writes, the part that writes" in text
    assert "where layers differ, this and --rope-theta reach those without a window" in text


# ---- what the heads look at ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["llama", "t5", "deepseek_v3", "phi3"])
def test_what_the_heads_look_at_is_drawn(name, folder, call, monkeypatch, tmp_path):
    real_models = pytest.importorskip("pe_numpy.book.plots.real_models")
    place, seen, draw = folder(name), [], real_models.attention_of_heads
    monkeypatch.setattr(
        real_models, "attention_of_heads", lambda *args: seen.append(args) or draw(*args)
    )
    picture = tmp_path / "heads.png"
    options = ("--steps", 6, "--positions", "reverse", "--attention", picture)
    status, out, _ = call(place, "w3 w1 [MASK] w4", *options)
    assert status == 0 and picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    ((weights, words),) = seen
    if name == "t5":
        assert words[0] == "w0" and " ".join(words[1:]) == out
        last = 6
    else:
        assert words[:4] == ["w3", "w1", "[MASK]", "w4"] and " ".join(words[4:]) == out
        last = 9
    tokens = [MASK if word == "[MASK]" else int(word[1:]) for word in words]
    m = load_model(place).replace(places=lambda positions: last - positions)
    cache = Cache(1, len(tokens))
    cache.watch = {}
    m.logits([tokens], cache=cache, **({"source": [[3, 1, MASK, 4]]} if name == "t5" else {}))
    assert len(weights) == len(cache.watch) >= 2
    for n, of_layer in enumerate(weights):
        assert of_layer.shape == (cache.watch[n].shape[1], len(words), len(words))
        assert_allclose(of_layer, cache.watch[n][0], rtol=0, atol=0)


def test_the_text_is_written_even_if_no_picture_can_be(folder, call, tmp_path):
    pytest.importorskip("matplotlib")
    place = folder("llama")
    _, text, _ = call(place, "w3 w1", "--steps", 5)
    status, out, err = call(
        place, "w3 w1", "--steps", 5, "--attention", tmp_path / "no/folder/heads.png"
    )
    assert (status, out) == (2, text) and "No such file or directory" in err


def test_a_word_is_no_formula():
    real_models = pytest.importorskip("pe_numpy.book.plots.real_models")
    figure = real_models.attention_of_heads([np.eye(3)[None]], ["$x_$", "_", "$$"])
    figure.canvas.draw()
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["$x_$", "_", "$$"]
    assert (len(real_models.attention_of_heads([np.zeros((3, 4, 4))] * 2, "abcd").axes)) == 6

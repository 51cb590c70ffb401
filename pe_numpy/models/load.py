r"""Load a released model: config.json names the page, the page says where each tensor goes.

Source: the configurations and file names of Hugging Face transformers 5.23.0.

Axes: B batch, L tokens, S source tokens or keys, V vocabulary.
Convention: a page is a module of `pe_numpy.models` with

- `settings(config)`: the sizes it needs, read from config.json; what it does not do is refused;
- `weights(s)`: a dictionary of the file's names, each with the place of our parameter (".T" at its
  end: the file holds it transposed) and our parameter's shape;
- `check(params, s)`, if the file holds what the page computes: raises if they differ;
- `hidden(...)` and `logits(params, s, h)`, or `encode` and `decode`: the model;
- what released files have of their own: PREFIX, which some leave out; OLD_NAMES, parts of names and
  what they are called today; IGNORED, a regular expression of names that hold no parameters;
  COPIES, tensors that another one holds, too; HEAD, how names of the head begin, which a file may
  lack as a whole; MAY_LACK, a head that the embedding may replace.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.models.embed import embed
from pe_numpy.models.llama_cpp import checkpoint_of
from pe_numpy.models.page import Params
from pe_numpy.models.weights import load_weights
from pe_numpy.transformer.context import Cache, Context, real_positions

NAME = "load_model"
# What every page passes over: heads of other tasks, old buffers of RoPE, poolers.
OTHER_HEADS = r"(classifier|score|qa_outputs|sequence_summary|logits_proj)\..*"
PASSED = rf"{OTHER_HEADS}|.*\.rotary_emb\.inv_freq|(\w+\.)?pooler\..*"
PAGES = {  # model_type of config.json: page
    "bert": "bert",
    "bloom": "bloom",
    "deberta-v2": "deberta",
    "deepseek_v2": "deepseek",
    "deepseek_v3": "deepseek",
    "gemma2": "gemma2",
    "gemma3": "gemma3",
    "gemma3_text": "gemma3",
    "gpt2": "gpt2",
    "gpt_neox": "gpt_neox",
    "llama": "llama",
    "mistral": "llama",
    "mpt": "mpt",
    "phi3": "phi3",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "roformer": "roformer",
    "t5": "t5",
    "vit": "vit",
    "whisper": "whisper",
    "xlnet": "xlnet",
}


def load_model(
    folder: str | Path, dtype: Any = None, changes: Mapping[str, Any] | None = None
) -> Any:
    """Load a model from a folder with config.json and safetensors files, or from a GGUF file.

    Parameters
    ----------
    folder : str or Path
        As Hugging Face's `save_pretrained` writes it; or a file that ends in .gguf.
    dtype : floating dtype, optional
        Of all parameters; by default that of the file, 16 bits widened to float32.
    changes : dictionary, optional
        Entries of the configuration to replace, for experiments.

    Returns
    -------
    A `Decoder`, `Encoder`, `EncoderDecoder` or `PictureReader`, with `logits`, `parameters`
    (nested dictionaries of arrays) and `config`. All but the third have `hidden`, too, what the
    head reads; it is all that a file without a head gives.

    Raises
    ------
    ValueError
        If no page knows the model type, the configuration asks for what the page does not do,
        tensors and parameters do not match one to one (the message gives the first three names), a
        copy differs from its original, or a file of a whole model has no head and does not say that
        it is tied.

    Notes
    -----
    Source: the file names of Hugging Face transformers 5.23.0, and of older releases. Of GGUF files
    those of Gemma 3, GPT-2, LLaMA, Qwen 2 and 3 are known, in float32 and 16, bfloat16, Q8_0, Q5_0,
    Q4_K and Q6_K; their numbers become float32.

    Examples
    --------
    A GPT-2 of no layers: embedding, positions, the last norm.

    >>> import tempfile
    >>> sizes = {"vocab_size": 3, "n_embd": 2, "n_positions": 4, "n_layer": 0, "n_head": 1}
    >>> shapes = {"wte": [3, 2], "wpe": [4, 2], "ln_f": [2]}
    >>> header, end = {}, 0
    >>> for name, shape in [*shapes.items(), ("ln_f", [2])]:
    ...     part = "bias" if f"{name}.weight" in header else "weight"
    ...     place = [end, end + 4 * int(np.prod(shape))]
    ...     header[f"{name}.{part}"] = {"dtype": "F32", "shape": shape, "data_offsets": place}
    ...     end = place[1]
    >>> text = json.dumps(header).encode()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sizes["model_type"] = "gpt2"
    ...     _ = (Path(folder) / "config.json").write_text(json.dumps(sizes))
    ...     raw = len(text).to_bytes(8, "little") + text + bytes(np.ones(end // 4, "<f4"))
    ...     _ = (Path(folder) / "model.safetensors").write_bytes(raw)
    ...     load_model(folder).logits([[2, 0, 1]]).tolist()
    [[[2.0, 2.0, 2.0], [2.0, 2.0, 2.0], [2.0, 2.0, 2.0]]]
    """
    folder = Path(folder)
    config, tensors = opened(folder)
    config = {**config, **(changes or {})}
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in PAGES:
        raise ValueError(
            f"{NAME}: model_type must be one of {', '.join(sorted(PAGES))}; got {kind!r:.80} in "
            "config.json"
        )
    if dtype is not None and not np.issubdtype(dtype, np.floating):
        raise ValueError(f"{NAME}: dtype must be a floating one, such as np.float32; got {dtype}")
    page = importlib.import_module(f"pe_numpy.models.{PAGES[kind]}")
    s = settings(page, config)
    table, tied = page.weights(s), getattr(s, "tied", True)
    parameters = fill(page, table, tensors(), dtype, tied)
    if hasattr(page, "check"):
        page.check(parameters, s)
    heads = {table[key][0].split(".")[0] for key in head_of(page, table, tied)}
    body = bool(heads) and heads.isdisjoint(parameters)
    return KINDS[page.KIND](page, config, s, parameters, headless=body, folder=folder)


def opened(path: Path) -> tuple[dict[str, Any], Callable[[], Mapping[str, np.ndarray]]]:
    """Give the configuration of a folder or a GGUF file, and what gives its tensors."""
    if path.suffix == ".gguf":
        return checkpoint_of(path)
    return read_config(path), lambda: load_weights(path)


def read_config(folder: Path) -> dict[str, Any]:
    """Read config.json."""
    path = folder / "config.json"
    if not path.is_file():
        raise ValueError(f"{NAME}: folder must hold config.json; there is none in {folder}")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{NAME}: config.json must hold JSON; {error}") from None
    if not isinstance(config, dict):
        raise ValueError(f"{NAME}: config.json must hold an object; got {type(config).__name__}")
    return config


def settings(page: ModuleType, config: dict[str, Any]) -> SimpleNamespace:
    """Read what a page needs; what goes wrong on the way names config.json."""
    try:
        return page.settings(config)
    except ValueError as error:
        where = "" if "config.json" in str(error) else " (config.json)"
        raise ValueError(f"{error}{where}") from None


def fill(
    page: ModuleType,
    table: Mapping[str, tuple[str, tuple[int, ...]]],
    tensors: Mapping[str, np.ndarray],
    dtype: Any = None,
    tied: bool = True,
) -> Params:
    """Put every tensor at its place; each is used once and each place filled once, or it raises."""
    name = page.__name__.rpartition(".")[2]
    tensors, body = known(page, table, tensors)
    may_lack, head = getattr(page, "MAY_LACK", ()), head_of(page, table, tied)
    body &= not any(key.startswith(page.HEAD) for key in tensors) if head else False
    needed = set(table) - {*may_lack, *(head if body else ())}
    lacking = [key for key in table if key in needed and key not in tensors]
    if not (tied or body or lacking) and not all(key in tensors for key in may_lack):
        raise ValueError(
            f"{name}: {' and '.join(may_lack)} must be among the weights, since config.json does "
            "not say true for tie_word_embeddings; there is none"
        )
    unknown = [key for key in tensors if key not in table]
    for what, keys in (("lack", lacking), ("hold, beside what the page knows,", unknown)):
        if keys:
            raise ValueError(
                f"{name}: weights must match config.json one to one; they {what} {len(keys)} "
                f"tensors: {', '.join(keys[:3])}"
            )
    parameters: Params = {}
    for key, x in tensors.items():
        place, shape = table[key]
        turned = place.endswith(".T")
        wanted = shape[::-1] if turned else shape
        if x.shape != wanted:
            raise ValueError(
                f"{name}: {key} must have the shape {wanted} by config.json; got {x.shape}"
            )
        x = x.T if turned else x
        if dtype is not None or x.dtype == np.float16:
            x = x.astype(dtype or np.float32)
        *path, last = place.removesuffix(".T").split(".")
        room = parameters
        for part in path:
            room = room.setdefault(part, {})
        room[last] = x
    return parameters


def head_of(page: ModuleType, table: Mapping[str, Any], tied: bool) -> list[str]:
    """Names of the head, without those that the embedding replaces."""
    replaced = getattr(page, "MAY_LACK", ()) if tied else ()
    return [k for k in table if k.startswith(getattr(page, "HEAD", ())) and k not in replaced]


def known(
    page: ModuleType, table: Mapping[str, Any], tensors: Mapping[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], bool]:
    """Give tensors the names of the table; pass over what holds no parameters of the page.

    Also: whether this may be a body, whose head is another one or none. An encoder or a reader of
    pictures may; a model that writes if its names lack the prefix, or if it holds another's head.
    """
    for old, new in getattr(page, "OLD_NAMES", {}).items():
        today = {key: key.replace(old, new) for key in tensors}
        tensors = {key if today[key] in tensors else today[key]: x for key, x in tensors.items()}
    passed = re.compile(f"{PASSED}|{getattr(page, 'IGNORED', '')}").fullmatch
    spare = {key for key in tensors if key not in table and passed(key)}
    prefix, copies = getattr(page, "PREFIX", ""), getattr(page, "COPIES", {})
    bare = bool(prefix) and not any(key.startswith(prefix) for key in tensors)
    found = {}
    for key, x in tensors.items():
        whole = prefix + key if bare and key not in table and key not in copies else key
        if whole in table or not (key in spare or passed(whole)):
            found[whole] = x
    for copy, original in copies.items():
        if copy in found and original in found:
            if not np.array_equal(found.pop(copy), found[original]):
                raise ValueError(
                    f"{page.__name__.rpartition('.')[2]}: {copy} must be equal to {original}, "
                    "to which the page ties it; they differ"
                )
    others = any(re.fullmatch(OTHER_HEADS, key) for key in spare)
    return found, page.KIND != "decoder" or bare or others


# ---- what reads ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loaded:
    """A page, what config.json says, and the parameters.

    `places`, if given, changes the positions that the model is told: a function of an integer array
    that returns one of its shape, each position by itself; with a cache it gets those of all tokens
    at each call. Masks follow the true order all the same. `headless` is True if the file holds no
    head, and so gives no logits; `folder` is where it lies.
    """

    page: ModuleType
    config: dict[str, Any]
    settings: SimpleNamespace
    parameters: Params
    places: Callable[[np.ndarray], np.ndarray] | None = None
    headless: bool = False
    folder: Path | None = None

    def replace(self, **changes: Any) -> Any:
        """Give the same model with other parameters, settings or places."""
        return replace(self, **changes)

    @property
    def vocabulary(self) -> int:
        """Number of tokens V."""
        return self.settings.V

    @property
    def dtype(self) -> np.dtype:
        """What the model computes in: the dtype of its embedding."""
        return self.parameters["embedding"].dtype

    def _head(self) -> Any:
        """Give what makes logits, or say that there is no head."""
        if self.headless:
            raise ValueError(
                f"logits: the file must hold a head, {self.page.HEAD}*; it holds a body alone: "
                "take hidden, the vectors that a head would read"
            )
        return self.page.logits

    def _tokens(
        self, name: str, tokens: ArrayLike, real: ArrayLike | None, function: str = "logits"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Check tokens (B, L), and which are real."""
        tokens = checks.whole_numbers(function, name, tokens)
        if tokens.ndim != 2 or not tokens.size:
            raise ValueError(
                f"{function}: {name} must have the axes (B, L) and a token; "
                f"got shape {tokens.shape}"
            )
        if real is None:
            return tokens, np.ones(tokens.shape, bool)
        real = checks.whole_array(function, f"which of the {name} are real", real)
        if real.shape != tokens.shape or real.dtype != np.bool_:
            raise ValueError(
                f"{function}: which of the {name} are real must be boolean and of their shape "
                f"{tokens.shape}; got {real.dtype} {real.shape}"
            )
        return tokens, real

    def _begin(
        self,
        tokens: ArrayLike,
        real: ArrayLike | None,
        cache: Cache | None,
        function: str = "logits",
    ) -> tuple[np.ndarray, Context]:
        """Check tokens (B, L) and which are real; give what the call knows of them."""
        tokens, real = self._tokens("tokens", tokens, real, function)
        own = None if real.all() else real
        return tokens, (cache or Context()).begin(tokens.shape, own, places=self.places)


class Writer(Loaded):
    """A model that writes, whatever it reads besides."""

    def without_positions(self) -> Any:
        """Give the same model without its encoding."""
        parameters, s = self.page.without_positions(self.parameters, self.settings)
        return self.replace(parameters=parameters, settings=s)

    def sources(self, params: Params, source: Any = None, source_real: Any = None) -> tuple:
        """What `logits` needs of a source: its tokens or features, and which of it is real."""
        given = None if source_real is None else np.asarray(source_real)
        return () if source is None else (np.asarray(source), given)

    def forward(
        self, params: Params, sources: tuple, tokens: Any, real: Any, cache: Cache | None, last: int
    ) -> np.ndarray:
        """Logits (B, last, V) of the token after each of the last ones, with these parameters."""
        model = self.replace(parameters=params)
        return model.logits(tokens, *sources, real=real, cache=cache)[:, -last:]


class Decoder(Writer):
    """A model that writes."""

    def logits(
        self,
        tokens: ArrayLike,
        real: ArrayLike | None = None,
        cache: Cache | None = None,
        last: int | None = None,
    ) -> np.ndarray:
        """Logits (B, L, V) of the next token; with a cache, `tokens` and `real` are the new ones.

        `real` is a (B, L) boolean array, True = token; padding stands on the left. With `last`
        logits are made of only that many tokens, the last ones: (B, last, V).
        """
        head = self._head()
        if last is not None:
            last = checks.integer("logits", "last", last)
        h, context = self._read("logits", tokens, real, cache)
        logits = head(self.parameters, self.settings, h if last is None else h[:, -last:])
        context.end()
        return logits

    def forward(
        self, params: Params, sources: tuple, tokens: Any, real: Any, cache: Cache | None, last: int
    ) -> np.ndarray:
        """Logits (B, last, V) of the token after each of the last ones, with these parameters."""
        return self.replace(parameters=params).logits(tokens, real, cache, last)

    def hidden(
        self, tokens: ArrayLike, real: ArrayLike | None = None, cache: Cache | None = None
    ) -> np.ndarray:
        """What the head reads, (B, L, D): the tokens behind all layers and the last norm."""
        h, context = self._read("hidden", tokens, real, cache)
        context.end()
        return h

    def _read(self, function: str, tokens: Any, real: Any, cache: Any) -> tuple[np.ndarray, Any]:
        tokens, context = self._begin(tokens, real, cache, function)
        context.serve(function, self.parameters, (self.settings, self.places))
        return self.page.hidden(self.parameters, self.settings, tokens, context), context


class Encoder(Loaded):
    """A model that fills in: each token sees all.

    Of both methods `real` is a (B, L) boolean array, True = token; `types` (B, L) the segment of
    each, 0 by default; and `watch` a dictionary that gets the attention weights (B, H, L, L) of
    each layer, by its number.
    """

    def logits(
        self,
        tokens: ArrayLike,
        real: ArrayLike | None = None,
        types: ArrayLike | None = None,
        watch: dict[int, np.ndarray] | None = None,
    ) -> np.ndarray:
        """Logits (B, L, V) of each token; rows of padding mean nothing."""
        head = self._head()
        h = self._read("logits", tokens, real, types, watch)
        return head(self.parameters, self.settings, h)

    def hidden(
        self,
        tokens: ArrayLike,
        real: ArrayLike | None = None,
        types: ArrayLike | None = None,
        watch: dict[int, np.ndarray] | None = None,
    ) -> np.ndarray:
        """What the head reads, (B, L, D): the tokens behind all layers; padding means nothing."""
        return self._read("hidden", tokens, real, types, watch)

    def embed(self, texts: Sequence[str | Sequence[int]]) -> np.ndarray:
        """Vectors (N, D) of N texts, or of lists of token ids, pooled as the folder says.

        The folder must be one of sentence-transformers: modules.json, a Transformer whose tokens'
        mean is taken, and perhaps made as long as 1. Texts need the tokenizers package.
        """
        return embed(self, texts)

    def _read(self, function: str, tokens: Any, real: Any, types: Any, watch: Any) -> np.ndarray:
        tokens, real = self._tokens("tokens", tokens, real, function)
        types = np.zeros_like(tokens) if types is None else types
        types = checks.whole_numbers(function, "types", types)
        if types.shape != tokens.shape:
            raise ValueError(
                f"{function}: types must have the tokens' shape {tokens.shape}; got {types.shape}"
            )
        positions = real_positions(real)[:, None]  # (B, 1, L)
        positions = positions if self.places is None else self.places(positions)
        look = {}.__setitem__ if watch is None else watch.__setitem__
        return self.page.hidden(
            self.parameters, self.settings, tokens, positions, real, types, look
        )


class EncoderDecoder(Writer):
    """A model that reads a source and writes."""

    def logits(
        self,
        tokens: ArrayLike,
        source: ArrayLike,
        source_real: ArrayLike | None = None,
        real: ArrayLike | None = None,
        cache: Cache | None = None,
    ) -> np.ndarray:
        """Logits (B, L, V) of the next token; with a cache, `tokens` and `real` are the new ones.

        `source` holds token ids (B, S), or features (B, mel, frames); `source_real` (B, S) is True
        for tokens. With a cache the source is read once.
        """
        tokens, context = self._begin(tokens, real, cache)
        source, source_real = self._source(source, source_real, len(tokens))
        known = source if source_real is None else np.where(source_real, source, -1)
        context.serve("logits", self.parameters, (self.settings, self.places), known)
        if context.memory is None:
            memory = self.page.encode(self.parameters, self.settings, source, source_real)
            context.memory, context.memory_mask = memory
        logits = self.page.decode(self.parameters, self.settings, tokens, context)
        context.end()
        return logits

    def _source(
        self, source: ArrayLike, real: ArrayLike | None, rows: int
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Check token ids (B, S) and which are real, or features, which have no padding."""
        s = self.settings
        if not hasattr(s, "frames"):
            source, real = self._tokens("source", source, real)
            if len(source) != rows:
                raise ValueError(
                    f"logits: source must have one row for each of tokens, {rows}; "
                    f"got {len(source)}"
                )
            return source, real
        if real is not None:
            raise ValueError("logits: features have no padding, source_real must be None")
        shape = rows, s.mel, s.frames
        source = checks.exact_shape("logits", "source", source, shape, "(B, mel, frames)")
        return source.astype(self.dtype, copy=False), None


class PictureReader(Loaded):
    """A model that names what a picture shows.

    Of both methods `pixels` are pictures (B, channels, height, width) of any size, and `watch` is
    a dictionary that gets the attention weights (B, H, L, L) of each layer, by its number.
    """

    def logits(self, pixels: ArrayLike, watch: dict[int, np.ndarray] | None = None) -> np.ndarray:
        """Logits (B, V) of the labels."""
        head = self._head()
        return head(self.parameters, self.settings, self._read("logits", pixels, watch))

    def hidden(self, pixels: ArrayLike, watch: dict[int, np.ndarray] | None = None) -> np.ndarray:
        """What the head reads the first row of, (B, L, D): a token, and one for each patch."""
        return self._read("hidden", pixels, watch)

    def _read(self, function: str, pixels: Any, watch: Any) -> np.ndarray:
        pixels = checks.real_array(function, "pixels", pixels)
        s, shape = self.settings, pixels.shape
        if len(shape) != 4 or shape[1] != s.C or np.less(shape[2:], s.patch).any():
            raise ValueError(
                f"{function}: pixels must have the axes (B, {s.C}, height, width), at least one "
                f"patch {s.patch}; got shape {shape}"
            )
        look = {}.__setitem__ if watch is None else watch.__setitem__
        return self.page.hidden(self.parameters, s, pixels.astype(self.dtype, copy=False), look)


KINDS: dict[str, type[Loaded]] = {
    "decoder": Decoder,
    "encoder": Encoder,
    "encoder-decoder": EncoderDecoder,
    "pictures": PictureReader,
}

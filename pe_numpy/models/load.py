r"""Load a released model: config.json names the page, the page says where each tensor goes.

Source: the configurations and file names of Hugging Face transformers 5.23.0.

Axes: B batch, L tokens, S source tokens or keys, V vocabulary.
Convention: a page is a module of `pe_numpy.models` with

- `settings(config)`: the sizes it needs, read from config.json; what it does not do is refused;
- `weights(s)`: a dictionary of the file's names, each with the place of our parameter (".T" at its
  end: the file holds it transposed) and our parameter's shape;
- `check(params, s)`, if the file holds what the page computes: raises if they differ;
- `logits(...)`, or `encode` and `decode`: the model.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.models.page import Params
from pe_numpy.models.weights import load_weights
from pe_numpy.transformer.context import Cache, Context, real_positions

NAME = "load_model"
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
    """Load a model from a folder with config.json and safetensors files.

    Parameters
    ----------
    folder : str or Path
        As Hugging Face's `save_pretrained` writes it.
    dtype : floating dtype, optional
        Of all parameters; by default that of the file, 16 bits widened to float32.
    changes : dictionary, optional
        Entries of the configuration to replace, for experiments.

    Returns
    -------
    A `Decoder`, `Encoder`, `EncoderDecoder` or `PictureReader`, with `logits`, `parameters`
    (nested dictionaries of arrays) and `config`.

    Raises
    ------
    ValueError
        If no page knows the model type, the configuration asks for what the page does not do,
        tensors and parameters do not match one to one (the message gives the first three names), or
        a file without a head does not say that it is tied.

    Notes
    -----
    Source: the file names of Hugging Face transformers 5.23.0, and of older releases.

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
    config = {**read_config(folder), **(changes or {})}
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
    parameters = fill(page, page.weights(s), load_weights(folder), dtype, getattr(s, "tied", True))
    if hasattr(page, "check"):
        page.check(parameters, s)
    return KINDS[page.KIND](page, config, s, parameters)


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
    """Put every tensor at its place; each is used once and each place filled once, or it raises.

    A page may say: MAY_LACK, a head that may be absent if it is tied; IGNORED, a regular
    expression of names that hold no parameters; PREFIX, which some files leave out; OLD_NAMES,
    parts of names and what they are called today.
    """
    name = page.__name__.rpartition(".")[2]
    prefix, ignored = getattr(page, "PREFIX", ""), getattr(page, "IGNORED", None)
    if prefix and not any(key.startswith(prefix) for key in tensors):
        tensors = {key if key in table else prefix + key: x for key, x in tensors.items()}
    for old, new in getattr(page, "OLD_NAMES", {}).items():
        today = {key: key.replace(old, new) for key in tensors}
        tensors = {key if today[key] in tensors else today[key]: x for key, x in tensors.items()}
    if ignored:
        tensors = {key: x for key, x in tensors.items() if not re.fullmatch(ignored, key)}
    may_lack = getattr(page, "MAY_LACK", ())
    lacking = [key for key in table if key not in tensors and key not in may_lack]
    if not tied and not lacking and not all(key in tensors for key in may_lack):
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


# ---- what reads ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loaded:
    """A page, what config.json says, and the parameters.

    `places`, if given, changes the positions that the model is told: a function of an integer array
    that returns one of its shape, each position by itself; with a cache it gets those of all tokens
    at each call. Masks follow the true order all the same.
    """

    page: ModuleType
    config: dict[str, Any]
    settings: SimpleNamespace
    parameters: Params
    places: Callable[[np.ndarray], np.ndarray] | None = None

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

    def _tokens(
        self, name: str, tokens: ArrayLike, real: ArrayLike | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Check tokens (B, L), and which are real."""
        tokens = checks.whole_numbers("logits", name, tokens)
        if tokens.ndim != 2 or not tokens.size:
            raise ValueError(
                f"logits: {name} must have the axes (B, L) and a token; got shape {tokens.shape}"
            )
        if real is None:
            return tokens, np.ones(tokens.shape, bool)
        real = checks.whole_array("logits", f"which of the {name} are real", real)
        if real.shape != tokens.shape or real.dtype != np.bool_:
            raise ValueError(
                f"logits: which of the {name} are real must be boolean and of their shape "
                f"{tokens.shape}; got {real.dtype} {real.shape}"
            )
        return tokens, real

    def _begin(
        self, tokens: ArrayLike, real: ArrayLike | None, cache: Cache | None
    ) -> tuple[np.ndarray, Context]:
        """Check tokens (B, L) and which are real; give what the call knows of them."""
        tokens, real = self._tokens("tokens", tokens, real)
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
        self, params: Params, sources: tuple, tokens: Any, real: Any, cache: Cache | None
    ) -> np.ndarray:
        """Logits (B, L, V) of the token after each, with these parameters."""
        return self.replace(parameters=params).logits(tokens, *sources, real=real, cache=cache)


class Decoder(Writer):
    """A model that writes."""

    def logits(
        self, tokens: ArrayLike, real: ArrayLike | None = None, cache: Cache | None = None
    ) -> np.ndarray:
        """Logits (B, L, V) of the next token; with a cache, `tokens` and `real` are the new ones.

        `real` is a (B, L) boolean array, True = token; padding stands on the left.
        """
        tokens, context = self._begin(tokens, real, cache)
        context.serve("logits", self.parameters, (self.settings, self.places))
        logits = self.page.logits(self.parameters, self.settings, tokens, context)
        context.end()
        return logits


class Encoder(Loaded):
    """A model that fills in: each token sees all."""

    def logits(
        self, tokens: ArrayLike, real: ArrayLike | None = None, types: ArrayLike | None = None
    ) -> np.ndarray:
        """Logits (B, L, V) of each token; rows of padding mean nothing.

        `real` is a (B, L) boolean array, True = token; `types` (B, L) the segment of each, 0 by
        default.
        """
        tokens, real = self._tokens("tokens", tokens, real)
        types = np.zeros_like(tokens) if types is None else types
        types = checks.whole_numbers("logits", "types", types)
        if types.shape != tokens.shape:
            raise ValueError(
                f"logits: types must have the tokens' shape {tokens.shape}; got {types.shape}"
            )
        positions = real_positions(real)[:, None]  # (B, 1, L)
        positions = positions if self.places is None else self.places(positions)
        return self.page.logits(self.parameters, self.settings, tokens, positions, real, types)


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
    """A model that names what a picture shows."""

    def logits(self, pixels: ArrayLike) -> np.ndarray:
        """Logits (B, V) of the labels of pictures (B, channels, height, width) of any size."""
        pixels = checks.real_array("logits", "pixels", pixels)
        s, shape = self.settings, pixels.shape
        if len(shape) != 4 or shape[1] != s.C or np.less(shape[2:], s.patch).any():
            raise ValueError(
                f"logits: pixels must have the axes (B, {s.C}, height, width), at least one patch "
                f"{s.patch}; got shape {shape}"
            )
        return self.page.logits(self.parameters, s, pixels.astype(self.dtype, copy=False))


KINDS: dict[str, type[Loaded]] = {
    "decoder": Decoder,
    "encoder": Encoder,
    "encoder-decoder": EncoderDecoder,
    "pictures": PictureReader,
}

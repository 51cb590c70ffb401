r"""Text to tokens and back by pieces with scores, as in the models of Google and the first LLaMAs.

Source: google/sentencepiece, `src/bpe_model.cc`; ggml-org/llama.cpp, `llm_tokenizer_spm` of
`src/llama-vocab.cpp`, whose tokens the tests compare::

    1. cut out the pieces that users defined: from the left, the longest first
    2. write a space as U+2581
    3. start from single characters; again and again join the two neighbours that together are the
       piece with the largest score, the leftmost among equals
    4. a character that is no piece becomes its bytes in UTF-8, each a piece: <0x00> to <0xFF>
    5. put <bos> in front

Symbols: a score is mostly minus a number of order, so the pair that was joined first in training is
joined first.
Convention: control tokens, such as <bos>, are never made from a text that spells them. U+2581 in a
text is a space.
Differs from llama.cpp: it cuts out the longest user-defined piece first, wherever it stands, and
ends a text with <eos> where a file asks for it.
"""

from __future__ import annotations

import codecs
import heapq
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pe_numpy import checks
from pe_numpy.models.gguf import read_gguf

NAME, SPACE = "pieces", "\u2581"
NORMAL, USER_DEFINED, BYTE = 1, 4, 6  # of tokenizer.ggml.token_type; others are never text


class Pieces:
    """A vocabulary: `encode` gives the tokens of a text, `decode` and `stream` the text of tokens.

    `tokens`, `scores` and `kinds` have one entry for each token. `bos` comes in front of each text;
    with `prefix` a space comes in front of what is not cut out, too, and `stream` leaves the first
    one away.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        scores: Sequence[float],
        kinds: Sequence[int],
        bos: int | None = None,
        prefix: bool = False,
    ) -> None:
        V = len(tokens)
        if not V == len(scores) == len(kinds) or not np.isfinite(scores).all():
            raise ValueError(
                f"{NAME}: each token must have a finite score and a kind; got {V} tokens, "
                f"{len(scores)} scores, {len(kinds)} kinds"
            )
        if bos is not None and (type(bos) is not int or not 0 <= bos < V):
            raise ValueError(f"{NAME}: bos must be a token from 0 to {V - 1}; got {bos!r:.80}")
        places: dict[int, dict[str, int]] = {NORMAL: {}, USER_DEFINED: {}, BYTE: {}}
        for n, kind in enumerate(kinds):
            places.setdefault(kind, {})[tokens[n]] = n
        self.pieces, self.whole = places[NORMAL], places[USER_DEFINED]
        self.tokens, self.scores, self.bos, self.prefix = tokens, scores, bos, prefix
        self.bytes = [places[BYTE].get(f"<0x{n:02X}>", -1) for n in range(256)]
        if -1 in self.bytes or "" in self.whole:
            raise ValueError(
                f"{NAME}: tokens must have all bytes, <0x00> to <0xFF>, and no empty user-defined "
                f"piece; got {256 - self.bytes.count(-1)} bytes"
            )
        longest_first = sorted(self.whole, key=len, reverse=True)
        self.cut = re.compile(f"({'|'.join(map(re.escape, longest_first)) or '(?!)'})")
        self.text_of = {n: t.encode() for t, n in self.whole.items()}
        self.text_of |= {n: t.replace(SPACE, " ").encode() for t, n in self.pieces.items()}
        self.text_of |= {n: bytes([byte]) for byte, n in enumerate(self.bytes)}

    def encode(self, text: str) -> list[int]:
        """Tokens of a text, with <bos> in front if the model has it there."""
        if not isinstance(text, str):
            raise ValueError(f"{NAME}: text must be a string; got {type(text).__name__}")
        ids = [] if self.bos is None else [self.bos]
        for n, part in enumerate(self.cut.split(text)):
            if n % 2:
                ids.append(self.whole[part])
            elif part:
                for piece in self._joined((" " * self.prefix + part).replace(" ", SPACE)):
                    known = piece in self.pieces
                    ids += [self.pieces[piece]] if known else self._bytes_of(piece)
        return ids

    def _bytes_of(self, character: str) -> list[int]:
        try:
            return [self.bytes[byte] for byte in character.encode()]
        except UnicodeEncodeError:
            raise ValueError(
                f"{NAME}: text must have whole characters; got half of one, {character!r}"
            ) from None

    def _joined(self, text: str) -> list[str]:
        """Pieces and single characters that a text falls into."""
        part, end = list(text), len(text)
        before, after = list(range(-1, end - 1)), list(range(1, end + 1))
        heap: list[tuple[float, int, int, str]] = []

        def offer(a: int, b: int) -> None:
            if a >= 0 and b < end and part[a] + part[b] in self.pieces:
                union = part[a] + part[b]
                heapq.heappush(heap, (-self.scores[self.pieces[union]], a, b, union))

        for a in range(end - 1):
            offer(a, a + 1)
        while heap:
            _, a, b, union = heapq.heappop(heap)
            if part[a] + part[b] != union:
                continue  # one of them has grown since, or is gone
            part[a], part[b], after[a] = union, "", after[b]
            if after[a] < end:
                before[after[a]] = a
            offer(before[a], a)
            offer(a, after[a])
        return [piece for piece in part if piece]

    def decode(self, ids: Iterable[int]) -> str:
        """Text of tokens; bytes that are no UTF-8 become U+FFFD, control tokens nothing."""
        return "".join(self.stream(ids))

    def stream(self, ids: Iterable[int]) -> Iterator[str]:
        """Text of tokens, as soon as it is there: a character whose bytes come one by one waits."""
        whole = codecs.getincrementaldecoder("utf-8")("replace")
        first = self.prefix
        for token in ids:
            token = checks.integer(NAME, "a token", token, least=0)
            if token >= len(self.tokens):
                raise ValueError(f"{NAME}: a token must be below {len(self.tokens)}; got {token}")
            text = whole.decode(self.text_of.get(token, b""))
            if text:
                yield text.removeprefix(" ") if first else text
                first = False
        if text := whole.decode(b"", final=True):
            yield text


def load_pieces(path: str | Path) -> Pieces:
    """Read the tokenizer of a GGUF file; one of another kind than `llama` is refused by name."""
    file = read_gguf(path)
    kind = file.keys.get("tokenizer.ggml.model", "none")
    if kind != "llama":
        raise ValueError(
            f"{NAME}: {file.path.name} must have a tokenizer of pieces with scores, which "
            f"tokenizer.ggml.model calls llama; got {kind!r:.80}: the model loads, and reads token "
            "ids"
        )

    lists: list[Any] = []
    for key, what in (("tokens", str), ("scores", float), ("token_type", int)):
        lists.append(file.keys.get(f"tokenizer.ggml.{key}"))
        if not isinstance(lists[-1], list) or [type(x) for x in lists[-1][:1]] != [what]:
            raise ValueError(
                f"{NAME}: {file.path.name} must have a list of {what.__name__} as "
                f"tokenizer.ggml.{key}"
            )
    begins = file.keys.get("tokenizer.ggml.add_bos_token", True)
    bos = file.keys.get("tokenizer.ggml.bos_token_id", "none") if begins else None
    prefix = bool(file.keys.get("tokenizer.ggml.add_space_prefix", True))
    tokens, scores, kinds = lists
    return Pieces(tokens, scores, kinds, bos, prefix)

"""Exercises of chapter 63: decode with a key-value cache.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 63_decoding.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def greedy_tokens(next_logits, prompt, steps, end=None):
    """Continue each prompt with the most probable token, again and again.

    next_logits  function   takes all tokens so far, (B, L); gives the logits (B, V) of the next
    prompt       (B, L)     integers
    steps        int        the most tokens to add
    end          int        the token that ends a row; None: there is none
    returns      (B, n)     the new tokens, without the prompt; n = steps, or less if all have ended

    in each step:
        for each row: the token with the largest logit; `end` for a row that has ended
        stop when all rows have ended
    """
    raise NotImplementedError


def next_probabilities(logits, temperature, top_k):
    """Probabilities of the next token among the k best.

    logits       (B, V)
    temperature  number   above 0
    top_k        int      k
    returns      (B, V)   rows that sum to 1, 0 outside the k largest logits

    for each row:
        keep the k largest logits, the others become -inf
        softmax of the logits over the temperature
    """
    raise NotImplementedError


def cached_rows(prefixes, first, cached):
    """Rows of keys that are computed while a text grows.

    prefixes  int    number of prefixes that are read, each one token longer than the last
    first     int    tokens of the first prefix
    cached    bool   whether keys are kept
    returns   int

    without a cache: every prefix computes a row for each of its tokens
    with a cache: a prefix computes a row for each token that was not there before
    """
    raise NotImplementedError


def causal_mask(q_positions, k_positions):
    """True where a key is not in the query's future.

    q_positions  (..., L)      positions of the queries: with a cache they don't begin at 0
    k_positions  (..., S)
    returns      (..., L, S)   boolean, True = may attend

    for each query i and each key j:
        mask[i, j] = q_positions[i] >= k_positions[j]
    """
    raise NotImplementedError


def best_beam(log_p, start, steps, beams, end, alpha):
    """The best sequence that beam search finds, and its score.

    log_p    (steps, V, V)   log_p[n, a, b]: log probability of b as token n, after a
    start    int             the token before the first
    steps    int             the most tokens
    beams    int             sequences that go on
    end      int             the token that ends a sequence
    alpha    number
    returns  ((n,) integers, number)

    for each step:
        grow every sequence that goes on by every token; add up the logarithms
        look only at the 2 * beams most probable ones
        those that end: keep them, with log p / ((5 + length) / 6) ** alpha, the end counted
        of the others: the beams most probable ones go on
    the best of those that have ended (some will)
    """
    raise NotImplementedError


def speculative_accept(p, q, drafted, u):
    """How many drafted tokens are accepted, and what the next one is drawn from.

    p        (n + 1, V)   probabilities of the large model: before each drafted token, and after all
    q        (n, V)       those of the small model
    drafted  (n,)         its tokens
    u        (n,)         uniform draws, one for each
    returns  (int, (V,))  a distribution that sums to 1

    for each drafted token x, in turn:
        accept it if u < p(x) / q(x)
        if not: stop; the next token is drawn from max(p - q, 0), made to sum to 1
    if all are accepted: the next token is drawn from the last row of p
    """
    raise NotImplementedError


def cached_attention(q, k, v, cache=None, frequencies=None):
    """Causal attention of the newest tokens over all so far; it is called piece after piece.

    q, k, v      (..., n, K)   of the n newest tokens; they stand behind those of the cache
    cache        None at first, then what you returned: anything you like
    frequencies  (K/2,)        if given, RoPE turns q and k at their positions, the first token of
                               the text at 0; pair c is the components c and c + K/2
    returns      output (..., n, K) of the data's dtype, new cache;
                 the old one stays as it was, for anyone who goes back

    for each new token at position i:
        score[j]  = q[i] k[j] / sqrt(K)   for all j so far, up to i
        output[i] = sum over j of softmax(score)[j] v[j]
    """
    raise NotImplementedError


def sample_tokens(next_logits, prompt, steps, rng, temperature=1.0, top_k=None, end=None):
    """Continue each prompt with tokens drawn by their probability.

    next_logits  function   takes all tokens so far, (B, L); gives the logits (B, V) of the next
    prompt       (B, L)     integers
    steps        int        the most tokens to add
    rng          numpy.random.Generator
    temperature  number     above 0
    top_k        int        draw only among the k largest logits; None: among all
    end          int        the token that ends a row; None: there is none
    returns      (B, n)     the new tokens, without the prompt; n = steps, or less if all have ended

    in each step:
        p = softmax(logits / temperature), the logits outside the k largest -inf
        for each row in turn, one that has ended as well:
            u = rng.random()
            token = the first one at which the sum of p up to it is above u
        a row that has ended gets `end` instead
        stop when all rows have ended
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# greedy_tokens, 1: argmax with axis=-1 finds one token a row.
# greedy_tokens, 2: an array of booleans, one per row, tells who has ended.

# next_probabilities, 1: np.sort ascends: the k-th largest is at -k.
# next_probabilities, 2: hide before the softmax.

# cached_rows, 1: 4 prefixes of 2, 3, 4 and 5 tokens: 14 rows without a cache, 5 with one.

# causal_mask, 1: a token sees itself.
# causal_mask, 2: compare positions, not indices; np.tril would align both at 0.

# best_beam, 1: a list of (sum, tokens) for those that go on, another for those that have ended.
# best_beam, 2: each beam can end in one way only: of 2 * beams at least half go on.

# speculative_accept, 1: row n of p and q is what both expected where drafted[n] stands.
# speculative_accept, 2: after the first that is refused, later ones do not count.

# cached_attention, 1: a pair of arrays (keys, values) is a good cache; None is 0 tokens.
# cached_attention, 2: with S keys, new token n of L stands at S - L + n: it sees keys up to there.
# cached_attention, 3: keep the keys turned; then each is turned once, where it stands.
# cached_attention, 4: np.concatenate makes a new array; a list that grows is the same for all.

# sample_tokens, 1: rng.random(B) gives the same numbers as B calls.
# sample_tokens, 2: p.cumsum(axis=-1) <= u counts the tokens to pass over.
# sample_tokens, 3: your next_probabilities serves here.

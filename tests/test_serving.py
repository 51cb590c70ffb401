"""Packed texts, trees of drafts, parts of one attention: loop oracles, theorems, bad input."""

import math

import numpy as np
import pytest
from differences import slopes
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import (
    alibi_bias,
    alibi_slopes,
    attention,
    causal_mask,
    relative_distance,
    rope,
    sinusoidal,
    value_and_grad,
)
from pe_numpy.transformer.decoder import feed_forward, rms_norm
from pe_numpy.transformer.serving import (
    document_mask,
    merge_attention,
    pack,
    partial_attention,
    tree_mask,
    tree_positions,
    zigzag,
)

B, H, L, S, K, V = 2, 3, 5, 12, 8, 6
NEAR = dict(rtol=0, atol=1e-12)
seeds = st.integers(0, 2**32 - 1)
LENGTHS = [[3, 2], [4], [1, 1, 5], [2, 0, 3], [0, 4, 0], [], [0]]
some_lengths = st.lists(st.integers(0, 5), max_size=5)


def data(seed=0, L=L, S=S):
    rng = np.random.default_rng(seed)
    shapes = (B, H, L, K), (B, H, S, K), (B, H, S, V)
    return tuple(rng.standard_normal(shape) for shape in shapes)


# ---- packed documents ---------------------------------------------------------------------------


def packed_by_loops(lengths):
    positions, documents = [], []
    for document, length in enumerate(lengths):
        for position in range(length):
            positions.append(position)
            documents.append(document)
    mask = np.zeros((len(positions), len(positions)), bool)
    for i in range(len(positions)):
        for j in range(i + 1):
            mask[i, j] = documents[i] == documents[j]
    return positions, documents, mask


@given(some_lengths)
def test_pack_equals_counting_token_by_token(lengths):
    for given_lengths in (lengths, np.array(lengths, np.uint8), np.array(lengths, np.int16)):
        positions, documents, mask = pack(given_lengths)
        expected = packed_by_loops(lengths)
        assert positions.dtype == documents.dtype == np.int64 and mask.dtype == bool
        for got, want in zip((positions, documents, mask), expected, strict=True):
            assert_array_equal(got, want)


def test_document_mask_equals_comparing_pair_by_pair_and_broadcasts():
    rng = np.random.default_rng(0)
    q, k = rng.integers(0, 3, (B, 1, L)), rng.integers(0, 3, (H, S)).astype(np.uint8)
    mask = document_mask(q, k)
    assert mask.shape == (B, H, L, S) and mask.any() and not mask.all()
    for b, h, i, j in np.ndindex(mask.shape):
        assert mask[b, h, i, j] == (q[b, 0, i] == k[h, j])
    assert document_mask([], [1, 2]).shape == (0, 2)


def layer(kind, rng):
    """One layer of attention: a function of vectors (S, D), positions and mask."""
    W = rng.standard_normal((4, H * K, H * K)) / math.sqrt(H * K)

    def heads(x, W):
        return np.swapaxes((x @ W).reshape(len(x), H, K), 0, 1)

    def output(x, positions, mask):
        if kind == "sinusoidal":
            x = x + sinusoidal(positions, H * K)
        q, k, v = (heads(x, w) for w in W[:3])
        bias = None
        if kind == "rope":
            q, k = rope(q, positions), rope(k, positions)
        if kind == "alibi":
            bias = alibi_bias(alibi_slopes(H), relative_distance(positions, positions))
        return np.swapaxes(attention(q, k, v, mask, bias)[0], 0, 1).reshape(len(x), -1) @ W[3]

    return output


ENCODINGS = ["rope", "alibi", "sinusoidal"]


def errors(kind, lengths, restart, masked):
    """The largest difference of a packed layer's outputs from those of each document by itself."""
    rng = np.random.default_rng(1)
    output, x = layer(kind, rng), rng.standard_normal((sum(lengths), H * K))
    positions, _, mask = pack(lengths)
    everything = np.arange(len(x))
    if not restart:
        positions = everything
    if not masked:
        mask = causal_mask(everything, everything)
    got, first, largest = output(x, positions, mask), 0, 0.0
    for length in filter(None, lengths):
        here, at = slice(first, first + length), np.arange(length)
        alone = output(x[here], at, causal_mask(at, at))
        largest = max(largest, np.abs(got[here] - alone).max(initial=0))
        first += length
    return largest


@pytest.mark.parametrize("kind", ENCODINGS)
@pytest.mark.parametrize("lengths", [x for x in LENGTHS if sum(x)])
def test_packed_attention_is_that_of_each_document_by_itself(kind, lengths):
    assert errors(kind, lengths, restart=True, masked=True) < 1e-12


@pytest.mark.parametrize("kind", ENCODINGS)
def test_the_mask_without_a_restart_suffices_for_what_sees_differences_only(kind):
    error = errors(kind, [4, 5, 3], restart=False, masked=True)
    assert error > 0.01 if kind == "sinusoidal" else error < 1e-12


@pytest.mark.parametrize("kind", ENCODINGS)
def test_a_restart_without_the_mask_suffices_for_nothing(kind):
    assert errors(kind, [4, 5, 3], restart=True, masked=False) > 0.01


# ---- trees of drafts ----------------------------------------------------------------------------

TREES = [[], [-1], [-1, 0, 0, 1, 1, 2], [-1, -1, 0, 1, 3], [-1, 0, 1, 2], [-1] * 3]


@st.composite
def trees(draw):
    n = draw(st.integers(0, 12))
    return [draw(st.integers(-1, node - 1)) for node in range(n)]


def ancestors(parents, node):
    """The node and all before it, up to the text."""
    path = []
    while node >= 0:
        path.append(node)
        node = parents[node]
    return path


@given(trees())
def test_trees_equal_walking_up_from_each_node(parents):
    for given_parents in (parents, np.array(parents, np.int8)):
        positions, mask = tree_positions(given_parents), tree_mask(given_parents)
        assert positions.shape == (len(parents),) and mask.shape == (len(parents),) * 2
        assert positions.dtype == np.int64 and mask.dtype == bool
        for node in range(len(parents)):
            path = ancestors(parents, node)
            assert positions[node] == len(path) - 1
            assert_array_equal(np.flatnonzero(mask[node]), sorted(path))


@given(trees())
def test_a_position_is_the_sum_of_its_row_less_one_as_in_eagle(parents):
    assert_array_equal(tree_mask(parents).sum(axis=-1) - 1, tree_positions(parents))


def test_a_tree_of_one_branch_is_a_text_and_one_of_roots_sees_only_itself():
    branch = np.arange(5) - 1
    assert_array_equal(tree_positions(branch), np.arange(5))
    assert_array_equal(tree_mask(branch), causal_mask(np.arange(5), np.arange(5)))
    assert_array_equal(tree_positions([-1] * 4), np.zeros(4))
    assert_array_equal(tree_mask([-1] * 4), np.eye(4))


def test_medusa_s_tree_of_paths_has_these_positions_and_this_mask():
    """A path of Medusa names the choice at each depth; node 0 is the root before all paths."""
    paths = [(0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0)]
    parents = [-1] + [paths.index(path[:-1]) + 1 if path[:-1] else 0 for path in paths]
    assert parents == [-1, 0, 0, 1, 1, 2, 3]
    assert_array_equal(tree_positions(parents), [0] + [len(path) for path in paths])
    mask = tree_mask(parents)
    assert mask[:, 0].all()
    for i, path in enumerate(paths):
        for j, other in enumerate(paths):
            assert mask[i + 1, j + 1] == (path[: len(other)] == other)


def decoder(seed, vocabulary=11, layers=2):
    """A decoder with RoPE: a function of tokens (N,), positions and mask that gives logits."""
    rng = np.random.default_rng(seed)
    D = H * K
    embeddings = rng.standard_normal((vocabulary, D))
    blocks = [rng.standard_normal((4, D, D)) / math.sqrt(D) for _ in range(layers)]
    fed = [
        {name: rng.standard_normal((D, D)) / math.sqrt(D) for name in ("W_gate", "W_1", "W_2")}
        for _ in range(layers)
    ]

    def heads(x):
        return np.swapaxes(x.reshape(len(x), H, K), 0, 1)

    def logits(tokens, positions, mask):
        x = embeddings[tokens]
        for (W_q, W_k, W_v, W_o), p in zip(blocks, fed, strict=True):
            h = rms_norm(x, 1, 1e-6)
            q, k = (rope(heads(h @ W), positions) for W in (W_q, W_k))
            x = (
                x
                + np.swapaxes(attention(q, k, heads(h @ W_v), mask)[0], 0, 1).reshape(x.shape) @ W_o
            )
            x = x + feed_forward(p, rms_norm(x, 1, 1e-6))
        return rms_norm(x, 1, 1e-6) @ embeddings.T

    return logits


def with_a_tree(logits, text, tokens, parents, positions=None, mask=None):
    """The logits of all nodes in one pass, behind a text."""
    n, N = len(text), len(tokens)
    positions = tree_positions(parents) if positions is None else positions
    mask = tree_mask(parents) if mask is None else mask
    whole = np.zeros((n + N, n + N), bool)
    whole[:n, :n] = causal_mask(np.arange(n), np.arange(n))
    whole[n:, :n], whole[n:, n:] = True, mask
    at = np.concatenate([np.arange(n), n + positions])
    return logits(np.concatenate([text, tokens]).astype(int), at, whole)[n:]


@pytest.mark.parametrize("parents", [x for x in TREES if x])
def test_each_node_has_the_logits_of_its_branch_as_a_text(parents):
    logits, rng = decoder(0), np.random.default_rng(1)
    text, tokens = rng.integers(0, 11, 6), rng.integers(0, 11, len(parents))
    got = with_a_tree(logits, text, tokens, parents)
    numbered = with_a_tree(logits, text, tokens, parents, positions=np.arange(len(parents)))
    chain = np.arange(len(parents))
    causal = with_a_tree(logits, text, tokens, parents, mask=causal_mask(chain, chain))
    is_chain = np.array_equal(parents, chain - 1)
    for wrong in (numbered, causal):
        assert (np.abs(wrong - got).max() > 0.01) != is_chain
    for node in range(len(parents)):
        branch = np.concatenate([text, tokens[ancestors(parents, node)[::-1]]])
        at = np.arange(len(branch))
        assert_allclose(got[node], logits(branch, at, causal_mask(at, at))[-1], **NEAR)


def test_greedy_decoding_through_trees_writes_what_greedy_decoding_writes():
    logits, rng, steps = decoder(3), np.random.default_rng(2), 20

    def greedy(text, n):
        for _ in range(n):
            at = np.arange(len(text))
            text = np.append(text, logits(text, at, causal_mask(at, at))[-1].argmax())
        return text

    prompt = rng.integers(0, 11, 4)
    expected = greedy(prompt, steps)
    parents = np.array([-1, 0, 0, 0, 1, 1, 2, 3, 4, 6])
    text, passes = prompt, 0
    root = expected[len(prompt)]  # the token that the model has chosen after the prompt
    while len(text) < len(expected):
        best = greedy(np.append(text, root), 3)[len(text) + 1 :]  # a draft: right in one branch
        tokens = rng.integers(0, 11, len(parents))
        tokens[0] = root
        if passes % 2 == 0:
            tokens[[2, 6, 9]] = best
        chosen = with_a_tree(logits, text, tokens, parents).argmax(axis=-1)
        node, written = 0, [root]
        while True:  # walk down as long as a child is what the model chose
            children = np.flatnonzero((parents == node) & (tokens == chosen[node]))
            if len(children) == 0:
                break
            node = children[0]
            written.append(tokens[node])
        text, root, passes = np.append(text, written), chosen[node], passes + 1
    assert_array_equal(text[: len(expected)], expected)
    assert passes < steps / 2


# ---- parts of one attention ---------------------------------------------------------------------


def partial_by_loops(q, k, v, mask=None, bias=None):
    """One head, one scalar at a time."""
    outputs, log_sums = np.zeros((len(q), v.shape[1])), np.full(len(q), -math.inf)
    for i in range(len(q)):
        total = 0.0
        for j in range(len(k)):
            if mask is None or mask[i, j]:
                score = sum(q[i, c] * k[j, c] for c in range(q.shape[1])) / math.sqrt(q.shape[1])
                weight = math.exp(score + (0 if bias is None else bias[i, j]))
                total += weight
                outputs[i] += weight * v[j]
        if total:
            outputs[i] /= total
            log_sums[i] = math.log(total)
    return outputs, log_sums


@given(seeds)
def test_partial_attention_equals_the_sum_key_by_key(seed):
    q, k, v = data(seed)
    rng = np.random.default_rng(seed)
    mask, bias = rng.random((B, 1, L, S)) < 0.3, rng.standard_normal((H, L, S))
    mask[0, 0, 1] = False
    for options in ({}, {"mask": mask}, {"bias": bias}, {"mask": mask, "bias": bias}):
        outputs, log_sums = partial_attention(q, k, v, **options)
        assert outputs.shape == (B, H, L, V) and log_sums.shape == (B, H, L)
        full = {n: np.broadcast_to(x, (B, H, L, S)) for n, x in options.items()}
        for b, h in np.ndindex(B, H):
            one = {name: x[b, h] for name, x in full.items()}
            expected = partial_by_loops(q[b, h], k[b, h], v[b, h], **one)
            assert_allclose(outputs[b, h], expected[0], **NEAR)
            assert_allclose(log_sums[b, h], expected[1], **NEAR)
        assert_allclose(outputs, attention(q, k, v, **options)[0], **NEAR)
        if "mask" in options:
            assert (outputs[0, :, 1] == 0).all() and (log_sums[0, :, 1] == -np.inf).all()


@given(seeds, st.lists(st.integers(0, S), max_size=4))
def test_parts_of_any_split_merge_to_the_whole_also_those_that_see_nothing(seed, cuts):
    q, k, v = data(seed)
    rng = np.random.default_rng(seed)
    mask, bias = rng.random((B, H, L, S)) < 0.4, rng.standard_normal((H, L, S))
    mask[0, 0, 1] = False
    order = rng.permutation(S)
    parts = np.split(order, sorted(cuts))
    done = [partial_attention(q, k[:, :, p], v[:, :, p], mask[..., p], bias[..., p]) for p in parts]
    outputs, log_sums = zip(*done, strict=True)
    whole = partial_attention(q, k, v, mask, bias)
    for got, want in zip(merge_attention(outputs, log_sums), whole, strict=True):
        assert_allclose(got, want, **NEAR)
    assert_allclose(whole[0], attention(q, k, v, mask, bias)[0], **NEAR)
    # one after the other, as a ring does, and backwards
    for n in (1, -1):
        so_far = done[::n][0]
        for part in done[::n][1:]:
            so_far = merge_attention(*zip(so_far, part, strict=True))
        for got, want in zip(so_far, whole, strict=True):
            assert_allclose(got, want, **NEAR)


@given(seeds)
def test_merged_parts_equal_the_weighted_sum_number_by_number(seed):
    rng = np.random.default_rng(seed)
    outputs, log_sums = rng.standard_normal((4, B, L, V)), rng.standard_normal((4, B, L))
    log_sums[rng.random((4, B, L)) < 0.4] = -np.inf
    merged, together = merge_attention(outputs, log_sums)
    for b, i in np.ndindex(B, L):
        total = sum(math.exp(log_sums[r, b, i]) for r in range(4))
        assert_allclose(together[b, i], math.log(total) if total else -math.inf, **NEAR)
        for c in range(V):
            mixed = sum(math.exp(log_sums[r, b, i]) * outputs[r, b, i, c] for r in range(4))
            assert_allclose(merged[b, i, c], mixed / (total or 1), **NEAR)


def test_scores_of_any_size_neither_overflow_nor_vanish():
    q, k, v = data()
    shifts = np.array([-3000.0, 0, 2000, 5000, 5000.5])[:, None]
    outputs, log_sums = partial_attention(q, k, v, bias=shifts)
    plain = partial_attention(q, k, v)
    assert_allclose(outputs, plain[0], rtol=0, atol=1e-10)
    assert_allclose(log_sums, plain[1] + shifts[:, 0], rtol=0, atol=1e-10)
    merged, together = merge_attention([outputs] * 3, [log_sums, log_sums, log_sums - 1e4])
    assert_allclose(merged, outputs, **NEAR)
    assert_allclose(together, log_sums + math.log(2), **NEAR)


def test_an_output_that_counts_for_nothing_is_not_read():
    outputs, log_sums = np.array([[[np.nan]], [[2.0]]]), np.array([[-np.inf], [0.0]])
    with np.errstate(all="raise"):
        merged, together = merge_attention(outputs, log_sums)
        nothing = merge_attention(outputs, log_sums - np.inf)
    assert merged.tolist() == [[2]] and together.tolist() == [0]
    assert nothing[0].tolist() == [[0]] and nothing[1].tolist() == [-np.inf]
    assert np.isnan(merge_attention(outputs, [[0.0], [0.0]])[0]).all()
    assert np.isnan(merge_attention(outputs[::-1], [[np.nan], [0.0]])[0]).all()


def test_no_keys_are_a_part_too_and_no_query_gives_none():
    q, k, v = data()
    with np.errstate(all="raise"):
        outputs, log_sums = partial_attention(q, k[:, :, :0], v[:, :, :0])
    assert_array_equal(outputs, np.zeros((B, H, L, V)))
    assert_array_equal(log_sums, np.full((B, H, L), -np.inf))
    outputs, log_sums = partial_attention(q[:, :, :0], k, v)
    assert outputs.shape == (B, H, 0, V) and log_sums.shape == (B, H, 0)
    assert merge_attention([outputs], [log_sums])[0].shape == (B, H, 0, V)


def test_batch_axes_broadcast_also_those_of_the_values_alone():
    q, k, v = data()
    outputs, log_sums = partial_attention(q[0, 0], k[0], v)
    assert outputs.shape == (B, H, L, V) and log_sums.shape == (B, H, L)
    wide = np.broadcast_to(q[0, 0], q.shape), np.broadcast_to(k[0], k.shape)
    expected = partial_attention(*wide, v)
    assert_allclose(outputs, expected[0], **NEAR)
    assert_allclose(log_sums, expected[1], **NEAR)


@pytest.mark.parametrize(("dtype", "near"), [(np.float32, 3e-6), (np.float16, 5e-3)])
def test_small_floats_come_back_and_log_sums_of_float16_are_float32(dtype, near):
    small = [x.astype(dtype) for x in data()]
    bias = np.random.default_rng(1).standard_normal((L, S))  # float64
    exact = partial_attention(*(x.astype(float) for x in small), bias=bias)
    outputs, log_sums = partial_attention(*small, bias=bias)
    assert outputs.dtype == dtype and log_sums.dtype == np.float32
    assert_allclose(outputs, exact[0], rtol=near, atol=near)
    assert_allclose(log_sums, exact[1], rtol=3e-6, atol=3e-6)
    merged, together = merge_attention([outputs] * 2, [log_sums] * 2)
    assert merged.dtype == dtype and together.dtype == np.float32
    assert_allclose(merged, outputs, rtol=near, atol=near)
    merged, together = merge_attention([outputs] * 2, np.zeros((2, B, H, L)))
    assert merged.dtype == dtype and together.dtype == np.float64
    assert merge_attention([outputs] * 2, np.zeros((2, B, H, L), np.float16))[1].dtype == np.float32


def test_log_sums_of_float16_may_be_larger_than_float16():
    q = np.full((1, 4), 400, np.float16)
    outputs, log_sums = partial_attention(q, q, q[:, :1])
    assert log_sums.tolist() == [320000] and outputs.tolist() == [[400]]


def test_nothing_given_is_changed():
    q, k, v = data()
    mask, bias = np.ones((L, S), bool), np.zeros((L, S))
    outputs, log_sums = np.ones((2, L, V)), np.zeros((2, L))
    parents, lengths = np.array([-1, 0, 0]), np.array([2, 3])
    given_ = q, k, v, mask, bias, outputs, log_sums, parents, lengths
    kept = [x.copy() for x in given_]
    for x in given_:
        x.flags.writeable = False
    partial_attention(q, k, v)
    partial_attention(q, k, v, mask, bias)
    merge_attention(outputs, log_sums)
    positions = tree_positions(parents), pack(lengths)[0]
    tree_mask(parents)
    for x, before in zip(given_, kept, strict=True):
        assert_array_equal(x, before)
        assert not any(np.shares_memory(x, p) for p in positions)


def test_gradients_flow_through_merged_parts_as_through_the_whole():
    q, k, v = (x[0, 0] for x in data())
    g = np.random.default_rng(3).standard_normal((L, V))
    h = np.random.default_rng(4).standard_normal(L)
    mask = causal_mask(np.arange(S - L, S), np.arange(S))
    half = slice(0, S // 2), slice(S // 2, S)

    def number(q, k, v):
        parts = [partial_attention(q, k[p], v[p], mask[:, p]) for p in half]
        outputs, log_sums = merge_attention(
            np.stack([o for o, _ in parts]), np.stack([s for _, s in parts])
        )
        return np.sum(g * outputs) + np.sum(h * log_sums)

    grads = value_and_grad(lambda p: number(**p))({"q": q, "k": k, "v": v})[1]
    for n, name in enumerate("qkv"):
        assert_allclose(grads[name], slopes(number, [q, k, v], n), rtol=1e-6, atol=1e-8)


# ---- ranks --------------------------------------------------------------------------------------


@given(st.integers(1, 6), st.integers(1, 5))
def test_zigzag_gives_each_rank_its_two_blocks_and_each_position_once(ranks, block):
    length = 2 * ranks * block
    held = zigzag(length, ranks)
    assert held.shape == (ranks, 2 * block) and held.dtype == np.int64
    for r in range(ranks):
        last = 2 * ranks - 1 - r
        expected = [*range(r * block, (r + 1) * block), *range(last * block, (last + 1) * block)]
        assert held[r].tolist() == expected
    assert sorted(held.ravel().tolist()) == list(range(length))


@given(st.integers(1, 6), st.integers(1, 5))
def test_zigzag_gives_all_ranks_the_same_work_at_each_step_of_the_ring(ranks, block):
    held = zigzag(2 * ranks * block, ranks)
    pairs = np.array([[causal_mask(q, k).sum() for k in held] for q in held])
    own, other = 2 * block**2 + block, 2 * block**2
    assert_array_equal(pairs, np.where(np.eye(ranks, dtype=bool), own, other))


def test_contiguous_ranks_have_almost_2_r_minus_1_times_the_first_rank_s_work():
    held = np.arange(6400).reshape(4, -1)
    work = (held + 1).sum(axis=1)
    assert 6.99 < work[-1] / work[0] < 7
    work = (zigzag(6400, 4) + 1).sum(axis=1)
    assert (work == work[0]).all()


@pytest.mark.parametrize("shards", ["contiguous", "zigzag"])
def test_ranks_that_keep_the_text_s_positions_compute_one_causal_attention(shards):
    length, ranks = 24, 3
    q, k, v = (x[0] for x in data(L=length, S=length))
    held = zigzag(length, ranks) if shards == "zigzag" else np.arange(length).reshape(ranks, -1)
    at = np.arange(length)
    expected = attention(rope(q, at), rope(k, at), v, causal_mask(at, at))[0]

    def all_ranks(positions):
        outputs = np.zeros_like(expected)
        for rows, q_at in zip(held, positions, strict=True):
            parts = [
                partial_attention(
                    rope(q[:, rows], q_at),
                    rope(k[:, columns], k_at),
                    v[:, columns],
                    causal_mask(rows, columns),
                )
                for columns, k_at in zip(held, positions, strict=True)
            ]
            outputs[:, rows] = merge_attention(*zip(*parts, strict=True))[0]
        return outputs

    assert_allclose(all_ranks(held), expected, **NEAR)
    from_0 = np.broadcast_to(np.arange(held.shape[1]), held.shape)
    assert np.abs(all_ranks(from_0) - expected).max() > 0.01


# ---- by hand ------------------------------------------------------------------------------------


def test_by_hand():
    one = np.ones((1, 1))
    outputs, log_sums = partial_attention(one, np.log([[1.0], [3.0]]), np.array([[4.0], [8.0]]))
    assert_allclose(outputs, [[7]], **NEAR)
    assert_allclose(log_sums, [math.log(4)], **NEAR)
    merged, together = merge_attention([outputs, [[1.0]]], [log_sums, [math.log(2)]])
    assert_allclose(merged, [[5]], **NEAR)  # 4/6 of 7 and 2/6 of 1
    assert_allclose(together, [math.log(6)], **NEAR)


# ---- bad input ----------------------------------------------------------------------------------

Q, KEYS, VALUES = np.ones((2, L, K)), np.ones((2, S, K)), np.ones((2, S, V))
O, LOG = np.ones((3, L, V)), np.zeros((3, L))
INFINITE = np.where(np.arange(L) == 2, np.inf, LOG)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pack([3, -1]), r"pack: lengths must be at least 0; got -1.*np.diff\(cu_seqlens"),
        (lambda: pack([3, 2.0]), "pack: lengths must be an axis of whole numbers; .*float64"),
        (lambda: pack([True]), "pack: lengths must be an axis of whole numbers; .*bool"),
        (lambda: pack(3), r"pack: lengths must be an axis of whole numbers; got shape \(\)"),
        (lambda: pack([[1, 2]]), r"pack: lengths must have one axis; got shape \(1, 2\). Call"),
        (lambda: pack([[1, 2], [3]]), "pack: lengths must have rows of one length"),
        (lambda: document_mask(0, [0]), "document_mask: q_documents must be an axis of whole"),
        (lambda: document_mask([0], [0.5]), "document_mask: k_documents must be an axis of whole"),
        (
            lambda: document_mask(np.zeros((2, 3), int), np.zeros((3, 3), int)),
            r"document_mask: the batch axes must broadcast; got q_documents \(2,\), k_doc.* \(3,\)",
        ),
        (
            lambda: tree_mask([-1, 1]),
            "tree_mask: each parent must be -1.* before its child; got 1 for node 1. Number",
        ),
        (lambda: tree_positions([-1, 0, 5]), "tree_positions: each parent.*got 5 for node 2"),
        (lambda: tree_positions([-1, -2]), "tree_positions: each parent.*got -2 for node 1"),
        (lambda: tree_mask([0, 0]), "tree_mask: each parent must be -1.*got 0 for node 0"),
        (lambda: tree_mask([-1.0]), "tree_mask: parents must be an axis of whole numbers"),
        (lambda: tree_mask([[-1]]), "tree_mask: parents must have one axis"),
        (
            lambda: partial_attention(Q, KEYS[..., 1:], VALUES),
            "partial_attention: q and k must have the same width K",
        ),
        (
            lambda: partial_attention(Q, KEYS, VALUES[:, 1:]),
            "partial_attention: k and v must have the same length S; got 12 and 11",
        ),
        (
            lambda: partial_attention(Q, KEYS, VALUES, np.ones((L, S))),
            "partial_attention: mask must be boolean",
        ),
        (
            lambda: partial_attention(Q, KEYS, VALUES, np.ones((3, L, S), bool)),
            "partial_attention: mask must broadcast to the shape of the scores",
        ),
        (
            lambda: partial_attention(Q, KEYS, VALUES, bias=np.ones((L, S + 1))),
            r"partial_attention: bias must broadcast to .*\(2, 5, 12\); got \(5, 13\)",
        ),
        (lambda: partial_attention(Q, KEYS, VALUES, bias=[1j]), "bias must hold real numbers"),
        (
            lambda: partial_attention(Q, KEYS, VALUES, bias=np.full(S, np.inf)),
            r"partial_attention: scores must stay below \+inf",
        ),
        (
            lambda: merge_attention(O, INFINITE),
            r"merge_attention: log_sums must stay below \+inf.*sees nothing mean -inf",
        ),
        (
            lambda: merge_attention(O, LOG[:2]),
            r"merge_attention: log_sums must have the axes .*, \(3, 5\); got \(2, 5\)",
        ),
        (lambda: merge_attention(O, LOG[..., None]), r"of the outputs, \(3, 5\); got \(3, 5, 1\)"),
        (lambda: merge_attention(O[:0], LOG[:0]), "merge_attention: there must be at least one"),
        (lambda: merge_attention(O[0], LOG[0]), r"outputs must have the axes \(..., R, L, V\)"),
        (lambda: merge_attention([O, O[:, 1:]], LOG), "merge_attention: outputs must have rows"),
        (lambda: merge_attention(O, LOG * 1j), "merge_attention: log_sums must hold real numbers"),
        (
            lambda: zigzag(10, 2),
            "zigzag: length must be a multiple of 2 ranks = 4; got 10. Pad the text by 2",
        ),
        (lambda: zigzag(0, 2), "zigzag: length must be at least 1; got 0"),
        (lambda: zigzag(8, 0), "zigzag: ranks must be at least 1; got 0"),
        (lambda: zigzag(8.0, 2), "zigzag: length must be a whole number; got 8.0"),
        (lambda: zigzag(8, 2.0), "zigzag: ranks must be a whole number; got 2.0"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()

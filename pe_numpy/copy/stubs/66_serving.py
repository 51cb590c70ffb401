"""Exercises of chapter 66: positions in servers.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 66_serving.py

Arrays are NumPy arrays, not lists. Masks are boolean, True = may attend. "Of the data's dtype"
means that float32 stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def pack(lengths):
    """Positions, documents and mask of documents that are packed into one row.

    lengths  (N,)   tokens of each document; a length may be 0
    returns  positions (S,), documents (S,), both integers, and mask (S, S), booleans;
             S is the sum of the lengths

    for each token i of the row:
        documents[i] = number of its document, from 0
        positions[i] = number of the tokens before it in its document
        mask[i, j]   = True if j <= i and documents[i] = documents[j]
    """
    raise NotImplementedError


def document_mask(q_documents, k_documents):
    """True where query and key are of the same document.

    q_documents  (..., L)      integers
    k_documents  (..., S)      integers; the batch axes broadcast
    returns      (..., L, S)   booleans

    for each query i and key j:
        mask[i, j] = True if q_documents[i] = k_documents[j]
    """
    raise NotImplementedError


def tree_positions(parents):
    """Position of each drafted token after the text: its depth.

    parents  (N,)   the node before each node, which has a smaller number; -1 = the text itself
    returns  (N,)   integers

    for each node n:
        depth[n] = 0 if parents[n] is -1, else depth[parents[n]] + 1
    """
    raise NotImplementedError


def tree_mask(parents):
    """True where the key is the query itself or one of its ancestors.

    parents  (N,)     as above
    returns  (N, N)   booleans: queries down, keys across

    for each node n:
        mask[n, n] = True
        mask[n, m] = True for all m that parents[n] attends to, if parents[n] is not -1
    """
    raise NotImplementedError


def partial_attention(q, k, v, mask=None, bias=None):
    """Attention over some of the keys, and the logarithm of the sum of exp(score).

    q        (..., L, K)
    k, v     (..., S, K), (..., S, V)   S may be 0
    mask     booleans that broadcast to (..., L, S), or None
    bias     numbers that broadcast to (..., L, S), or None; of the data's dtype
    returns  outputs (..., L, V) and log_sums (..., L), of the data's dtype

    for each query i:
        score[j]    = q[i] . k[j] / sqrt(K) + bias[i, j], for the keys j that it may attend to
        log_sums[i] = ln(sum over j of exp(score[j]))
        outputs[i]  = sum over j of exp(score[j] - log_sums[i]) v[j]
        if it may attend to nothing, log_sums[i] = -inf and outputs[i] = 0
    """
    raise NotImplementedError


def merge_attention(outputs, log_sums):
    """Attention over all keys, from attention over parts of them.

    outputs   (R, ..., L, V)   of R parts
    log_sums  (R, ..., L)      of R parts
    returns   outputs (..., L, V) and log_sums (..., L), of the data's dtype

    for each query i:
        log_sum[i] = ln(sum over r of exp(log_sums[r, i]))
        output[i]  = sum over r of exp(log_sums[r, i] - log_sum[i]) outputs[r, i]
        a part whose log-sum is -inf counts for nothing: its output may be NaN
        if all parts are such, log_sum[i] = -inf and output[i] = 0
    """
    raise NotImplementedError


def zigzag(length, ranks):
    """Positions that each rank holds.

    length   int   a multiple of 2 R
    ranks    int   R
    returns  (R, length / R)   integers

    cut 0 .. length - 1 into 2 R blocks of one size
    for each rank r:
        row r = block r, then block 2 R - 1 - r, both in ascending order
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# pack, 1: np.repeat(np.arange(N), lengths) gives the documents.
# pack, 2: np.cumsum(lengths) - lengths is where each document begins.

# document_mask, 1: put the queries down, [..., :, None], and the keys across, [..., None, :].

# tree_positions, 1: parents come before their children, so one loop over the nodes is enough.

# tree_mask, 1: begin with the identity; a row is its parent's row and the node itself.

# partial_attention, 1: subtract the largest score before exp, and add it to the logarithm.
# partial_attention, 2: where a query sees nothing, subtract 0 and divide by 1.
# partial_attention, 3: scores.max(axis=-1, initial=-np.inf) also works without keys.

# merge_attention, 1: the log-sums are scores, one for each part: this is a softmax over the parts.
# merge_attention, 2: 0 times NaN is NaN: exchange the outputs that count for nothing first.

# zigzag, 1: reshape 0 .. length - 1 to (2 R, ...); blocks[::-1] has the last block first.

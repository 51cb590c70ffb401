"""Attention, and the Transformer that the encodings live in."""

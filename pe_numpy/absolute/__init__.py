"""Place 1, the token vector: absolute positional encodings, added to (or woven into) embeddings."""

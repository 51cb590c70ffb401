"""Place 2, queries and keys: rotary encodings, which turn both before they meet."""

"""Homework: copy a reference function, check your own, and learn which mistake was made."""

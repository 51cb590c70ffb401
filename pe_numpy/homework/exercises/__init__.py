"""The exercises: for each function its cases and the mistakes that people make in it."""

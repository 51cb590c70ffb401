"""What makes the book: its listings, figures, toys and cards, and the commands that draw."""

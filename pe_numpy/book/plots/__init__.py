"""The figures of the book: one module per chapter, of its stem; one function per figure.

Data in, a matplotlib figure out. These are the only modules that import matplotlib. A function
computes nothing but what it draws: its chapter brings the data. What all share is in `style`.
"""

"""Places 3 and 4, the score of a pair and the weighted sum: schemes that look at the distance."""

"""Released models, one page each, of this package's functions; `load` reads their weights."""

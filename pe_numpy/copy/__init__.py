"""Functions copied out of the package: one file with what they need, whole or plain."""

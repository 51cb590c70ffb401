"""Gradients of plain NumPy, and what training needs: losses, optimiser, checkpoints, tasks."""

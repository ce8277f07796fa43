"""Hansa: independent clusters that act as one. Start reading at `bootstrap.py` and the rooms beside it."""

__version__ = "0.1.0"

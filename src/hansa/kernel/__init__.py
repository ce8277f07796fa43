"""Words everyone shares: error kinds, quantities, the clock. Imports nothing of ours."""

from hansa.kernel import clock, errors, quantities

__all__ = ["clock", "errors", "quantities"]

"""Puts the manager together: `building` makes the `App`, `doctor` says beforehand what this machine can carry.

Nothing else in Hansa knows every concrete class.
"""

from hansa.bootstrap.app import App, about, default_provider
from hansa.bootstrap.building import AlreadyRunning, opened
from hansa.bootstrap.doctor import Check, doctor

__all__ = ["AlreadyRunning", "App", "Check", "about", "default_provider", "doctor", "opened"]

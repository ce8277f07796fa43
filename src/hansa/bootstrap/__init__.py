"""Puts manager and hub together: `building` and `hub` make them, `doctor` says what this machine can carry.

Nothing else in Hansa knows every concrete class.
"""

from hansa.bootstrap import data_folder, memory, open_files, parts_here
from hansa.bootstrap.app import App, about, default_provider
from hansa.bootstrap.building import AlreadyRunning, opened
from hansa.bootstrap.doctor import doctor
from hansa.bootstrap.finding import Check
from hansa.bootstrap.hub import HubApp, Work, opened_hub, restore_hub
from hansa.bootstrap.leading import turn

__all__ = [
    "AlreadyRunning",
    "App",
    "Check",
    "HubApp",
    "Work",
    "about",
    "data_folder",
    "default_provider",
    "doctor",
    "memory",
    "open_files",
    "opened",
    "opened_hub",
    "parts_here",
    "restore_hub",
    "turn",
]

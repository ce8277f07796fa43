"""Saving a hub."""

from hansa.messages import Request


class NewBackup(Request, frozen=True, kw_only=True):
    passphrase: str  # what the key of the hub's secrets is locked with in the file

"""How patient and how forgetful is the verifier? The numbers of this driver, each with its trade-off."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    leeway: float = 10.0
    """Seconds by which clocks may differ; more forgives worse clocks and lets expired tokens live longer."""
    keys_fresh: float = 600.0
    """Seconds after which an issuer's keys are read again: how long a withdrawn key goes on working."""
    unknown_key_pause: float = 10.0
    """Seconds between two reloads that unknown key ids may cause, whoever sends them."""
    retry_pause: float = 5.0
    """Seconds an issuer that did not answer is left alone."""
    time_limit: float = 5.0
    """Seconds one question to an issuer may take altogether."""
    answer_limit: int = 256 * 1024
    """Bytes an issuer may answer."""
    remembered_tokens: int = 10_000
    """Verified tokens kept at once, some 500 bytes each."""
    incomplete_for: float = 30.0
    """Seconds until userinfo is asked again after it did not answer for a token that does without."""

"""Where may things run? What every placement policy allows; asked by whoever places, and by the dry run."""

from collections.abc import Iterable

from hansa.federation import selectors
from hansa.federation.policies.rules import PlacementRules
from hansa.federation.registry import Known


def refusal(policies: Iterable[tuple[str, PlacementRules]], known: Known) -> str:
    """Why nothing may be placed there, by the first policy that says so; empty if all allow it."""
    for name, rules in policies:
        if rules.forbidden.strip() and selectors.parse(rules.forbidden).matches(known):
            return f"{name} forbids {rules.forbidden.strip()}"
        if not selectors.parse(rules.allowed).matches(known):
            return f"{name} allows only {rules.allowed.strip()}"
    return ""

"""Which clusters may talk to which? What every network policy lets pass; asked by the mesh, and by the dry run."""

from collections.abc import Iterable

from hansa.federation import selectors
from hansa.federation.policies.rules import NetworkRule, NetworkRules
from hansa.federation.registry import Known


def refusal(policies: Iterable[tuple[str, NetworkRules]], source: Known, target: Known) -> str:
    """Why one may not call the other, by the first policy that says so; empty if all let it pass."""
    for name, rules in policies:
        number = next((at for at, rule in enumerate(rules.rules) if _means(rule, source, target)), None)
        action = rules.default if number is None else rules.rules[number].action
        if action == "deny":
            return f"{name} denies it: " + ("by default" if number is None else f"rule {number + 1}")
    return ""


def _means(rule: NetworkRule, source: Known, target: Known) -> bool:
    there = _matches(rule.source, source) and _matches(rule.target, target)
    return there or (rule.both and _matches(rule.source, target) and _matches(rule.target, source))


def _matches(selector: str, known: Known) -> bool:
    return selectors.parse(selector).matches(known)

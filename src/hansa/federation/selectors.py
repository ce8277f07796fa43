"""Which clusters are meant? The little language of `region=eu gpu>0 status=ready`, read once and asked often.

    region=eu gpu>0                 both hold: terms are joined by spaces or commas
    name~lub* zone!=a version>=1.2  * and ? in patterns; versions and quantities (500m, 8Gi) are compared as such
    state in (ready, degraded)      any of these; `state not in (…)` none of these
    not metadata.tier=gold          the opposite; a cluster without that label is meant, too
    not cordoned                    of a yes or no, the key alone is enough
    name="Lübeck, old town"         quotes around what has spaces, commas, brackets or operators in it

An empty selector means every cluster. `selector_keys` says what can be named.
"""

import functools
import re
from dataclasses import dataclass, field
from typing import NoReturn

from hansa.federation import errors, selector_keys
from hansa.federation.registry import Known
from hansa.federation.selector_keys import ALIASES, KEYS, LABEL, OPERATORS, Key, Test
from hansa.kernel import near_names
from hansa.kernel.errors import Invalid

_LONGEST = 2000
_MOST_TERMS, _MOST_VALUES = 32, 100
_BETWEEN = re.compile(r"[\s,]*")
_SPACE = re.compile(r"\s*")
_NOT = re.compile(r"not\s+(?=[A-Za-z_])")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_./-]+)?")
_AMONG = re.compile(r"\s+(not\s+)?in\s*\(")
_SIGN = re.compile(r"!=|!~|>=|<=|==|=|~|>|<")
_PLAIN = re.compile(r"[^\s,()\"=<>!~]+")
_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)"', re.S)


@dataclass(frozen=True, slots=True)
class Term:
    key: str
    sign: str
    values: tuple[str, ...]
    negated: bool = False

    def __str__(self) -> str:
        if self.sign == "in":
            return f"{self.key} {'not ' if self.negated else ''}in ({', '.join(map(_shown, self.values))})"
        return f"{'not ' if self.negated else ''}{self.key}{self.sign}{_shown(self.values[0])}"


@dataclass(frozen=True, slots=True)
class Selector:
    terms: tuple[Term, ...] = ()
    _tests: tuple[tuple[Test, bool], ...] = field(default=(), compare=False, repr=False)

    def matches(self, known: Known) -> bool:
        for test, wanted in self._tests:  # noqa: SIM110 - a generator costs more than the test itself
            if test(known) is not wanted:
                return False
        return True

    def __bool__(self) -> bool:
        """Whether it says anything: an empty one means every cluster."""
        return bool(self.terms)

    def __str__(self) -> str:
        return " ".join(map(str, self.terms))


@functools.lru_cache(512)
def parse(text: str) -> Selector:
    """Raises `BadSelector`, which says what is wrong, where, and what was perhaps meant."""
    if len(text) > _LONGEST:
        raise errors.BadSelector(f"a selector has at most {_LONGEST} characters", hint="split the question")
    reader = _Reader(text)
    terms: list[Term] = []
    tests: list[tuple[Test, bool]] = []
    while reader.more():
        begin = reader.at
        term, key = reader.term()
        terms.append(term)
        if len(terms) > _MOST_TERMS:
            reader.refuse(begin, f"there are more than {_MOST_TERMS} terms", "split the question")
        try:
            tests.append((selector_keys.test_of(key, term.sign, term.values), not term.negated))
        except Invalid as error:
            reader.refuse(begin, f"{term.key}: {error.message}", error.hint)
    return Selector(tuple(terms), tuple(tests))


class _Reader:
    """One pass over the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def more(self) -> bool:
        begin = self.at
        self._take(_BETWEEN)
        if self.at == begin and 0 < begin < len(self.text):
            self.refuse(
                begin, f"a space or comma is missing before {self._here()}", "put values with brackets in quotes"
            )
        return self.at < len(self.text)

    def term(self) -> tuple[Term, Key]:
        negated = self._take(_NOT) is not None
        begin = self.at
        found = self._take(_KEY)
        if found is None:
            self.refuse(begin, f"{self._here()} is no key", "write terms such as region=eu or gpu>0")
        name = ALIASES.get(found[0], found[0])
        key = selector_keys.key_of(name)
        if key is None:
            self.refuse(begin, f"there is no key {name[:60]!r}", _nearest(name))
        if (among := self._take(_AMONG)) is not None:
            self._allow("in", name, key, begin)
            return Term(name, "in", self._values(name), negated != (among[1] is not None)), key
        self._take(_SPACE)
        sign_at = self.at
        sign = self._take(_SIGN)
        if sign is None:
            if key.sort == "flag":
                self.at = found.end()
                return Term(name, "=", ("true",), negated), key
            self.refuse(sign_at, f"after {name} stands no operator", f"use one of {', '.join(OPERATORS[key.sort])}")
        word = "=" if sign[0] == "==" else sign[0]
        self._allow(word, name, key, sign_at)
        self._take(_SPACE)
        return Term(name, word, (self._value(name),), negated), key

    def refuse(self, at: int, what: str, hint: str) -> NoReturn:
        raise errors.BadSelector(f"at character {at + 1}: {what}", hint=hint, selector=self.text, position=at + 1)

    def _take(self, form: re.Pattern[str]) -> re.Match[str] | None:
        match = form.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def _allow(self, sign: str, name: str, key: Key, at: int) -> None:
        if sign not in OPERATORS[key.sort]:
            self.refuse(at, f"{name} cannot be asked with {sign}", f"use one of {', '.join(OPERATORS[key.sort])}")

    def _value(self, name: str) -> str:
        if (quoted := self._take(_QUOTED)) is not None:
            return re.sub(r"\\(.)", r"\1", quoted[1])
        plain = self._take(_PLAIN)
        if plain is None:
            quotes = self.text.startswith('"', self.at)
            hint = "close the quotes" if quotes else f'write {name}=value or {name}=""'
            self.refuse(self.at, f"the value of {name} is missing: {self._here()}", hint)
        return plain[0]

    def _values(self, name: str) -> tuple[str, ...]:
        values: list[str] = []
        while True:
            self._take(_BETWEEN)
            if values and self.text.startswith(")", self.at):
                self.at += 1
                return tuple(values)
            if len(values) == _MOST_VALUES:
                self.refuse(self.at, f"{name} is compared with more than {_MOST_VALUES} values", "split the question")
            values.append(self._value(name))

    def _here(self) -> str:
        rest = self.text[self.at : self.at + 20]
        return repr(rest) if rest else "the end"


def _shown(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _nearest(name: str) -> str:
    """What was perhaps meant."""
    known = [*KEYS, *ALIASES]
    if close := near_names.nearest(name.lower(), known):
        return f"did you mean {close}?"
    return f"use {LABEL}<label> for a label, or one of {', '.join(sorted(known))}"

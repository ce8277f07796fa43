"""How is YAML from somebody else read without harm? Bounded in size, in depth, and in what its aliases grow to.

An alias (`*name`) costs a few characters and stands for everything behind its anchor (`&name`). Nine lines of aliases
to aliases can mean a billion values: not in memory, where they are one object, but for whoever walks through them next.
So each node is weighed with its aliases written out. Whoever reads YAML uses `BoundedLoader`, or `load`.
"""

from typing import Any

import yaml

LARGEST_TEXT = 2**20  # characters; a second or so for a parser written in Python
LARGEST_MEANING = 8 * 2**20  # characters, with every alias written out
DEEPEST = 100
_EACH = 8  # what a value weighs besides its text


class BoundedLoader(yaml.SafeLoader):
    """A `SafeLoader` that refuses, with a `yaml.YAMLError`, what is too large to be meant."""

    def __init__(self, text: str) -> None:
        if len(text) > LARGEST_TEXT:
            raise yaml.YAMLError(f"it is longer than {LARGEST_TEXT} characters")
        super().__init__(text)
        self._weights: dict[yaml.Node, int] = {}
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            place = self._place()
            node = super().compose_node(parent, index)
            if node is not None and node not in self._weights:  # we are still inside of it
                raise _refusal("nested without end: an alias (*) stands inside its own anchor (&)", place)
            return node
        place = self._place()
        self._depth += 1
        if self._depth > DEEPEST:
            raise _refusal(f"nested more than {DEEPEST} deep", place)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if node is not None:
            self._weights[node] = weight = self._weigh(node)
            if weight > LARGEST_MEANING:
                raise _refusal(
                    f"with its aliases (*) written out it is longer than {LARGEST_MEANING} characters", place
                )
        return node

    def _place(self) -> Any:
        return self.peek_event().start_mark  # type: ignore[no-untyped-call]

    def _weigh(self, node: yaml.Node) -> int:
        if isinstance(node, yaml.ScalarNode):
            return _EACH + len(node.value)
        if isinstance(node, yaml.MappingNode):
            return _EACH + sum(self._weights[key] + self._weights[value] for key, value in node.value)
        return _EACH + sum(self._weights[value] for value in node.value)


def load(text: str) -> Any:
    """One document; raises `yaml.YAMLError`."""
    return yaml.load(text, Loader=BoundedLoader)  # noqa: S506 - a SafeLoader


def _refusal(problem: str, place: Any) -> yaml.YAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=place)

"""Does every module say which question it answers, and does its name say what is in it?"""

import ast

from architecture import tree

# Names that hold anything and so end up holding everything.
SAYS_NOTHING = {"utils", "util", "helpers", "helper", "manager", "managers", "common", "misc"}
# One of our two roles, started as a real part for tests: here the word means what it says.
THE_ROLE = "tests/real/manager.py"


def test_every_module_opens_with_a_docstring() -> None:
    silent = [
        module.name
        for module in tree.python_modules()
        if module.syntax.body and ast.get_docstring(module.syntax) is None
    ]
    assert not silent, f"say which question each answers, and who calls it: {silent}"


def test_every_module_is_named_after_a_concept() -> None:
    vague = [
        module.name
        for module in tree.python_modules()
        if module.name != THE_ROLE and SAYS_NOTHING & {module.path.stem.removeprefix("test_"), module.path.parent.name}
    ]
    assert not vague, f"name each after the concept it holds: {vague}"

"""Is every area entered by its front door? `from hansa import services`, never `hansa.services.service`.

Behind the door an area may rearrange its files without asking anybody. Inside the same room deeper imports
are fine: that is what the files are for. The rule holds for an area from the day it builds its door.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from architecture import tree
from architecture.tree import Module


@dataclass(frozen=True)
class Door:
    """What an area offers to others, and the modules that lie behind."""

    offered: frozenset[str]
    inner: frozenset[str]


def doors() -> dict[str, Door]:
    return {
        area: Door(offered(tree.front_door(area)), frozenset(tree.inner_modules(area))) for area in tree.open_areas()
    }


def offered(front: Module) -> frozenset[str]:
    """What the front door's `__all__` says, read without running it."""
    for node in front.syntax.body:
        if isinstance(node, ast.Assign) and "__all__" in bound_names(node):
            return frozenset(ast.literal_eval(node.value))
    return frozenset()


def imports(module: Module) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything the module imports, at the top or inside a function."""
    package = ["hansa", *module.path.relative_to(tree.PACKAGE).parts[:-1]]
    for node in ast.walk(module.syntax):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = [*above, node.module] if node.module else above
            yield from ((node.lineno, ".".join([*base, alias.name])) for alias in node.names)


def goes_past_a_door(target: str, room: str, doors: Mapping[str, Door]) -> bool:
    words = target.split(".")
    if words[0] != "hansa" or len(words) < 3 or words[1] == room or words[1] not in doors:
        return False
    door, name = doors[words[1]], words[2]
    # A module that the front door itself offers is part of it; what lies inside that module is not.
    return name in door.inner and (len(words) > 3 or name not in door.offered)


def test_nobody_goes_past_a_front_door() -> None:
    built = doors()
    found = [
        f"{module.name}:{line} imports {target}"
        for module in tree.product_modules()
        for line, target in imports(module)
        if goes_past_a_door(target, module.room, built)
    ]
    assert not found, "enter by the front door (`from hansa import <area>`):\n" + "\n".join(found)


@pytest.mark.parametrize("area", tree.open_areas())
def test_a_front_door_gives_a_tour_and_says_what_it_offers(area: str) -> None:
    front = tree.front_door(area)
    assert ast.get_docstring(front.syntax), f"{front.name} opens with a short tour of the area"
    names = offered(front)
    assert names, f"{front.name} lists in a literal __all__ what the area offers"
    bound = {name for node in front.syntax.body for name in bound_names(node)}
    assert names <= bound, f"{front.name} offers what it does not have: {sorted(names - bound)}"


def bound_names(node: ast.stmt) -> set[str]:
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {alias.asname or alias.name.split(".")[0] for alias in names}
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
    return set()


@pytest.mark.parametrize(
    ("target", "past"),
    [
        ("hansa.storage", False),
        ("hansa.storage.Bucket", False),
        ("hansa.storage.visibility", False),
        ("hansa.storage.visibility.PRIVATE", True),
        ("hansa.storage.bucket", True),
        ("hansa.storage.bucket.Bucket", True),
        ("hansa.mesh.routes.Route", False),  # mesh has built no door yet
        ("hansa.kernel.errors.NotFound", False),
        ("os.path.join", False),
    ],
)
def test_the_rule_itself(target: str, past: bool) -> None:
    doors = {"storage": Door(frozenset({"Bucket", "visibility"}), frozenset({"bucket", "visibility"}))}
    assert goes_past_a_door(target, "services", doors) is past
    assert goes_past_a_door(target, "storage", doors) is False

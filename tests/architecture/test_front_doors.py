"""Is every area entered by its front door? `from hansa import services`, never `hansa.services.service`.

Behind the door an area may rearrange its files without asking anybody. Inside the same room deeper imports
are fine: that is what the files are for.
"""

import ast
from collections.abc import Iterator

import pytest

from architecture import tree
from architecture.tree import Module


def inner_imports(module: Module) -> Iterator[tuple[int, str]]:
    """Line and target of every import that goes past the front door of another room's area."""
    package = ["hansa", *module.path.relative_to(tree.PACKAGE).parts[:-1]]
    for node in ast.walk(module.syntax):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, node.module] if node.module else above)
            targets = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in targets:
            if goes_past_the_door(target, module.room):
                yield node.lineno, target


def goes_past_the_door(target: str, room: str) -> bool:
    words = target.split(".")
    if words[0] != "hansa" or len(words) < 3 or words[1] == room or words[1] not in tree.AREAS:
        return False
    area, name = words[1], words[2]
    # A module that the front door itself offers is part of it; what lies inside that module is not.
    return name in tree.inner_modules(area) and (len(words) > 3 or name not in offered(area))


def offered(area: str) -> set[str]:
    """What the front door's `__all__` says, read without running it."""
    for node in tree.front_door(area).syntax.body:
        if isinstance(node, ast.Assign) and any(is_all(target) for target in node.targets):
            return set(ast.literal_eval(node.value))
    return set()


def is_all(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id == "__all__"


def test_nobody_goes_past_a_front_door() -> None:
    found = [
        f"{module.name}:{line} imports {target}"
        for module in tree.product_modules()
        for line, target in inner_imports(module)
    ]
    assert not found, "enter by the front door (`from hansa import <area>`):\n" + "\n".join(found)


@pytest.mark.parametrize("area", tree.open_areas())
def test_a_front_door_gives_a_tour_and_says_what_it_offers(area: str) -> None:
    door = tree.front_door(area)
    assert ast.get_docstring(door.syntax), f"{door.name} opens with a short tour of the area"
    names = offered(area)
    assert names, f"{door.name} lists in a literal __all__ what the area offers"
    bound = {name for node in door.syntax.body for name in bound_names(node)}
    assert names <= bound, f"{door.name} offers what it does not have: {sorted(names - bound)}"


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
        ("hansa.storage.ports", True),
        ("hansa.storage.ports.ObjectStore", True),
        ("hansa.storage.ObjectStore", False),
        ("hansa.kernel.errors.NotFound", False),
        ("os.path.join", False),
    ],
)
def test_the_rule_itself(target: str, past: bool) -> None:
    assert goes_past_the_door(target, room="services") is past
    assert goes_past_the_door(target, room="storage") is False

"""A fact is the last value somebody set, after a restart, too."""

from hansa.store import Database
from hansa.store.facts import Facts


async def test_the_last_value_counts(database: Database) -> None:
    facts = Facts(database)
    assert await facts.get("allowed_image_repositories") is None
    await facts.set("allowed_image_repositories", ["a", "ä"])
    await facts.set("allowed_image_repositories", [])
    await facts.set("other", {"a": None})
    assert await Facts(database).get("allowed_image_repositories") == []
    assert await facts.get("other") == {"a": None}

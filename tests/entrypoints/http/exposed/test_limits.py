"""Are slots given back, and does nobody get more than their share?"""

from contextlib import ExitStack

import pytest

from hansa.entrypoints.http.exposed.limits import ServiceCrowded, Slots, TooManyVisits


def test_one_address_has_its_share_and_gives_it_back() -> None:
    slots = Slots("calls", per_address=2, per_service=3)
    with ExitStack() as held:
        for _ in range(2):
            held.enter_context(slots.taken("page", "10.0.0.1"))
        with pytest.raises(TooManyVisits), slots.taken("page", "::ffff:10.0.0.1"):
            pass
        held.enter_context(slots.taken("page", "10.0.0.2"))
        with pytest.raises(ServiceCrowded), slots.taken("page", "10.0.0.3"):
            pass
        with slots.taken("other", "10.0.0.1"):  # another service is another matter
            pass
    with slots.taken("page", "10.0.0.1"):
        pass
    assert not slots._by_address
    assert not slots._by_service


def test_a_failure_gives_it_back_too() -> None:
    slots = Slots("calls", per_address=1, per_service=1)
    with pytest.raises(ValueError, match="broken"), slots.taken("page", "a"):
        raise ValueError("broken")
    with slots.taken("page", "a"):
        pass


def test_of_all_services_together_nobody_gets_more_than_is_left() -> None:
    slots = Slots("WebSockets", per_address=9, per_service=99, in_all=10)
    with ExitStack() as held:
        for number in range(5):
            held.enter_context(slots.taken(f"page-{number}", "10.0.0.1"))
        with (
            pytest.raises(ServiceCrowded, match="no more than that are left for all others"),
            slots.taken("page-9", "10.0.0.1"),
        ):
            pass
        for number in range(2):
            held.enter_context(slots.taken(f"page-{number}", "10.0.0.2"))
    with slots.taken("page-9", "10.0.0.1"):
        pass
    assert (slots._taken, len(slots._everywhere)) == (0, 0)

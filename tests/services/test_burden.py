"""How much may be open for one owner at other clusters?"""

import pytest

from hansa.services import Burden, bounds
from hansa.services.burden import MOST_KEPT, MOST_UNDOING, TooMuchToUndo, check_begin, check_keep


def test_a_create_begins_while_few_earlier_ones_are_taken_back() -> None:
    check_begin(Burden(MOST_UNDOING - 1, MOST_KEPT))
    with pytest.raises(TooMuchToUndo, match="100 earlier changes") as refused:
        check_begin(Burden(MOST_UNDOING, 0))
    assert "wait until the members answer" in refused.value.hint


def test_what_was_there_is_kept_while_there_is_room() -> None:
    check_keep(Burden(MOST_UNDOING, 0), MOST_KEPT)
    check_keep(Burden(0, MOST_KEPT - 10), 10)
    with pytest.raises(TooMuchToUndo, match=r"\(4Mi\) cannot be kept .* \(30Mi of 32Mi\)") as refused:
        check_keep(Burden(0, 30 * 2**20), 4 * 2**20)
    assert "delete the service there" in refused.value.hint


def test_a_definition_of_any_size_that_a_manager_takes_can_be_kept_at_several_members() -> None:
    assert 4 * bounds.LARGEST <= MOST_KEPT

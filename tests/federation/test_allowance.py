"""Much at once, then so often a second."""

from hansa.federation.allowance import Allowance


def test_what_is_used_up_comes_back_with_time_and_not_without_end() -> None:
    allowed = Allowance(3, 0.5)
    assert [allowed.spend(100.0) for _ in range(4)] == [True, True, True, False]
    assert [allowed.spend(102.0) for _ in range(2)] == [True, False]
    assert [allowed.spend(90.0) for _ in range(2)] == [False, False]  # a clock that was set back
    assert [allowed.spend(9000.0) for _ in range(4)] == [True, True, True, False]

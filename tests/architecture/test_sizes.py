"""Are files still small enough to be one idea each? A long file is usually two of them in one room."""

from statistics import median, quantiles

from architecture import tree

HEALTHY_LINES = 350
LONGEST_LINES = 500
MEDIAN_LINES = 200


def test_no_file_is_two_ideas_long() -> None:
    long = {module.name: module.lines for module in tree.python_modules() if module.lines > LONGEST_LINES}
    assert not long, f"split by concept what is past {LONGEST_LINES} lines: {long}"


def test_nine_files_in_ten_are_small() -> None:
    lines = [module.lines for module in tree.product_modules()]
    ninth_tenth = quantiles(lines, n=10)[-1]
    assert ninth_tenth <= HEALTHY_LINES, f"one product file in ten is past {ninth_tenth:.0f} lines"
    assert median(lines) <= MEDIAN_LINES

"""Numbers as text: three significant digits, thousands separated, medians with their range."""

from decimal import Decimal
from statistics import median

NOTHING = "–"


def three(value):
    """A number rounded to three significant digits: 0.0236, 74.3, 3,810."""
    if value is None:
        return NOTHING
    if value == 0:
        return "0"
    rounded = Decimal(f"{value:.2e}")
    return f"{rounded:,f}" if abs(rounded) < 100 else f"{int(rounded):,}"


def whole(value):
    """A count, exact."""
    return NOTHING if value is None else f"{value:,}"


def median_of(values):
    """The median of the present values, or `None`."""
    values = [v for v in values if v is not None]
    return median(values) if values else None


def with_range(values):
    """The median and, in brackets, the least and the greatest."""
    values = [v for v in values if v is not None]
    if not values:
        return NOTHING
    if len(values) == 1:
        return three(values[0])
    return f"{three(median(values))} [{three(min(values))}–{three(max(values))}]"

"""Quantities as text: what is shown can be read again, and what is no quantity is refused."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel import units
from perfmodel.errors import PerfmodelError

DIMENSIONS = ("B", "s", "B/s", "flop/s", "flop")
LIMITS = {"B": (1, 1e20), "s": (1e-12, 1e6), "B/s": (1e-12, 1e20), "flop/s": (1e-12, 1e20), "flop": (1e-12, 1e20)}


@st.composite
def quantities(draw):
    """A dimension and a value of it that `show` has prefixes for."""
    unit = draw(st.sampled_from(DIMENSIONS))
    return draw(st.floats(*LIMITS[unit])), unit


@given(quantities(), st.integers(3, 9))
def test_what_is_shown_is_read_again_within_its_digits(quantity, digits):
    value, unit = quantity
    shown = units.show(value, unit, digits=digits)
    assert units.parse(shown, unit) == pytest.approx(value, rel=0.51 * 10 ** (1 - digits))


@given(st.floats(1e-3, 1e3), st.sampled_from(["k", "M", "G", "T", "P", "E"]))
def test_a_decimal_prefix_is_a_power_of_1000(number, prefix):
    factor = 1000.0 ** (" kMGTPE".index(prefix))
    assert units.parse(f"{number!r} {prefix}B/s", "B/s") == pytest.approx(number * factor, rel=1e-12)


@pytest.mark.parametrize(("power", "prefix"), list(enumerate(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"], start=1)))
def test_a_binary_prefix_is_a_power_of_1024(power, prefix):
    assert units.parse(f"3 {prefix}B", "B") == 3 * 2 ** (10 * power)
    assert units.show(3 * 2.0 ** (10 * power), "B") == f"3 {prefix}B"


@pytest.mark.parametrize(("power", "prefix"), [(1, "m"), (2, "u"), (2, "µ"), (3, "n"), (4, "p")])
def test_a_small_prefix_is_a_power_of_a_thousandth(power, prefix):
    assert units.parse(f"5 {prefix}s", "s") == pytest.approx(5 * 1000.0**-power)


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("25 GB/s", "B/s", 25e9),
        ("200 Gbit/s", "B/s", 25e9),
        ("200Gb/s", "B/s", 25e9),
        ("  1555   GB/s ", "B/s", 1555e9),
        ("40 GiB", "B", 42949672960),
        ("81559 MiB", "B", 85520809984),
        ("312 Tflop/s", "flop/s", 312e12),
        ("312 TFLOP/s", "flop/s", 312e12),
        ("1.5e3 s", "s", 1500),
        ("2 min", "s", 120),
        ("1 h", "s", 3600),
        ("4", "1", 4),
        ("4.", "1", 4),
        ("-4", "1", -4),
        ("+0.5", "1", 0.5),
    ],
)
def test_quantities_as_people_write_them(text, unit, value):
    assert units.parse(text, unit) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "unit", "told"),
    [
        ("", "B", "is not a number with a unit, for example 40 GB or 40 GiB"),
        ("fast", "B/s", "is not a number with a unit"),
        ("GB", "B", "is not a number with a unit"),
        ("1,000 GB", "B", "is not a number with a unit"),
        ("1 000 GB", "B", "is not a number with a unit"),
        ("1_000 GB", "B", "is not a number with a unit"),
        (".5 GB", "B", "is not a number with a unit"),
        ("nan", "1", "is not a number with a unit"),
        ("inf B", "B", "is not a number with a unit"),
        ("0x10", "1", "is not a number with a unit"),
        ("٤ GB", "B", "is not a number with a unit"),
        ("1e9999 B", "B", "is not a number with a unit"),
        ("1e999 B", "B", "is too large to be meant"),
        ("1e308 EB", "B", "is too large to be meant"),
        ("40 gb", "B", "has the unknown unit 'gb'"),
        ("40 GX", "B", "has the unknown unit 'GX'"),
        ("40 XB", "B", "has the unknown unit 'XB'"),
        ("40 /s", "B/s", "has the unknown unit '/s'"),
        ("2 kmin", "s", "has the unknown unit 'kmin'"),
        ("2 Mh", "s", "has the unknown unit 'Mh'"),
        ("25 GB", "B/s", "is in B, wanted B/s (for example 25 GB/s or 200 Gbit/s)"),
        ("25 GB/s", "B", "is in B/s, wanted B (for example 40 GB or 40 GiB)"),
        ("25", "B", "is in no unit, wanted B"),
        ("25 B", "1", "is in B, wanted no unit (for example 4)"),
        ("5 s", "B", "is in s, wanted B"),
        pytest.param(f"1{' ' * 1_000_000}B", "B", "is not a number with a unit", id="blanks"),
        pytest.param("9" * 1_000_000, "1", "is not a number with a unit", id="digits"),
    ],
)
def test_what_is_no_quantity_is_refused(text, unit, told):
    with pytest.raises(PerfmodelError) as caught:
        units.parse(text, unit)
    assert told in str(caught.value)


@given(st.text(), st.sampled_from([*DIMENSIONS[:4], "1"]))
def test_any_text_is_a_finite_number_or_our_own_error(text, unit):
    try:
        value = units.parse(text, unit)
    except PerfmodelError:
        return
    assert math.isfinite(value)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.0, "B", "0 B"),
        (1.0, "B", "1 B"),
        (1023.0, "B", "1023 B"),
        (1024.0, "B", "1 KiB"),
        (85520809984.0, "B", "79.6 GiB"),
        (25e9, "B/s", "25 GB/s"),
        (999.6e6, "B/s", "1000 MB/s"),
        (0.0, "s", "0 s"),
        (6e-7, "s", "600 ns"),
        (1e-15, "s", "1e-15 s"),
        (90000.0, "s", "90000 s"),
        (-2.5e9, "B/s", "-2.5 GB/s"),
        (312e12, "flop/s", "312 Tflop/s"),
        (math.inf, "s", "inf s"),
        (math.nan, "B/s", "nan B/s"),
    ],
)
def test_quantities_are_shown_with_the_prefix_that_fits(value, unit, shown):
    assert units.show(value, unit) == shown


@given(quantities())
def test_no_number_is_shown_longer_than_needed(quantity):
    assert len(units.show(*quantity).split()[0].lstrip("-")) <= 7

"""A small GPT learns the project's own pages, byte by byte, and every grid learns them alike."""

from pathlib import Path

import numpy as np
import pytest

from gloo.reading import curves
from gloo.spawn import on_ranks

GRIDS = [(2, 2, 1, 1), (1, 1, 2, 2), (2, 1, 2, 1)]
STEPS, FEW = 200, 20
PIECE = 64  # bytes

pytestmark = pytest.mark.checkout


@pytest.fixture(scope="module")
def text():
    """The pages, as bytes, in pieces drawn at random: a step reads some of every page, and not a table of dashes."""
    pages = sorted((Path(__file__).parents[3] / "docs").glob("*.md"))
    whole = np.frombuffer(b"".join(page.read_bytes() for page in pages), np.uint8)
    pieces = whole[: len(whole) // PIECE * PIECE].reshape(-1, PIECE)
    return np.random.default_rng(0).permutation(pieces).ravel()


@pytest.fixture(scope="module")
def found(text, tmp_path_factory):
    """Loss curves by (grid, dtype)."""
    path = tmp_path_factory.mktemp("text") / "pages.npy"
    np.save(path, text.astype(np.uint16))
    alone = [((1, 1, 1, 1), dtype, STEPS) for dtype in ("float64", "float32")]
    split = [(grid, "float64", STEPS) for grid in GRIDS]
    split += [(GRIDS[-1], "float32", STEPS), (GRIDS[-1], "bfloat16", FEW)]
    losses = curves(0, path, alone) + on_ranks(4, curves, path, split)[0]
    return {(grid, dtype): np.array(one) for (grid, dtype, _), one in zip(alone + split, losses, strict=True)}


def test_every_grid_has_the_loss_curve_of_one_process(found):
    for grid in GRIDS:
        assert found[grid, "float64"] == pytest.approx(found[(1, 1, 1, 1), "float64"], abs=1e-9), grid


def test_in_fp32_too_as_far_as_training_itself_does_not_magnify_rounding(found):
    """Where the text is a line of one sign, gradients vanish and AdamW divides noise by noise: 1e-6 grows to 1e-3."""
    split, one = found[GRIDS[-1], "float32"], found[(1, 1, 1, 1), "float32"]
    assert split[:FEW] == pytest.approx(one[:FEW], abs=1e-5)
    assert split == pytest.approx(one, abs=0.05)


def test_the_loss_falls_from_that_of_a_guess_to_that_of_who_knows_how_frequent_bytes_are(found, text):
    curve, shares = found[(1, 1, 1, 1), "float32"], np.unique(text, return_counts=True)[1] / len(text)
    assert curve[0] == pytest.approx(np.log(256), abs=0.1)
    assert curve[-20:].mean() == pytest.approx(-(shares * np.log(shares)).sum(), abs=0.3)


def test_bf16_products_with_an_fp32_copy_learn_as_fp32_does(found):
    full, half = found[(1, 1, 1, 1), "float32"][:FEW], found[GRIDS[-1], "bfloat16"]
    assert half == pytest.approx(full, abs=0.01)
    assert half[-1] < half[0] - 0.5

"""Who trains on which tokens, and what a token file may be."""

import numpy as np
import pytest
import torch

from perfmodel.errors import PerfmodelError, UsageError
from perfmodel.launch.training.groups import Axis, Grid
from perfmodel.launch.training.ledger import Ledger
from perfmodel.launch.training.tokens import Drawn, TokenFile, batches
from perfmodel.parallel import ranks
from perfmodel.parallel.layout import Layout


def places(sizes):
    """Every rank's place in a grid, without groups."""
    layout = Layout.of(sizes)
    array = ranks.rank_array(layout)
    for place in np.ndindex(array.shape):
        axes = {
            name: Axis(name=name, size=size, place=at)
            for name, size, at in zip(("x", "y", "z", "data"), sizes, place, strict=True)
        }
        yield Grid(
            layout=layout,
            rank=int(array[place]),
            x=axes["x"],
            y=axes["y"],
            z=axes["z"],
            replicas=axes["data"],
            xy=Axis(name="xy"),
            ledger=Ledger(),
        )


def text(tmp_path, length, name="text.npy", dtype=np.uint16):
    path = tmp_path / name
    np.save(path, np.arange(length, dtype=dtype))
    return path


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (2, 1, 2, 1), (1, 2, 2, 2), (1, 1, 1, 4), (1, 1, 4, 1)])
@pytest.mark.parametrize("accumulation", [1, 2])
def test_every_grid_trains_on_the_same_sequences_in_each_micro_step(sizes, accumulation):
    source, found = Drawn(vocabulary=2**30, length=4), [set() for _ in range(accumulation)]
    for grid in places(sizes):
        mine = batches(source, grid, batch=8, accumulation=accumulation, step=3)
        for micro_step, (tokens, targets) in enumerate(mine):
            assert torch.equal(tokens[:, 1:], targets[:, :-1])
            found[micro_step] |= {tuple(row) for row in tokens.tolist()}
    whole = source.read(24, 8)[:, :-1].tolist()
    share = 8 // accumulation
    for micro_step, sequences in enumerate(found):
        assert sequences == {tuple(row) for row in whole[micro_step * share : (micro_step + 1) * share]}


def test_drawn_tokens_fill_the_vocabulary_evenly_and_depend_on_the_seed():
    tokens = Drawn(vocabulary=10, length=9).read(0, 1000)
    assert torch.bincount(tokens.flatten(), minlength=10).min() > 800
    assert not torch.equal(tokens, Drawn(vocabulary=10, length=9, seed=1).read(0, 1000))


def test_a_sequence_of_a_file_starts_where_the_one_before_ended_and_the_first_follows_the_last(tmp_path):
    source = TokenFile(text(tmp_path, 12), vocabulary=12, length=4)
    assert source.read(0, 3).tolist() == [[0, 1, 2, 3, 4], [4, 5, 6, 7, 8], [0, 1, 2, 3, 4]]


def test_bare_numbers_are_read_by_the_name_of_the_file(tmp_path):
    for name, dtype in (("a.uint16", "<u2"), ("a.uint32", "<u4")):
        np.arange(9, dtype=dtype).tofile(tmp_path / name)
        assert TokenFile(tmp_path / name, vocabulary=9, length=8).read(5, 1).tolist() == [list(range(9))]


def test_a_batch_that_ranks_cannot_share_is_refused():
    for batch in (6, 2):
        with pytest.raises(UsageError, match="wanted a multiple of 4"):
            batches(Drawn(9, 4), next(places((1, 1, 2, 2))), batch=batch, accumulation=1, step=0)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("text.bin", b"1234", "wanted .npy, .uint16 or .uint32"),
        ("text.npy", b"1234", "cannot be read as tokens"),
        ("text.npy", b"", "cannot be read as tokens"),
        ("text.uint16", b"123", "cannot be read as tokens"),
        ("text.uint16", b"1234", "has 2 tokens; a sequence of 4 needs 5"),
        ("text.uint32", b"\xff" * 20, "holds token 4294967295; the model's vocabulary ends at 255"),
    ],
)
def test_what_is_no_token_file_is_refused(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(PerfmodelError, match=message):
        TokenFile(path, vocabulary=256, length=4).read(0, 1)


def test_an_archive_by_the_name_of_a_vector_is_refused(tmp_path):
    np.savez(tmp_path / "text.npz", tokens=np.arange(9, dtype=np.uint16))
    (tmp_path / "text.npz").rename(tmp_path / "text.npy")
    with pytest.raises(PerfmodelError, match="judging by its content"):
        TokenFile(tmp_path / "text.npy", vocabulary=256, length=4)


def test_a_missing_file_and_a_file_of_other_numbers_are_refused(tmp_path):
    with pytest.raises(PerfmodelError, match="cannot be read as tokens"):
        TokenFile(tmp_path / "none.npy", vocabulary=256, length=4)
    with pytest.raises(PerfmodelError, match="float64 of shape"):
        TokenFile(text(tmp_path, 9, dtype=np.float64), vocabulary=256, length=4)

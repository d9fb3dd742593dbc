"""Frameworks as records."""

import pytest

from perfmodel.frameworks import loading, records


@pytest.mark.parametrize("name", loading.names())
def test_every_trait_names_a_source_that_is_listed(name):
    found = records.record(loading.load(name))
    assert found["traits"]
    for trait in found["traits"]:
        assert trait["source"] in found["sources"], trait
        assert trait["kind"] == found["sources"][trait["source"]]["kind"]


def test_the_summary_names_what_is_sharded_and_hidden():
    found = records.summary(loading.load("megatron-lm"))
    assert found["sharded_over_data"] == "optimizer"
    assert found["axes"] == "x,data"
    assert records.summary(loading.load("axonn-nanogpt"))["hidden"] == "nothing"

"""Any job on any grid, as Hypothesis draws them: models, machines and settings that differ in every respect."""

from dataclasses import fields, replace

import numpy as np
from hypothesis import strategies as st

from machines import EVERY_SHAPE, four_layers, gpt, job, linears, script_machine
from perfmodel.parallel.enumeration import placed
from perfmodel.parallel.layout import PLACEMENTS

MODELS = (
    gpt(),
    gpt(tied=False, kv_heads=4, gated=True, rms_norm=True, bias=False, vocabulary=50257),
    gpt(query_key_norm=True, head_bias=True, norms=4, embedding_norm=True),
    linears(*four_layers(960), repeat=3),
    linears(*four_layers(512), checkpointed=False),
)
MACHINES = (*EVERY_SHAPE, script_machine("perlmutter"), script_machine("frontier"))
LINEARS = st.sampled_from(MODELS[3:])  # models of nothing but linear layers
CHOICES = st.fixed_dictionaries(
    {
        "optimizer": st.sampled_from(["adamw", "sgd"]),
        "flash_attention": st.booleans(),
        "dropout": st.booleans(),
        "data_gradient_bytes": st.sampled_from([None, 2, 4]),
        "vocabulary_multiple": st.sampled_from([0, 1, 128]),
    }
)


def jobs(*fidelities):
    """Jobs at one of the fidelities."""
    return st.builds(
        lambda model, where, fidelity, chosen: job(model, where, batch=720, fidelity=fidelity, **chosen),
        st.sampled_from(MODELS),
        st.sampled_from(MACHINES),
        st.sampled_from(fidelities),
        CHOICES,
    )


JOBS = jobs("full", "flat", "paper")
COUNTS = st.sampled_from([1, 2, 3, 4, 6, 8, 12, 16, 24, 36, 48, 60, 72, 144, 192, 720, 1000])


@st.composite
def layouts(draw, gpus=COUNTS):
    """Many layouts of one count, every column different."""
    grids = placed(draw(gpus), tuple(range(len(PLACEMENTS))))
    rows = draw(st.lists(st.integers(0, len(grids.x) - 1), min_size=1, max_size=8))
    grids = grids.take(np.array(rows))
    columns = {"micro_batch": [1, 2, 3, 5], "recompute": [0, 1, 2], "weight_cache": [0, 1, 2]}
    drawn = {
        name: np.array(draw(st.lists(st.sampled_from(values), min_size=len(rows), max_size=len(rows))))
        for name, values in columns.items()
    }
    return replace(grids, **drawn)


@st.composite
def one_layout(draw, gpus=COUNTS):
    """A single layout, of plain ints."""
    return draw(layouts(gpus)).take(0)


def terms(record):
    """The fields of a record by name."""
    return {field.name: getattr(record, field.name) for field in fields(record)}

"""Random questions that the launch code can be asked: a small decoder, a grid that keeps the rules, how it is run."""

import random
from dataclasses import replace

from machines import figure, machine
from perfmodel.machines.machine import DtypeRates
from perfmodel.models.model import Transformer
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.rules import complaints, grid_rules
from perfmodel.parallel.settings import Settings

MOST_RANKS = 32768


def in_dtype(name):
    """A machine whose products run in that format."""
    found = machine()
    rates = DtypeRates(**{name: figure(100e12)})
    return replace(found, device=replace(found.device, peak=rates, gemm=rates))


def case(seed):
    """(job, layout); sizes are powers of two times small odd numbers, so that many grids divide them."""
    drawn = random.Random(seed)  # noqa: S311 - no secret
    while True:
        model = decoder(drawn)
        axes = [2 ** drawn.randint(0, most) for most in (3, 3, 7, 7)]
        layout = Layout.of(
            axes,
            placement=drawn.randrange(24),
            micro_batch=drawn.choice((1, 1, 2, 4)),
            recompute=drawn.randrange(3),
            weight_cache=drawn.randrange(3),
        )
        batch = int(layout.z * layout.data * layout.micro_batch) * drawn.choice((1, 2, 2, 3))
        chosen = {
            "flash_attention": drawn.random() < 0.7,
            "vocabulary_multiple": drawn.choice((1, 16, 128)),
        }
        question = Job.of(model, in_dtype(drawn.choice(("bf16", "fp32"))), batch=batch, settings=Settings(**chosen))
        if int(layout.gpus) <= MOST_RANKS and not complaints(grid_rules(question), layout):
            return question, layout


def decoder(drawn):
    """A decoder of one to three layers."""
    kv_heads, shared, width = drawn.choice((1, 2, 4, 8)), drawn.choice((1, 1, 2, 3)), drawn.choice((32, 64))
    heads, sequence = kv_heads * shared, drawn.choice((64, 128, 256))
    hidden = drawn.choice((heads * width, 256, 512))
    return Transformer(
        layers=drawn.randint(1, 3),
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=width,
        feed_forward=drawn.choice((2, 3, 4)) * hidden,
        vocabulary=drawn.randint(1000, 8000),
        sequence=sequence,
        gated=drawn.random() < 0.5,
        rms_norm=drawn.random() < 0.5,
        bias=drawn.random() < 0.5,
        norms=drawn.choice((1, 2, 2, 4)),
        query_key_norm=drawn.random() < 0.3,
        embedding_norm=drawn.random() < 0.3,
        learned_positions=sequence if drawn.random() < 0.5 else 0,
        tied=drawn.random() < 0.5,
        head_bias=drawn.random() < 0.3,
    ).model("drawn")

"""A residual block of a U-Net on ranks beside the same in plain torch."""

import torch
from torch.nn.functional import conv2d, group_norm, silu

from gloo.trained import whole
from perfmodel.launch.layers.convolution import ResidualBlock
from perfmodel.launch.training.gradients import Gradients
from perfmodel.launch.training.groups import Grid, join_features
from perfmodel.launch.training.parameters import hold
from perfmodel.launch.training.plan import Plan
from perfmodel.models.layers import Linear, Norm
from perfmodel.models.model import Block
from perfmodel.parallel.layout import Layout

IMAGES, SIDE, GROUPS = 4, 5, 4


def block(inputs, outputs, kernel):
    """The records of a residual block; a skip convolution where the width changes."""
    records = [
        Norm(name="first norm", width=inputs),
        Linear(name="first convolution", inputs=inputs, outputs=outputs, kernel=kernel),
        Norm(name="second norm", width=outputs),
        Linear(name="second convolution", inputs=outputs, outputs=outputs, transposed=True, kernel=kernel),
    ]
    if inputs != outputs:
        records.append(Linear(name="skip convolution", inputs=inputs, outputs=outputs))
    return Block(name="block", layers=tuple(records))


def deviations(rank, cases):
    """For each (grid, inputs, outputs, kernel), relative differences in output and gradients, by name."""
    return [_deviation(Grid.of(Layout.of(sizes), rank), *rest) for sizes, *rest in cases]


def _deviation(grid, inputs, outputs, kernel):
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(IMAGES, SIDE, SIDE, inputs, generator=generator, dtype=torch.float64)
    push = torch.randn(IMAGES, SIDE, SIDE, outputs, generator=generator, dtype=torch.float64)
    plan, record = Plan.of(grid), block(inputs, outputs, kernel)
    mine = ResidualBlock(plan, record, groups=GROUPS)
    flat = hold(mine, device=torch.device("cpu"), dtype=torch.float64)
    for held in flat.held:  # zeros and ones would hide faults
        held.values.data += 0.1 * held.piece.over_rows.part(torch.arange(1.0, held.piece.rows + 1), 0).mean()
    parameters = {
        held.piece.name.removeprefix("block."): whole(held, held.values.detach(), grid).requires_grad_()
        for held in flat.held
    }
    sums = Gradients(flat, grid)
    own = _own(grid, images).requires_grad_()
    plan.schedule.begin()
    found = mine(own)
    found.backward(_own(grid, push))
    plan.schedule.finish()
    sums.finish()
    images.requires_grad_()
    expected = _dense(parameters, images, kernel)
    expected.backward(push)
    pairs = {"output": (_all(grid, found.detach()), expected), "input": (_all(grid, own.grad), images.grad)}
    for held in flat.held:
        name = held.piece.name.removeprefix("block.")
        pairs[name] = whole(held, held.gradient, grid), parameters[name].grad
    return {name: ((one - other).norm() / other.norm()).item() for name, (one, other) in pairs.items()}


def _dense(parameters, images, kernel):
    images = images.permute(0, 3, 1, 2)
    hidden = images
    for which in ("first", "second"):
        scale, shift = (parameters[f"{which} norm.{one}"][:, 0] for one in ("scale", "shift"))
        hidden = _convolved(parameters, which, silu(group_norm(hidden, GROUPS, scale, shift)), kernel)
    skip = _convolved(parameters, "skip", images, 1) if "skip convolution.weight" in parameters else images
    return (hidden + skip).permute(0, 2, 3, 1)


def _convolved(parameters, which, images, kernel):
    weight, bias = (parameters[f"{which} convolution.{one}"] for one in ("weight", "bias"))
    shaped = weight.view(len(weight), images.shape[1], kernel, kernel)
    return conv2d(images, shaped, bias[:, 0], padding=kernel // 2)


def _own(grid, images):
    """This rank's images, and its channels."""
    return grid.y.part(grid.z.part(grid.replicas.part(images, 0), 0), 3).clone()


def _all(grid, images):
    channels = join_features(grid.y, images.flatten(0, -2)).view(*images.shape[:-1], -1)
    for axis in (grid.z, grid.replicas):
        channels, pending = axis.all_gather(channels)
        pending.wait()
    return channels

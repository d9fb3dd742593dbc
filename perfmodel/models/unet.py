"""The U-Net of the 4D paper, as convolutions: a weight of kernel^2 * inputs * outputs applied at every position.

Four levels of width C, 2C, 2C, 2C, the image area quartered from one to the next. A residual block is a normal 3x3
convolution and a transposed one, with a parallel 1x1 convolution if the width changes. The upward path joins the
outputs kept on the downward path, as in Dhariwal and Nichol 2021 (arXiv 2105.05233). Left out as negligible: the
convolutions from and to the three colours, the time embedding, attention at the deep levels.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from perfmodel.models.layers import Activation, Layer, Linear, Norm, positive
from perfmodel.models.model import Block, Model

_WIDTHS = (1, 2, 2, 2)
_MIDDLE = 2


@dataclass(frozen=True, slots=True)
class UNet:
    """A U-Net of width `channels` for square images of `image` pixels per side; a position plays the role of a token.

    >>> UNet(channels=4096, image=64).model("unet-28b").parameters
    28807696384
    """

    channels: int
    image: int
    residual_blocks: int = 2

    def __post_init__(self) -> None:
        """Sizes are positive."""
        positive(channels=self.channels, image=self.image, residual_blocks=self.residual_blocks)

    @property
    def positions(self) -> int:
        """Positions of the image at full size, the `sequence` of the model."""
        return self.image**2

    def model(self, name: str) -> Model:
        """The same as blocks of layers, with equal neighbours merged."""
        blocks = []
        for block, same in groupby(self._blocks()):
            blocks.append(replace(block, repeat=len(list(same))))
        return Model(name=name, sequence=self.positions, blocks=tuple(blocks))

    def _blocks(self) -> Iterator[Block]:
        kept = [_WIDTHS[0]]
        current = _WIDTHS[0]
        for level, width in enumerate(_WIDTHS):
            for _ in range(self.residual_blocks):
                yield self._residual(f"down {level}", level, current, width)
                current = width
                kept.append(width)
            if level < len(_WIDTHS) - 1:
                kept.append(width)
        for _ in range(_MIDDLE):
            yield self._residual("middle", len(_WIDTHS) - 1, current, current)
        for level, width in reversed(list(enumerate(_WIDTHS))):
            for _ in range(self.residual_blocks + 1):
                yield self._residual(f"up {level}", level, current + kept.pop(), width)
                current = width

    def _residual(self, name: str, level: int, inputs: int, outputs: int) -> Block:
        """A residual block; widths in units of `channels`."""
        wide, narrow, share = inputs * self.channels, outputs * self.channels, 0.25**level
        layers: tuple[Layer, ...] = (
            Norm(name="first norm", width=wide, positions=share, grouped=True),
            Activation(name="first activation", width=wide, positions=share),
            Linear(name="first convolution", inputs=wide, outputs=narrow, kernel=3, positions=share),
            Norm(name="second norm", width=narrow, positions=share, grouped=True),
            Activation(name="second activation", width=narrow, positions=share),
            Linear(
                name="second convolution", inputs=narrow, outputs=narrow, transposed=True, kernel=3, positions=share
            ),
        )
        if wide != narrow:
            layers += (Linear(name="skip convolution", inputs=wide, outputs=narrow, positions=share),)
        return Block(name=f"{name}, {inputs} to {outputs}", layers=layers)

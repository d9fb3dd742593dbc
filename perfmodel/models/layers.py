"""The layers a model is made of: their sizes, exact parameters and forward FLOPs.

X, Y, Z are the tensor dimensions of the paper (AxoNN: X = row, `G_intra_r`; Y = column, `G_intra_c`; Z = depth).
A normal linear layer splits its inputs over Y and its outputs over X; a transposed one exchanges the two, so that
normal and transposed layers alternate without moving activations (arXiv 2502.08145, section V-A).
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from perfmodel.errors import PerfmodelError
from perfmodel.units import Flops, Number

_LARGEST = 2**31


def positive(**sizes: float) -> None:
    """Refuse sizes out of range, with their names."""
    for name, size in sizes.items():
        if not 0 < size <= _LARGEST:
            raise PerfmodelError(f"{name} is {size}, wanted a number greater than 0 and at most {_LARGEST}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """A fully connected layer, or a convolution: a weight of kernel^2 * inputs * outputs applied at every position.

    `positions`: positions per token of the sequence (1, except in a U-Net, whose deeper levels have fewer).
    `shared`: it reads the same input as an earlier layer of the block, which keeps it (an MLP parallel to attention).
    """

    name: str
    inputs: int
    outputs: int
    transposed: bool = False
    bias: bool = True
    kernel: int = 1
    positions: float = 1.0
    shared: bool = False

    def __post_init__(self) -> None:
        """Sizes are positive."""
        positive(inputs=self.inputs, outputs=self.outputs, kernel=self.kernel, positions=self.positions)

    @property
    def weight(self) -> int:
        """Elements of the weight."""
        return self.kernel**2 * self.inputs * self.outputs

    @property
    def parameters(self) -> int:
        """Weight and bias."""
        return self.weight + self.replicated

    @property
    def replicated(self) -> int:
        """Parameters that Z does not shard (the bias)."""
        return self.outputs if self.bias else 0

    def flops(self, tokens: Number) -> Flops:
        """FLOPs of one forward pass over `tokens` tokens: 2 * tokens * positions * weight."""
        return 2.0 * self.weight * self.positions * tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Scaled dot-product attention; `kv_heads` < `heads` is grouped-query attention. Heads are split over X.

    `query_key_norm`: a scale for queries and one for keys, each of one head's width and shared by all heads.
    """

    name: str
    heads: int
    kv_heads: int
    head_dim: int
    query_key_norm: bool = False

    def __post_init__(self) -> None:
        """Every key-value head serves the same number of heads."""
        positive(heads=self.heads, kv_heads=self.kv_heads, head_dim=self.head_dim)
        if self.heads % self.kv_heads:
            raise PerfmodelError(f"{self.heads} heads are not a multiple of {self.kv_heads} key-value heads")
        positive(width=self.heads * self.head_dim)

    @property
    def parameters(self) -> int:
        """Scales of the query and key norms, which every GPU holds; mostly none."""
        return 2 * self.head_dim if self.query_key_norm else 0

    def flops(self, tokens: Number, sequence: int) -> Flops:
        """FLOPs of one forward pass: 4 * tokens * sequence * heads * head_dim, without exploiting the causal mask.

        Two products (scores, and scores by values) over the full square, as in the paper's formula (the s / 6h term).
        """
        return 4.0 * self.heads * self.head_dim * sequence * tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Norm:
    """LayerNorm (scale and shift) or RMSNorm (scale) over `width` features, split as the layer before left them.

    `grouped`: over groups of features that no axis splits (GroupNorm), so ranks exchange no statistics.
    """

    name: str
    width: int
    bias: bool = True
    positions: float = 1.0
    grouped: bool = False

    def __post_init__(self) -> None:
        """Sizes are positive."""
        positive(width=self.width, positions=self.positions)

    @property
    def parameters(self) -> int:
        """Scale, and shift if there is one; replicated over Z, data and the axis that does not split the features."""
        return self.width * (2 if self.bias else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """GELU or similar over `width` features, split as a norm's; gated (SwiGLU): two inputs of `width`, one output."""

    name: str
    width: int
    gated: bool = False
    positions: float = 1.0
    parameters: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Sizes are positive."""
        positive(width=self.width, positions=self.positions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding:
    """Token table (vocabulary rows split over X*Y, the rest over Z) and learned positions (features split over Y)."""

    name: str
    vocabulary: int
    width: int
    learned_positions: int = 0

    def __post_init__(self) -> None:
        """Sizes are positive."""
        positive(vocabulary=self.vocabulary, width=self.width)
        if self.learned_positions:
            positive(learned_positions=self.learned_positions)

    @property
    def parameters(self) -> int:
        """Token table and position table."""
        return (self.vocabulary + self.learned_positions) * self.width


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The projection to the vocabulary; tied = it uses the embedding's table."""

    name: str
    vocabulary: int
    width: int
    tied: bool = True
    bias: bool = False

    def __post_init__(self) -> None:
        """Sizes are positive."""
        positive(vocabulary=self.vocabulary, width=self.width)

    @property
    def parameters(self) -> int:
        """Elements of its own table, and bias."""
        return (0 if self.tied else self.vocabulary * self.width) + (self.vocabulary if self.bias else 0)

    def flops(self, tokens: Number) -> Flops:
        """FLOPs of one forward pass: 2 * tokens * width * vocabulary."""
        return 2.0 * self.width * self.vocabulary * tokens


Layer: TypeAlias = Linear | Attention | Norm | Activation | Embedding | Head

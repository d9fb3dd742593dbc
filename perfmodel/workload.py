"""What is trained: a model as blocks of layers with shapes, their exact parameters and FLOPs.

X, Y, Z are the paper's tensor dimensions (AxoNN: X = row, `G_intra_r`; Y = column, `G_intra_c`; Z = depth, `G_intra_d`).
A normal linear layer splits its inputs over Y and its outputs over X; a transposed one exchanges the two, so that
normal and transposed layers alternate without moving activations (arXiv 2502.08145, section V-A).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from perfmodel.errors import PerfmodelError
from perfmodel.units import Flops, Number


def _positive(**sizes: float) -> None:
    for name, size in sizes.items():
        if not 0 < size < 2**53:
            raise PerfmodelError(f"{name} is {size}, wanted a number greater than 0")


@dataclass(frozen=True, slots=True)
class Linear:
    """A fully connected layer, or a convolution: a weight of kernel^2 * inputs * outputs applied at every position.

    `positions` is the number of positions per token of the sequence (1 but in a U-Net, whose deeper levels have fewer).
    """

    name: str
    inputs: int
    outputs: int
    transposed: bool = False
    bias: bool = True
    kernel: int = 1
    positions: float = 1.0

    def __post_init__(self) -> None:
        """Sizes are positive."""
        _positive(inputs=self.inputs, outputs=self.outputs, kernel=self.kernel, positions=self.positions)

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


@dataclass(frozen=True, slots=True)
class Attention:
    """Scaled dot-product attention; `kv_heads` < `heads` is grouped-query attention. Heads are split over X."""

    name: str
    heads: int
    kv_heads: int
    head_dim: int
    parameters: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Every key-value head serves the same number of heads."""
        _positive(heads=self.heads, kv_heads=self.kv_heads, head_dim=self.head_dim)
        if self.heads % self.kv_heads:
            raise PerfmodelError(f"{self.heads} heads are not a multiple of {self.kv_heads} key-value heads")

    def flops(self, tokens: Number, sequence: int) -> Flops:
        """FLOPs of one forward pass: 4 * tokens * sequence * heads * head_dim, the causal mask not exploited.

        Two products (scores, and scores by values) over the full square, as in the paper's formula (s / 6h term).
        """
        return 4.0 * self.heads * self.head_dim * sequence * tokens


@dataclass(frozen=True, slots=True)
class Norm:
    """LayerNorm (scale and shift) or RMSNorm (scale only) over `width` features, which are split over Y."""

    name: str
    width: int
    bias: bool = True
    positions: float = 1.0

    def __post_init__(self) -> None:
        """Sizes are positive."""
        _positive(width=self.width, positions=self.positions)

    @property
    def parameters(self) -> int:
        """Scale, and shift if there is one; replicated over X, Z and data."""
        return self.width * (2 if self.bias else 1)


@dataclass(frozen=True, slots=True)
class Activation:
    """GELU and the like over `width` features; gated (SwiGLU): two inputs of `width`, one output. Split over X."""

    name: str
    width: int
    gated: bool = False
    positions: float = 1.0
    parameters: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Sizes are positive."""
        _positive(width=self.width, positions=self.positions)


@dataclass(frozen=True, slots=True)
class Embedding:
    """Token table (vocabulary rows split over X*Y, the rest over Z) and learned positions (features split over Y)."""

    name: str
    vocabulary: int
    width: int
    learned_positions: int = 0

    def __post_init__(self) -> None:
        """Sizes are positive."""
        _positive(vocabulary=self.vocabulary, width=self.width, learned_positions=self.learned_positions + 1)

    @property
    def parameters(self) -> int:
        """Token table and position table."""
        return (self.vocabulary + self.learned_positions) * self.width


@dataclass(frozen=True, slots=True)
class Head:
    """The projection to the vocabulary; tied = it uses the embedding's table."""

    name: str
    vocabulary: int
    width: int
    tied: bool = True

    def __post_init__(self) -> None:
        """Sizes are positive."""
        _positive(vocabulary=self.vocabulary, width=self.width)

    @property
    def parameters(self) -> int:
        """Elements of its own table."""
        return 0 if self.tied else self.vocabulary * self.width

    def flops(self, tokens: Number) -> Flops:
        """FLOPs of one forward pass: 2 * tokens * width * vocabulary."""
        return 2.0 * self.width * self.vocabulary * tokens


Layer: TypeAlias = Linear | Attention | Norm | Activation | Embedding | Head


@dataclass(frozen=True, slots=True)
class Block:
    """Layers that repeat together. A checkpointed block keeps only its input under full recomputation."""

    name: str
    layers: tuple[Layer, ...]
    repeat: int = 1
    checkpointed: bool = True

    def __post_init__(self) -> None:
        """A block has layers and occurs."""
        _positive(repeat=self.repeat, layers=len(self.layers))


@dataclass(frozen=True, slots=True)
class Transformer:
    """A decoder in the field's words; `blocks` spells it out as layers.

    >>> gpt = Transformer(layers=24, hidden=4096, heads=32, vocabulary=51200, sequence=2048, learned_positions=2048)
    >>> gpt.model("gpt-5b").parameters
    5051228160
    """

    layers: int
    hidden: int
    heads: int
    vocabulary: int
    sequence: int
    kv_heads: int | None = None
    head_dim: int | None = None
    feed_forward: int | None = None
    gated: bool = False
    rms_norm: bool = False
    bias: bool = True
    qkv_bias: bool | None = None
    learned_positions: int = 0
    tied: bool = True

    def __post_init__(self) -> None:
        """Sizes are positive and heads divide the width unless head_dim is given."""
        _positive(
            layers=self.layers, hidden=self.hidden, heads=self.heads, vocabulary=self.vocabulary, sequence=self.sequence
        )
        if self.head_dim is None and self.hidden % self.heads:
            raise PerfmodelError(
                f"hidden {self.hidden} is no multiple of {self.heads} heads; give head_dim if that is meant"
            )

    @property
    def head_width(self) -> int:
        """Features of one head."""
        return self.head_dim if self.head_dim is not None else self.hidden // self.heads

    @property
    def feed_forward_width(self) -> int:
        """Width between the two MLP layers, 4 * hidden unless given."""
        return self.feed_forward if self.feed_forward is not None else 4 * self.hidden

    def model(self, name: str) -> "Model":
        """The same as blocks of layers."""
        kv_heads = self.kv_heads if self.kv_heads is not None else self.heads
        query, width = self.heads * self.head_width, self.feed_forward_width
        qkv_bias = self.bias if self.qkv_bias is None else self.qkv_bias
        decoder = (
            Norm("attention norm", self.hidden, bias=not self.rms_norm),
            Linear("qkv", self.hidden, query + 2 * kv_heads * self.head_width, bias=qkv_bias),
            Attention("attention", self.heads, kv_heads, self.head_width),
            Linear("attention output", query, self.hidden, transposed=True, bias=self.bias),
            Norm("mlp norm", self.hidden, bias=not self.rms_norm),
            Linear("mlp up", self.hidden, width * (2 if self.gated else 1), bias=self.bias),
            Activation("activation", width, gated=self.gated),
            Linear("mlp down", width, self.hidden, transposed=True, bias=self.bias),
        )
        first = Embedding("embedding", self.vocabulary, self.hidden, self.learned_positions)
        last = (
            Norm("final norm", self.hidden, bias=not self.rms_norm),
            Head("head", self.vocabulary, self.hidden, self.tied),
        )
        blocks = (
            Block("embedding", (first,), checkpointed=False),
            Block("decoder", decoder, repeat=self.layers),
            Block("head", last, checkpointed=False),
        )
        return Model(name, self.sequence, blocks, self)


@dataclass(frozen=True, slots=True)
class Model:
    """A model: blocks of layers, in order, and the sequence length it is trained at unless told otherwise."""

    name: str
    sequence: int
    blocks: tuple[Block, ...]
    transformer: Transformer | None = None

    def __post_init__(self) -> None:
        """A model has blocks and at least one linear layer."""
        _positive(sequence=self.sequence, blocks=len(self.blocks))
        if not any(isinstance(layer, Linear) for _, layer in self.layers()):
            raise PerfmodelError(f"model {self.name} has no linear layer, so there is nothing to split")

    def layers(self) -> Iterator[tuple[Block, Layer]]:
        """Every distinct layer with its block (whose `repeat` says how often it occurs)."""
        for block in self.blocks:
            for layer in block.layers:
                yield block, layer

    @property
    def parameters(self) -> int:
        """Exact count, vocabulary not padded."""
        return sum(block.repeat * layer.parameters for block, layer in self.layers())

    def forward_flops(self, sequence: int) -> float:
        """FLOPs of one forward pass over one sequence, head included."""
        return self.block_flops(sequence) + self.head_flops(sequence)

    def block_flops(self, sequence: int) -> float:
        """Forward FLOPs of one sequence that full recomputation repeats: those of checkpointed blocks."""
        return sum(
            block.repeat * _flops(layer, sequence) for block, layer in self.layers() if block.checkpointed
        )

    def head_flops(self, sequence: int) -> float:
        """Forward FLOPs of one sequence outside the checkpointed blocks."""
        return sum(
            block.repeat * _flops(layer, sequence) for block, layer in self.layers() if not block.checkpointed
        )

    def attention_flops(self, sequence: int) -> float:
        """Forward FLOPs of one sequence that selective recomputation repeats."""
        return sum(
            block.repeat * _flops(layer, sequence) for block, layer in self.layers() if isinstance(layer, Attention)
        )


def _flops(layer: Layer, sequence: int) -> float:
    if isinstance(layer, Attention):
        return float(layer.flops(sequence, sequence))
    return float(layer.flops(sequence)) if isinstance(layer, (Linear, Head)) else 0.0


def closed_form_parameters(*, layers: int, hidden: int, vocabulary: int, sequence: int) -> float:
    """Parameters of a GPT by the paper's formula: 12 l h^2 (1 + 13/(12 h) + (V + s)/(12 l h)).

    Counts weights and biases of the four layers, two norms a block, token and position tables; not the final norm.
    Source: Narayanan et al. 2021, eq. 2, as used by AxoNN's training script. Valid for GELU, MHA, tied head.

    >>> closed_form_parameters(layers=24, hidden=4096, vocabulary=51200, sequence=2048) / 1e9
    5.0512
    """
    shape = 12.0 * layers * hidden**2
    return shape * (1 + 13 / (12 * hidden) + (vocabulary + sequence) / (12 * layers * hidden))


def closed_form_flops(
    *, batch: Number, sequence: int, layers: int, hidden: int, vocabulary: int, recompute: bool = True
) -> Flops:
    """FLOPs of a training step by the paper's formula: 96 B s l h^2 (1 + s/(6 h) + V/(16 l h)).

    With full recomputation (4 passes of the blocks, 3 of the head). Without it the blocks are passed 3 times:
    72 B s l h^2 (1 + s/(6 h) + V/(12 l h)). Source: Narayanan et al. 2021, eq. 3; AxoNN's training script.
    Valid for GPTs with a feed-forward of 4 h and multi-head attention; the causal mask is not exploited.

    >>> closed_form_flops(batch=512, sequence=2048, layers=24, hidden=4096, vocabulary=51200) / 1e12
    45229.510
    """
    passes, head_share = (96.0, 16) if recompute else (72.0, 12)
    shape = 1 + sequence / (6 * hidden) + vocabulary / (head_share * layers * hidden)
    return passes * batch * sequence * layers * hidden**2 * shape

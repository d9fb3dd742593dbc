"""What is trained: a model as blocks of layers with shapes, their exact parameters and FLOPs."""

from collections.abc import Iterator
from dataclasses import dataclass

from perfmodel.errors import PerfmodelError
from perfmodel.models.layers import Activation, Attention, Embedding, Head, Layer, Linear, Norm, positive
from perfmodel.units import Flops, Number

__all__ = [
    "Activation",
    "Attention",
    "Block",
    "Embedding",
    "Head",
    "Layer",
    "Linear",
    "Model",
    "Norm",
    "Transformer",
    "closed_form_flops",
    "closed_form_parameters",
]

# Integers up to here are exact as float64, which is what bytes and FLOPs become.
_MOST_PARAMETERS = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Layers that repeat together. A checkpointed block keeps only its input under full recomputation."""

    name: str
    layers: tuple[Layer, ...]
    repeat: int = 1
    checkpointed: bool = True

    def __post_init__(self) -> None:
        """A block has at least one layer and one repeat."""
        positive(repeat=self.repeat, layers=len(self.layers))

    def split(self) -> Iterator[tuple[Layer, str]]:
        """Every layer with the axis that splits the features it receives: X after a normal linear layer, else Y."""
        axis = "y"
        for layer in self.layers:
            yield layer, axis
            if isinstance(layer, (Linear, Embedding, Head)):
                axis = "x" if isinstance(layer, Linear) and not layer.transposed else "y"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """A decoder by its usual sizes; `model` expands it to layers.

    `bias` applies to all linear layers of a block; `qkv_bias` and `output_bias` override it for attention.
    `norms` per block: 2, or 1 if attention and MLP share one, or 4 if their outputs are normalised as well.

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
    output_bias: bool | None = None
    norms: int = 2
    query_key_norm: bool = False
    embedding_norm: bool = False
    learned_positions: int = 0
    tied: bool = True
    head_bias: bool = False

    def __post_init__(self) -> None:
        """Sizes are positive and heads divide the width unless head_dim is given."""
        positive(
            layers=self.layers, hidden=self.hidden, heads=self.heads, vocabulary=self.vocabulary, sequence=self.sequence
        )
        optional = {"kv_heads": self.kv_heads, "head_dim": self.head_dim, "feed_forward": self.feed_forward}
        positive(**{name: size for name, size in optional.items() if size is not None})
        if self.norms not in (1, 2, 4):
            raise PerfmodelError(f"norms is {self.norms}, wanted 1, 2 or 4 per block")
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

    @property
    def is_gpt(self) -> bool:
        """Whether the paper's closed formulas count this decoder: GELU of 4 h, multi-head, biases, tied head."""
        if self.heads * self.head_width != self.hidden:
            return False
        plain = Transformer(
            layers=self.layers,
            hidden=self.hidden,
            heads=self.heads,
            vocabulary=self.vocabulary,
            sequence=self.sequence,
            learned_positions=self.learned_positions,
        )
        return plain.model("plain").blocks == self.model("plain").blocks

    def model(self, name: str) -> "Model":
        """The same as blocks of layers."""
        first: tuple[Layer, ...] = (
            Embedding(
                name="embedding",
                vocabulary=self.vocabulary,
                width=self.hidden,
                learned_positions=self.learned_positions,
            ),
        )
        if self.embedding_norm:
            first += (self._norm("embedding norm"),)
        last = (
            self._norm("final norm"),
            Head(name="head", vocabulary=self.vocabulary, width=self.hidden, tied=self.tied, bias=self.head_bias),
        )
        blocks = (
            Block(name="embedding", layers=first, checkpointed=False),
            Block(name="decoder", layers=(*self._attention(), *self._mlp()), repeat=self.layers),
            Block(name="head", layers=last, checkpointed=False),
        )
        return Model(name=name, sequence=self.sequence, blocks=blocks, transformer=self)

    def _norm(self, name: str) -> Norm:
        return Norm(name=name, width=self.hidden, bias=not self.rms_norm)

    def _attention(self) -> Iterator[Layer]:
        kv_heads = self.kv_heads if self.kv_heads is not None else self.heads
        query, keys_and_values = self.heads * self.head_width, 2 * kv_heads * self.head_width
        qkv_bias = self.bias if self.qkv_bias is None else self.qkv_bias
        output_bias = self.bias if self.output_bias is None else self.output_bias
        yield self._norm("attention norm")
        yield Linear(name="qkv", inputs=self.hidden, outputs=query + keys_and_values, bias=qkv_bias)
        yield Attention(
            name="attention",
            heads=self.heads,
            kv_heads=kv_heads,
            head_dim=self.head_width,
            query_key_norm=self.query_key_norm,
        )
        yield Linear(name="attention output", inputs=query, outputs=self.hidden, transposed=True, bias=output_bias)
        if self.norms == 4:
            yield self._norm("attention output norm")

    def _mlp(self) -> Iterator[Layer]:
        width = self.feed_forward_width
        if self.norms != 1:
            yield self._norm("mlp norm")
        outputs = width * (2 if self.gated else 1)
        yield Linear(name="mlp up", inputs=self.hidden, outputs=outputs, bias=self.bias, shared=self.norms == 1)
        yield Activation(name="activation", width=width, gated=self.gated)
        yield Linear(name="mlp down", inputs=width, outputs=self.hidden, transposed=True, bias=self.bias)
        if self.norms == 4:
            yield self._norm("mlp output norm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model: blocks of layers, in order, and the sequence length it is trained with by default."""

    name: str
    sequence: int
    blocks: tuple[Block, ...]
    transformer: Transformer | None = None

    def __post_init__(self) -> None:
        """A model has blocks and at least one linear layer."""
        positive(sequence=self.sequence, blocks=len(self.blocks))
        if not any(isinstance(layer, Linear) for _, layer in self.layers()):
            raise PerfmodelError(f"model {self.name} has no linear layer, so there is nothing to split")
        if self.parameters > _MOST_PARAMETERS:
            raise PerfmodelError(f"model {self.name} has {self.parameters:.3g} parameters, more than can be meant")

    def layers(self) -> Iterator[tuple[Block, Layer]]:
        """Every distinct layer with its block (whose `repeat` says how often it occurs)."""
        for block in self.blocks:
            for layer in block.layers:
                yield block, layer

    @property
    def rotary(self) -> bool:
        """Whether positions rotate queries and keys: the model reads tokens, and learns no table of positions."""
        tables = [layer for _, layer in self.layers() if isinstance(layer, Embedding)]
        return bool(tables) and not any(table.learned_positions for table in tables)

    @property
    def parameters(self) -> int:
        """Exact count, vocabulary not padded."""
        return sum(block.repeat * layer.parameters for block, layer in self.layers())

    def forward_flops(self, sequence: int) -> float:
        """FLOPs of one forward pass over one sequence, head included."""
        return self.block_flops(sequence) + self.head_flops(sequence)

    def block_flops(self, sequence: int) -> float:
        """Forward FLOPs of one sequence that full recomputation repeats: those of checkpointed blocks."""
        return sum(block.repeat * layer_flops(layer, sequence) for block, layer in self.layers() if block.checkpointed)

    def head_flops(self, sequence: int) -> float:
        """Forward FLOPs of one sequence outside the checkpointed blocks."""
        return sum(
            block.repeat * layer_flops(layer, sequence) for block, layer in self.layers() if not block.checkpointed
        )

    def attention_flops(self, sequence: int) -> float:
        """Forward FLOPs of one sequence that selective recomputation repeats."""
        return sum(
            block.repeat * layer_flops(layer, sequence)
            for block, layer in self.layers()
            if isinstance(layer, Attention)
        )


def layer_flops(layer: Layer, sequence: int) -> float:
    """FLOPs of one forward pass of one layer over one sequence."""
    if isinstance(layer, Attention):
        return float(layer.flops(sequence, sequence))
    return float(layer.flops(sequence)) if isinstance(layer, (Linear, Head)) else 0.0


def closed_form_parameters(*, layers: int, hidden: int, vocabulary: int, sequence: int) -> float:
    """Parameters of a GPT by the paper's formula: 12 l h^2 (1 + 13/(12 h) + (V + s)/(12 l h)).

    Counts weights and biases of the four layers, two norms per block, token and position tables; not the final norm.
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

    With full recomputation (4 passes of the blocks, 3 of the head). Without it, 3 passes of the blocks:
    72 B s l h^2 (1 + s/(6 h) + V/(12 l h)). Source: Narayanan et al. 2021, eq. 3; AxoNN's training script.
    Valid for GPTs with a feed-forward of 4 h and multi-head attention; the causal mask is not exploited.

    >>> closed_form_flops(batch=512, sequence=2048, layers=24, hidden=4096, vocabulary=51200) / 1e12
    45229.510
    """
    passes, head_share = (96.0, 16) if recompute else (72.0, 12)
    shape = 1 + sequence / (6 * hidden) + vocabulary / (head_share * layers * hidden)
    return passes * batch * sequence * layers * hidden**2 * shape

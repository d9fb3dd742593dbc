"""Our own model files: YAML that spells out a transformer, or blocks of layers."""

from dataclasses import dataclass, fields
from pathlib import Path

from perfmodel import schema
from perfmodel.errors import PerfmodelError
from perfmodel.models.model import (
    Activation,
    Attention,
    Block,
    Embedding,
    Head,
    Layer,
    Linear,
    Model,
    Norm,
    Transformer,
)

_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerEntry:
    """One item of `layers`: a single key that says the kind, and the fields of that kind."""

    linear: Linear | None = None
    attention: Attention | None = None
    norm: Norm | None = None
    activation: Activation | None = None
    embedding: Embedding | None = None
    head: Head | None = None

    def __post_init__(self) -> None:
        """Exactly one kind."""
        if len(self._given()) != 1:
            kinds = ", ".join(entry.name for entry in fields(self))
            raise PerfmodelError(f"a layer has exactly one kind of {kinds}; this one has {len(self._given())}")

    def _given(self) -> list[Layer]:
        values = [getattr(self, entry.name) for entry in fields(self)]
        return [value for value in values if value is not None]

    @property
    def layer(self) -> Layer:
        """The layer itself."""
        return self._given()[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockEntry:
    """One item of `blocks`."""

    name: str
    layers: tuple[LayerEntry, ...]
    repeat: int = 1
    checkpointed: bool = True

    def __post_init__(self) -> None:
        """Build the block, so that its errors are reported at its line."""
        self.block()

    def block(self) -> Block:
        """The block itself."""
        return Block(
            name=self.name,
            layers=tuple(entry.layer for entry in self.layers),
            repeat=self.repeat,
            checkpointed=self.checkpointed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A file: a transformer with its sequence length, or blocks with the length beside them."""

    format: int
    name: str
    sequence: int | None = None
    transformer: Transformer | None = None
    blocks: tuple[BlockEntry, ...] = ()

    def __post_init__(self) -> None:
        """The file has one of the two forms, and it is complete."""
        if self.format != _FORMAT:
            raise PerfmodelError(f"format is {self.format}, this version reads {_FORMAT}")
        if not self.name.strip() or not self.name.isprintable():
            raise PerfmodelError(f"name is {self.name!r}, wanted some letters")
        if (self.transformer is None) == (not self.blocks):
            raise PerfmodelError("wanted either transformer or blocks")
        if self.transformer is not None and self.sequence is not None:
            raise PerfmodelError("sequence stands inside transformer, not beside it")
        if self.blocks and self.sequence is None:
            raise PerfmodelError("missing sequence, which blocks need beside them")
        self.model()

    def model(self) -> Model:
        """The model that the file describes."""
        if self.transformer is not None:
            return self.transformer.model(self.name)
        return Model(name=self.name, sequence=self.sequence or 0, blocks=tuple(entry.block() for entry in self.blocks))


def load(path: Path) -> Model:
    """Read the model at `path`, or raise every problem of the file with its line."""
    node = schema.compose(schema.read_text(path), str(path))
    return schema.build(ModelFile, node, str(path)).model()

"""Values of a Hugging Face config.json; a value of the wrong type is refused with its key."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfmodel.errors import PerfmodelError

_LARGEST = 2**31
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Config:
    """The values under one `model_type`; null counts as absent, as in the library that writes these files."""

    values: Mapping[str, object]
    # What the library assumes where a key is absent; only the text part of a larger model leaves sizes out.
    assumed: Mapping[str, int] = field(default_factory=dict)
    within: str = ""

    def size(self, *keys: str, default: int | None = None) -> int:
        """The first of `keys` that has a value, a whole number greater than 0; without a default it is required."""
        found = self.optional_size(*keys)
        if found is not None:
            return found
        if default is None:
            raise PerfmodelError(f"missing {' or '.join(self.within + key for key in keys)}")
        return default

    def optional_size(self, *keys: str) -> int | None:
        """As `size`, None where no key has a value."""
        for key in keys:
            value = self.values.get(key)
            if value is not None:
                return self._whole(key, value)
        return next((self.assumed[key] for key in keys if key in self.assumed and key not in self.values), None)

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise PerfmodelError(f"{self.within}{key} is {shown(value)}, wanted true or false")
        return value

    def text(self, key: str) -> str | None:
        """A text, or None where the key is absent."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            raise PerfmodelError(f"{self.within}{key} is {shown(value)}, wanted a text")
        return value

    def refuse(self, key: str, *, but: bool, why: str) -> None:
        """Refuse the file unless the flag `key` is `but`, which is also its default."""
        if self.flag(key, default=but) is not but:
            raise PerfmodelError(f"{self.within}{key} is {shown(not but)}: {why}")

    def _whole(self, key: str, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _LARGEST:
            raise PerfmodelError(f"{self.within}{key} is {shown(value)}, wanted a whole number from 1 to {_LARGEST}")
        return value


def shown(value: object) -> str:
    """A JSON value in a sentence, short whatever it is.

    >>> shown("4096"), shown(None), shown([1, 2]), shown(True)
    ("'4096'", 'null', 'a list', 'true')
    """
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."

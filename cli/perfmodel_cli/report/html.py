"""Elements of a page as text: whatever is not made here is escaped, so that no name from a file becomes markup."""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfmodel.errors import printable

_VOID = {"meta", "link"}
_SHORT = 24  # characters of a cell kept on one line; longer cells get a minimum width
_NAME = 20  # the same of a heading


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(value: object) -> Markup:
    """Anything as text of a page or an attribute.

    >>> escaped("<b> & 'c'")
    '&lt;b&gt; &amp; &#x27;c&#x27;'
    """
    return value if isinstance(value, Markup) else Markup(html.escape(printable(str(value))))


def element(tag: str, *content: object, **attributes: object) -> Markup:
    """An element; attributes that are None or False are left out, `_` ends or joins the words of their names.

    >>> element("td", "a < b", class_="number", data_sort=1, title=None)
    '<td class="number" data-sort="1">a &lt; b</td>'
    """
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escaped(value)}"'
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    inside = "".join(map(escaped, content))
    return Markup(f"<{tag}{given}>" if tag in _VOID else f"<{tag}{given}>{inside}</{tag}>")


def joined(parts: Iterable[object]) -> Markup:
    """Parts one after the other."""
    return Markup("".join(map(escaped, parts)))


@dataclass(frozen=True, slots=True)
class Cell:
    """What a cell shows, and the number that it is sorted by; text is sorted as text."""

    text: object
    number: float | None = None


def table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[Cell]], *, tall: bool = False) -> Markup:
    """A table that its reader can sort, in a scrolling box of its own; `tall`: it scrolls vertically, too.

    Columns in which every cell is empty are left out.
    """
    filled = [place for place in range(len(heads)) if not rows or any(row[place].text != "" for row in rows)]
    heads, rows = [heads[place] for place in filled], [[row[place] for place in filled] for row in rows]
    numbers = [any(row[place].number is not None for row in rows) for place in range(len(heads))]
    headings = [
        element("th", text, scope="col", class_=_classes(text, number))
        for text, number in zip(heads, numbers, strict=True)
    ]
    head = element("tr", *headings)
    body = [element("tr", *map(_cell, row, numbers)) for row in rows]
    made = element(
        "table", element("caption", caption), element("thead", head), element("tbody", *body), class_="sortable"
    )
    return element(
        "div", made, class_="scroll tall" if tall else "scroll", role="region", aria_label=caption, tabindex=0
    )


def _classes(heading: str, number: bool) -> str | None:
    return " ".join(["number"] * number + ["named"] * (len(heading) > _NAME)) or None


def _cell(cell: Cell, number: bool) -> Markup:
    length = len(str(cell.text))
    size = "number" if number else "short" if length <= _SHORT else "long"
    return element("td", cell.text, class_=size, data_sort=cell.number)


def notes(lines: Iterable[object]) -> Markup:
    """Paragraphs in small print."""
    return joined(element("p", line, class_="note") for line in lines)

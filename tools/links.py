"""Links of a Markdown page to files and sections of this project."""

import re
from pathlib import Path

_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
_HEADING = re.compile(r"^#{1,6} +(.+?)(?: +#+)?$", re.MULTILINE)
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:")


def links(text: str) -> list[str]:
    """Targets of the links of a page that lead to the project itself; code is no link.

    >>> links("[a](b.md#c) `[d](e)` [f](https://g) ![h](i.png)")
    ['b.md#c', 'i.png']
    """
    targets = _LINK.findall(_CODE.sub("", _FENCE.sub("", text)))
    return [target for target in targets if not _ELSEWHERE.match(target)]


def anchors(text: str) -> set[str]:
    r"""The names that GitHub gives to the headings of a page: a repeated one gets a number.

    >>> sorted(anchors("# A `b` (c), d\n## A\n## A\n"))
    ['a', 'a-1', 'a-b-c-d']
    """
    seen: dict[str, int] = {}
    names = set()
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        seen[name] = seen.get(name, -1) + 1
        names.add(f"{name}-{seen[name]}" if seen[name] else name)
    return names


def broken(page: Path) -> list[str]:
    """Links of a page that lead to no file, or to no heading of the file."""
    return [target for target in links(page.read_text(encoding="utf-8")) if not _leads_somewhere(page, target)]


def _leads_somewhere(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = page.parent / path if path else page
    if not file.exists():
        return False
    return not anchor or (file.is_file() and anchor in anchors(file.read_text(encoding="utf-8")))

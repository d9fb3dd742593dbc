"""Pages and docstrings: sentences of at most 35 words, and "per" for rates and counts."""

import ast
import re
import textwrap

import pytest

from examples import ROOT, pages

WORDS = 35
_LEFT_OUT = re.compile(
    r"""
    ^(?P<fence>[ ]*(?:```|~~~)).*?^(?P=fence)[ ]*$   # code, and what programs print
    | ^<!--[ ](?P<made>[\w-]+)\b[^\n]*-->\n.*?^<!--[ ]end[ ]-->$   # what tools write
    | ^\#{1,6}[ ][^\n]*$   # headings
    | (?<=\n\n)(?:[ ]{4}[^\n]*(?:\n|\Z))+   # equations
    | <!--.*?-->
    """,
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
_DOCTEST = re.compile(r"^[ ]*>>>[^\n]*\n?(?:[ ]*\S[^\n]*\n?)*", re.MULTILINE)
_TABLE = re.compile(r"^\|[^\n]*$", re.MULTILINE)
_PARAGRAPH = re.compile(r"\n[ ]*\n|\n[ ]*(?=(?:[-*]|\d+\.)[ ])")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"`[^`]*`")
_ABBREVIATED = r"(?<!\bEq)(?<!\bEqs)(?<!\beqs)(?<!\bfig)(?<!\bFig)(?<!\bal)(?<!\bvs)"
_END = re.compile(rf"{_ABBREVIATED}[.!?]['\")*]*\s+(?=[\"'(*`\[]*[A-Z0-9`])")
_COUNTS = (
    r"(?:(?:[kKMGTP]i?)?(?:B|bit|flop)(?:/s)?|s|bytes?|seconds?|hours?|tokens?|sequences?|samples|calls?|steps?|kernels?"
    r"|FLOPs?|parameters|elements?|numbers?|ranks?|devices|GPUs|nodes|NICs|cores?|processors|tasks|words|norms?|bits"
    r"|positions|rows|files?|buckets|messages|rings?|jobs?|grids?|lines?|dies|gathers|micro-steps|micro-batch(?:es)?)"
)
_UNITS = (
    r"(?:device|step|second|node|GPU|rank|row|token|element|call|sequence|parameter|micro-step|micro-batch|block|layer"
    r"|pass|tensor|bucket|grid|run|job|file|line|log|group|table|start|kernel|operation|framework|machine|socket|domain)"
)
_A_FOR_PER = re.compile(rf"(?:^|(?<=[\s(|~])){_COUNTS} an? {_UNITS}\b(?! (?:that|which|of|to)\b)")


def prose(text, *, tables=False):
    """The page without code, generated parts and headings, and without tables unless asked for."""
    text = _LEFT_OUT.sub("", text)
    return text if tables else _TABLE.sub("\n", text)


def sentences(text):
    """The sentences of prose; inline code and a link count by what a reader sees, code as one word."""
    for paragraph in _PARAGRAPH.split(_CODE.sub("`code`", _LINK.sub(r"\1", prose(text)))):
        yield from (" ".join(one.split()) for one in _END.split(paragraph) if one.strip())


def long_sentences(text):
    """Sentences with more words than a reader keeps in mind."""
    counted = ((len(re.findall(r"\S*\w\S*", one)), one) for one in sentences(text))
    return [f"{words} words: {one}" for words, one in counted if words > WORDS]


def a_for_per(text):
    """Places where a rate or a count says "bytes a device" for "bytes per device"."""
    flat = re.sub(r"\s+", " ", _CODE.sub("`code`", prose(text, tables=True)))
    return [flat[max(found.start() - 30, 0) : found.end() + 20] for found in _A_FOR_PER.finditer(flat)]


def docstrings(source):
    """(line, text without its doctests) of the docstrings of a module, in the order of ast.walk."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text is not None:
                yield node.body[0].lineno, _DOCTEST.sub("", text)


PAGES = [*pages(), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
MODULES = sorted(path for folder in ("perfmodel", "cli/perfmodel_cli") for path in (ROOT / folder).rglob("*.py"))


def named(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_sentences_are_short(page):
    assert long_sentences(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_rates_and_counts_say_per(page):
    assert a_for_per(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("module", MODULES, ids=named)
def test_docstrings_read_as_the_pages_do(module):
    found = docstrings(module.read_text(encoding="utf-8"))
    assert [(line, one) for line, text in found for one in (*long_sentences(text), *a_for_per(text))] == []


def test_docstrings_are_found_without_their_doctests():
    source = textwrap.dedent(
        '''
        """A module."""
        class Some:
            def method(self):
                """Bytes a device.

                >>> first(
                ...     1
                ... )
                "bytes a device"

                Afterwards.
                """
        '''
    )
    texts = [text for _, text in docstrings(source)]
    assert texts == ["A module.", "Bytes a device.\n\n\nAfterwards."]
    assert len(a_for_per("It sends b" + texts[1][1:])) == 1


def test_a_long_sentence_is_found_and_code_and_tables_are_not():
    long = " ".join(["Word"] * (WORDS + 1))
    page = f"Eq. 7 is short. {long}.\n\n```text\n{long}\n```\n\n| {long} |\n\n    {long}\n\n- `{long}` is one word."
    assert long_sentences(page) == [f"{WORDS + 1} words: {long}."]


@pytest.mark.parametrize(
    "said", ["bytes a device", "tokens a second", "2048 sequences\na step", "| calls a step |", "25 GB/s a node"]
)
def test_a_for_per_is_found(said):
    assert len(a_for_per(f"It sends {said} or so.")) == 1


@pytest.mark.parametrize("said", ["bytes per device", "a step sends a row", "it gives ranks a device that is idle"])
def test_other_articles_are_left_alone(said):
    assert a_for_per(f"Here {said}.") == []

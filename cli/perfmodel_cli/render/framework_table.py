"""A framework as a table: its traits, then their sources."""

from rich.console import Group

from perfmodel_cli.terminal.cells import Record, add_row, line, table_of


def framework(record: Record) -> Group:
    """Every trait with its source."""
    table = table_of("trait", "value", "kind", "source")
    for trait in record["traits"]:
        value = trait["value"]
        shown = "not stated" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        add_row(table, trait["trait"], shown, trait["kind"], trait["source"])
    sources = [line(f"  {key}: {_source(source)}") for key, source in record["sources"].items()]
    notes = [line(f"Note: {note}") for note in record["notes"]]
    title = line(f"{record['title']}, {record['release']}", style="bold")
    return Group(title, table, line("Sources", style="bold"), *sources, *notes)


def _source(source: Record) -> str:
    return f"{source['kind']}; {', '.join(filter(None, (source['address'], source['date'], source['note'])))}"

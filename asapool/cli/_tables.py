"""Tables on the terminal; names from files are text, never markup or control characters."""

from __future__ import annotations

from collections.abc import Sequence

from asapool.cli._output import clean


def print_grid(title: str, head: Sequence[str], lines: Sequence[Sequence[str]], *, left: int = 1) -> None:
    """Print a table; the first `left` columns are names, the others numbers."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        console = Console(width=200)  # nothing is cut off in a file or a pipe
    grid = Table(title=Text(clean(title)), title_justify="left")
    for number, name in enumerate(head):
        grid.add_column(Text(clean(name)), justify="left" if number < left else "right", overflow="fold")
    for line in lines:
        grid.add_row(*(Text(clean(cell)) for cell in line))
    console.print(grid)

"""A griffe extension: examples in docstrings become fenced blocks, so that the site shows them as code."""

from griffe import Extension


class Doctests(Extension):
    """Puts a fence around every run of lines from `>>>` to the next empty line."""

    def on_object(self, *, obj, **_):
        """Called for every documented object."""
        if obj.docstring is None or ">>>" not in obj.docstring.value:
            return
        lines, inside = [], False
        for line in obj.docstring.value.splitlines():
            if line.lstrip().startswith(">>>") and not inside:
                lines += ["", "```pycon"]
                inside = True
            elif inside and not line.strip():
                lines.append("```")
                inside = False
            lines.append(line.strip() if inside and line.lstrip().startswith(">>>") else line)
        if inside:
            lines.append("```")
        obj.docstring.value = "\n".join(lines)

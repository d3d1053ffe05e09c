"""Text from the web as one harmless line: for log lines, messages, and the terminal."""

from __future__ import annotations

import unicodedata


def one_line(value: object) -> str:
    """The text of *value* with an escape for whatever would end a line, move the cursor, hide text
    or turn its direction.
    """
    text = str(value)
    return text if text.isascii() and text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    # Cc, Cf: controls, and marks that nobody sees; Cs, Co, Cn: nothing that could be shown; Zl, Zp.
    if character != " " and unicodedata.category(character)[0] in "CZ":
        if unicodedata.category(character) == "Zs":
            return " "
        return character.encode("unicode_escape").decode()
    return character

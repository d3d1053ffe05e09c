"""What the rules of `comparison` compare with; docs/quality.md says what each is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """What the rules compare with: shares and resemblances, 0 … 1.

    The defaults are what the ablation has shown to be best. They are no settings: one of them
    alone means little.
    """

    agrees_with_main: float = 0.6
    """Where the main text matches, prose or all that is shown must resemble so much."""
    agrees_with_prose: float = 0.6
    """Where the prose matches, main text or all that is shown must resemble so much."""
    contradicts_prose: float = 0.2
    """Main texts that resemble less than this outweigh a match of the prose."""
    same_title: float = 0.6
    """Where a text is the same, the blocks of all that is shown must resemble so much."""
    other_title: float = 0.7
    """The same, where the title is another one."""
    visible_containment: float = 0.3
    """So much of what the one page shows or carries must be on the other, whatever matches."""
    site_containment: float = 0.68
    """The same on one site, of blocks in whatever order: there the templates are no excuse."""
    contained: float = 0.9
    length_ratio: float = 0.85
    """Refused: so much of the shorter text is in the longer, and the lengths differ by more than
    this. A fifth is what people call a duplicate (legal texts); here nothing of it is missing."""
    boilerplate: float = 0.5
    """Share of boilerplate in what two texts share, from which on it can be refused."""
    own_apart: int = 30
    """So many shingles of their own in texts apart make another page, on both sides."""
    own_share: float = 0.2
    """And so much of all of them; less is lost in the sketches' error."""
    own_entries: int = 8
    """So many links, or images, of their own make another list, on both sides."""
    words_an_entry: int = 10
    """Of a text that has more words for each of them, they are an appendix."""
    own_embeds: int = 1
    words_an_embed: int = 200
    """The same for embeds."""
    same_numbers: float = 0.5
    """Titles that differ in numbers only are a version, unless fewer numbers than this are shared."""


THRESHOLDS: Final = Thresholds()

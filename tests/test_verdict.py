from __future__ import annotations

import dataclasses

import pytest

from scrapy_simdup import Verdict
from scrapy_simdup.verdict import KINDS


class TestVerdict:
    @pytest.mark.parametrize("kind", KINDS)
    def test_is_a_duplicate_if_exact_or_near(self, kind):
        assert Verdict(kind=kind).is_duplicate == (kind in {"exact", "near"})

    def test_as_a_dict_says_what_a_reader_of_the_item_needs_and_not_what_is_unknown(self):
        near = Verdict(
            kind="near",
            reason="simhash",
            duplicate_of="https://example.org/a",
            distance=0,
            resemblance=0.75,
            containment=0.9,
            simhash=5,
            tokens=300,
            cluster_size=2,
        )
        assert near.as_dict() == {
            "kind": "near",
            "reason": "simhash",
            "duplicate_of": "https://example.org/a",
            "distance": 0,
            "resemblance": 0.75,
            "containment": 0.9,
        }
        assert Verdict(kind="unique", tokens=300).as_dict() == {"kind": "unique"}
        assert Verdict(kind="revisit", reason="url", change="changed").as_dict() == {
            "kind": "revisit",
            "reason": "url",
            "change": "changed",
        }

    def test_cannot_be_changed(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            Verdict(kind="unique").kind = "near"  # type: ignore[misc]

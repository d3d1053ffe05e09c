from __future__ import annotations

import json

import pytest

from scrapy_simdup.calibrate import Label, LabelsError, read_labels, settings, suggest


def label(distance, resemblance, right=True, kind="near", number=[0]):  # noqa: B006 - counts
    number[0] += 1
    return {
        "url": f"https://a/{number[0]}",
        "duplicate_of": "https://a/",
        "kind": kind,
        "distance": distance,
        "resemblance": resemblance,
        "right": right,
    }


def written(path, *labels):
    path.write_text("".join(json.dumps(one) + "\n" for one in labels))
    return [path]


CLEAR = [
    *(label(distance % 5, 0.92) for distance in range(20)),
    *(label(7, 0.82, right=False) for _ in range(8)),
    *(label(3, 0.6, kind="near_miss") for _ in range(4)),
]


def test_the_setting_that_parts_them_is_found(tmp_path):
    labels = read_labels(written(tmp_path / "labels", *CLEAR))
    best = suggest(labels, 0.99)
    assert (best.max_distance, best.min_resemblance) == (4, 0.9)
    assert (best.precision, best.recall, best.found) == (1.0, 1.0, 20)
    assert 0.8 < best.at_least < 0.85  # Wilson's interval of 20 of 20


def test_precision_is_weighed_against_recall(tmp_path):
    labels = read_labels(written(tmp_path / "labels", *CLEAR, *(label(7, 0.82) for _ in range(20))))
    assert suggest(labels, 0.99).recall == 0.5
    assert suggest(labels, 0.8).recall == 1.0


def test_the_slow_way_says_the_same():
    labels = [Label(n % 12, 0.5 + n % 10 / 20, n % 3 > 0) for n in range(100)]
    for one in settings(labels):
        chosen = [
            x
            for x in labels
            if x.distance <= one.max_distance and x.resemblance >= one.min_resemblance
        ]
        assert one.found == len(chosen)
        assert one.precision == sum(x.is_duplicate for x in chosen) / len(chosen)


def test_same_bytes_say_nothing_and_the_last_judgement_counts(tmp_path):
    one = label(3, 0.9)
    labels = read_labels(
        written(
            tmp_path / "labels", one, {**one, "right": False}, {**label(0, 1.0), "distance": None}
        )
    )
    assert labels == [Label(3, 0.9, is_duplicate=False)]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([label(1, 0.9)] * 30, "1 judged pairs, 1 of them duplicates, are too few"),
        ([label(n % 9, 0.9) for n in range(40)], "40 judged pairs, 40 of them duplicates"),
        (
            [*(label(5, 0.8) for _ in range(10)), *(label(5, 0.8, right=False) for _ in range(10))],
            "no distance and resemblance reach a precision of 0.99",
        ),
    ],
)
def test_what_suggests_nothing(tmp_path, labels, message):
    with pytest.raises(LabelsError, match=message):
        suggest(read_labels(written(tmp_path / "labels", *labels)), 0.99)


@pytest.mark.parametrize("line", ["{", "[]", "1", '{"url": 1}', '{"right": 1}'])
def test_what_is_no_label_is_named(tmp_path, line):
    (tmp_path / "labels").write_text(json.dumps(label(1, 0.9)) + f"\n\n{line}\n")
    with pytest.raises(LabelsError, match="labels', line 3 is no label"):
        read_labels([tmp_path / "labels"])

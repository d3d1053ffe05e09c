from __future__ import annotations

import dataclasses
from decimal import Decimal
from pathlib import Path

import pytest
from scrapy.settings import Settings

from scrapy_simdup import ConfigError, config
from scrapy_simdup.config import PRESETS, Config, option_docs
from scrapy_simdup.page import features, profile


class TestUnknownOptions:
    def test_an_option_that_does_not_exist_is_refused_with_the_nearest_name(self):
        with pytest.raises(ConfigError) as refused:
            Config.from_options({"max_distanse": 3})
        assert str(refused.value) == "unknown option max_distanse: did you mean max_distance?"

    def test_a_setting_that_does_not_exist_is_refused_with_the_nearest_name(self):
        with pytest.raises(ConfigError) as refused:
            Config.from_settings({"SIMDUP_MIN_RESEMBLENCE": 0.5})
        assert str(refused.value) == (
            "unknown setting SIMDUP_MIN_RESEMBLENCE: did you mean SIMDUP_MIN_RESEMBLANCE?"
        )

    def test_a_name_like_no_other_is_refused_with_all_that_are_known(self):
        with pytest.raises(
            ConfigError, match="unknown option zzz: known are action, close_on_alert, cl"
        ):
            Config.from_options({"zzz": 1})

    def test_a_setting_in_the_wrong_case_is_refused_with_the_right_name(self):
        with pytest.raises(ConfigError, match="SIMDUP_Action: did you mean SIMDUP_ACTION"):
            Config.from_settings({"SIMDUP_Action": "tag"})

    def test_an_option_is_not_known_by_the_name_of_its_setting(self):
        with pytest.raises(ConfigError, match="unknown option SIMDUP_ACTION"):
            Config.from_options({"SIMDUP_ACTION": "tag"})

    def test_config_errors_are_value_errors(self):
        with pytest.raises(ValueError):
            Config.from_options({"zzz": 1})


WRONG = {
    "enabled": ([None, "perhaps", 2, 0.5, [], "None"], "True or False"),
    "action": (
        ["delete", "Drop", "", None, 1, ["drop"], {}],
        "one of drop, drop_items, tag",
    ),
    "store": (
        [5, True, ["a"], b"a", "a\0b"],
        "a path, or None",
    ),
    "max_distance": (
        [-1, 12, 2.5, "three", "2.5", None, True, [], float("nan"), float("inf"), "9" * 400],
        "a whole number from 0 to 11",
    ),
    "min_resemblance": (
        [0, 0.0, -0.1, 1.01, 70, "70%", True, float("nan"), "nan", "inf", []],
        "a number above 0 up to 1, or None",
    ),
    "min_tokens": ([0, -1, 100_001, 1.5, "many", None, True], "a whole number from 1 to 100000"),
    "views": (
        [None, "", [], ["prose"], ["main", "text"], 5, True],
        "main, or main and prose (a list, or main,prose)",
    ),
    "scope": (["site", "ALL", "", None, True], "one of all, same-site, cross-site"),
    "cluster_links": ([-1, 0.5, "some", None, True], "a whole number ≥ 0"),
    "close_on_alert": (
        ["flood", ["one_page", "flood"], 5, [1], {"one_page"}],
        "True, False, or a list of large_cluster, one_page, duplicates, refusals, no_text",
    ),
    "keep_siblings": ([None, "maybe", 2, []], "True or False"),
    "expected_pages": (
        [0, -1, 10**11 + 1, 0.5, "all", None, True, 10**400],
        "a whole number from 1 to 100000000000",
    ),
    "weights": (["idf", "TF", "", None, 1], "one of tf, sqrt, log, binary"),
    "segmenter": (["Jieba", "", None, 1], "one of jieba, rjieba, bigrams"),
    "unify_chinese": ([None, "zh", 2, []], "True or False"),
    "extractor": ([None, "", "  ", 5, len, True], "a text that is not empty"),
    "plain_text": ([None, "maybe", 2, []], "True or False"),
    "workers": (
        [-1, 1_001, 1.5, "many", "", None, True],
        "a whole number from 0 to 1000, or auto",
    ),
    "max_worker_bytes": ([0, 99_999_999, 1.5, "1 GB", None, True], "a whole number ≥ 100000000"),
    "timeout": (
        [0, -1, 86_401, "soon", None, True, float("nan"), float("inf"), 10**400],
        "a number above 0 up to 86400",
    ),
    "max_body_bytes": ([0, -1, 1.5, "5 MB", None, True], "a whole number ≥ 1"),
    "max_store_bytes": ([0, 999_999, 1.5, "1 GB", True], "a whole number ≥ 1000000, or None"),
    "max_elements": ([0, -1, 1.5, "many", None, True], "a whole number ≥ 1"),
    "item_field": ([None, "", " ", 5, ["a"]], "a text that is not empty"),
    "item_fields": ([None, 5, [""], [1], {"a"}, {"a": 1}, ["a", None]], "a list of field names"),
    "keep_text": ([None, "maybe", 2, []], "True or False"),
    "log": (
        [True, 5, ["a"], "%(site)s.jsonl", "100%.jsonl", "%s.jsonl", "%(time)d", "a\0b"],
        (
            "a path that may hold %(spider)s and %(time)s, None for the default path, "
            "or False for no log"
        ),
    ),
    "seed": ([-1, 2**63, 1.5, "secret", None, True], f"a whole number from 0 to {2**63 - 1}"),
    "preset": (["papers", 1, True, []], "one of paper, or None"),
}


class TestValuesThatAreNotAllowed:
    def test_every_option_has_such_values_below(self):
        assert set(WRONG) == {field.name for field in dataclasses.fields(Config)}

    @pytest.mark.parametrize(
        ("name", "value", "allowed"),
        [(name, value, allowed) for name, (values, allowed) in WRONG.items() for value in values],
        ids=lambda value: repr(value)[:40],
    )
    def test_are_refused_with_the_name_the_value_and_what_is_allowed(self, name, value, allowed):
        with pytest.raises(ConfigError) as refused:
            Config.from_options({name: value})
        assert str(refused.value) == f"{name} = {value!r}: must be {allowed}"

    def test_are_shown_with_the_name_of_the_setting_where_they_came_from_settings(self):
        with pytest.raises(ConfigError) as refused:
            Config.from_settings({"SIMDUP_ACTION": "delete"})
        assert str(refused.value) == (
            "SIMDUP_ACTION = 'delete': must be one of drop, drop_items, tag"
        )

    @pytest.mark.parametrize("url", ["redis://localhost/0", "rediss://h:1", "unix:///tmp/s"])
    def test_a_shared_store_is_refused_with_the_reason(self, url):
        with pytest.raises(ConfigError, match="shared stores are not part of this version"):
            Config.from_options({"store": url})


class TestValuesThatAreAllowed:
    @pytest.mark.parametrize(
        ("name", "low", "high"),
        [
            ("max_distance", 0, 11),
            ("min_resemblance", 0.001, 1.0),
            ("min_tokens", 1, 100_000),
            ("expected_pages", 1, 10**11),
            ("timeout", 0.001, 86_400.0),
            ("seed", 0, 2**63 - 1),
        ],
    )
    def test_include_both_ends_of_a_range(self, name, low, high):
        assert getattr(Config.from_options({name: low}), name) == low
        assert getattr(Config.from_options({name: high}), name) == high

    def test_whole_numbers_of_other_types_become_integers(self):
        config = Config.from_options({"max_distance": 3.0, "min_tokens": Decimal(40)})
        assert (config.max_distance, config.min_tokens) == (3, 40)
        assert type(config.max_distance) is int

    def test_paths_become_texts(self):
        config = Config.from_options({"store": Path("a/b"), "log": Path("c.jsonl")})
        assert (config.store, config.log) == (str(Path("a/b")), "c.jsonl")

    @pytest.mark.parametrize("names", [["a", "b"], ("a", "b"), "a,b", " a , b ,"])
    def test_field_names_become_a_tuple(self, names):
        assert Config.from_options({"item_fields": names}).item_fields == ("a", "b")


class TestStringsFromTheCommandLine:
    @pytest.mark.parametrize(
        ("name", "given", "value"),
        [
            ("max_distance", "5", 5),
            ("max_distance", " 5 ", 5),
            ("min_resemblance", "0.5", 0.5),
            ("min_resemblance", "None", None),
            ("min_resemblance", "", None),
            ("enabled", "False", False),
            ("enabled", "0", False),
            ("enabled", "no", False),
            ("enabled", "off", False),
            ("enabled", "True", True),
            ("enabled", "1", True),
            ("keep_text", "on", True),
            ("timeout", "2.5", 2.5),
            ("store", "None", None),
            ("item_fields", "a,b", ("a", "b")),
            ("item_fields", "", ()),
            ("log", "False", ""),
            ("log", "None", None),
            ("preset", "none", None),
            ("seed", "9223372036854775807", 2**63 - 1),
        ],
    )
    def test_are_read_by_the_type_of_the_option(self, name, given, value):
        read = getattr(Config.from_options({name: given}), name)
        assert read == value
        assert type(read) is type(value)


class TestPresetPaper:
    def test_is_three_bits_without_verification_and_weights_by_frequency(self):
        config = Config.from_options({"preset": "paper"})
        assert (config.max_distance, config.min_resemblance, config.weights) == (3, None, "tf")

    def test_leaves_all_other_options_as_they_are(self):
        others = {
            name: value
            for name, value in Config.from_options({"preset": "paper"}).options().items()
            if name not in {*PRESETS["paper"], "preset"}
        }
        assert others.items() <= Config().options().items()

    def test_yields_to_an_option_that_is_given(self):
        config = Config.from_options(
            {"max_distance": "5", "min_resemblance": 0.9, "preset": "paper"}
        )
        assert (config.max_distance, config.min_resemblance, config.weights) == (5, 0.9, "tf")


class TestLog:
    @pytest.mark.parametrize("value", [False, "False", "0", "no", "off", ""])
    def test_false_means_no_log(self, value):
        assert Config.from_options({"log": value}).log == ""

    @pytest.mark.parametrize("value", [None, "None"])
    def test_none_means_the_default_path(self, value):
        assert Config.from_options({"log": value}).log is None

    @pytest.mark.parametrize(
        "value", ["dropped.jsonl", "logs/%(spider)s-%(time)s.jsonl", "100%%.jsonl"]
    )
    def test_a_path_may_hold_spider_and_time(self, value):
        assert Config.from_options({"log": value}).log == value


class TestFromSettings:
    def test_takes_the_simdup_keys_of_scrapy_settings_and_no_others(self):
        settings = Settings(
            {"SIMDUP_MAX_DISTANCE": 4, "SIMDUP_ITEM_FIELDS": "title,body", "MAX_DISTANCE": 99}
        )
        assert len(settings) > 100
        config = Config.from_settings(settings)
        assert config == Config(max_distance=4, item_fields=("title", "body"))

    def test_takes_the_value_of_the_highest_priority(self):
        settings = Settings({"SIMDUP_ACTION": "tag"})
        settings.set("SIMDUP_ACTION", "drop_items", priority="cmdline")
        assert Config.from_settings(settings).action == "drop_items"

    def test_without_any_is_the_default(self):
        assert Config.from_settings(Settings()) == Config() == Config.from_options({})

    def test_ignores_keys_that_are_no_strings(self):
        assert Config.from_settings({5: "a", None: "b"}) == Config()


class TestConfig:
    def test_cannot_be_changed(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            Config().max_distance = 5  # type: ignore[misc]

    def test_tells_what_differs_from_the_defaults(self):
        assert Config.from_options({"max_distance": 3, "action": "drop"}).changed() == {
            "max_distance": 3
        }

    def test_gives_back_all_options_by_name(self):
        options = Config.from_options({"seed": 7}).options()
        assert options["seed"] == 7
        assert Config.from_options({**options, "log": None}) == Config(seed=7)

    def test_defaults_pass_their_own_validation(self):
        assert Config.from_options(Config().options()) == Config()

    def test_every_option_is_documented_under_the_name_of_its_setting(self):
        documented = option_docs()
        assert [name for name, _, _ in documented] == [
            f"SIMDUP_{field.name.upper()}" for field in dataclasses.fields(Config)
        ]
        assert all(doc for _, _, doc in documented)


def test_names_of_values_are_those_of_the_core():
    # Repeated in `config`, which every Scrapy command imports, because the core brings numpy.
    assert (config.VIEWS, config.WEIGHTS, config.SEGMENTERS) == (
        profile.VIEWS,
        features.WEIGHTS,
        features.SEGMENTERS,
    )

"""docs/index.md shows what the planner says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def benchmark():
    path = ROOT / "benchmarks" / "planner.py"
    spec = importlib.util.spec_from_file_location("benchmark_of_the_planner", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_committed_table_is_what_the_planner_says():
    module = benchmark()
    text = module.DOCUMENT.read_text(encoding="utf-8")
    assert text.count("\n| ") >= 54
    assert module.document(text) == text, "run: python benchmarks/planner.py --document"

"""Plans as text, dicts and pictures."""

from __future__ import annotations

import xml.etree.ElementTree as xml

import numpy as np
import pytest

import tilewright as tw


def plan() -> tw.Array:
    x = tw.random.default_rng(0).normal(size=(400, 30))
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    return z.T @ z


def test_text_html_and_dict():
    explanation = plan().explain()
    assert "tasks" in str(explanation) and str(explanation) == repr(explanation)
    page = explanation._repr_html_()
    assert page.startswith("<svg") and "<pre>" in page
    figures = explanation.to_dict()
    assert {"tasks", "peak_bytes_max_rank", "input_passes", "chosen", "schedulers", "sections"} <= set(figures)
    assert figures["tasks"] > 0


def test_an_explanation_stays_what_it_was():
    product = plan()
    explanation = product.explain()
    before = explanation.to_dict()["tasks"]
    product.persist()
    assert explanation.to_dict()["tasks"] == before
    assert product.explain().to_dict()["tasks"] < before


def test_nothing_is_computed():
    with tw.Session(threads=1) as session:
        x = tw.asarray(np.arange(10.0))
        str(x[x > 3].sum().explain())
        assert session.report()["segments"] == 0


def test_levels():
    for level in ("line", "table", "tree", "verbose", "kernel"):
        assert str(plan().explain(level))
    with pytest.raises(ValueError, match="there is no level"):
        plan().explain("poem")


def test_the_drawing_is_a_picture_with_a_box_for_every_statement(tmp_path):
    path = tmp_path / "plan.svg"
    plan().visualize(path)
    root = xml.parse(path).getroot()
    space = "{http://www.w3.org/2000/svg}"
    boxes = root.findall(f".//{space}g/{space}rect")
    arrows = root.findall(f".//{space}path")
    assert len(boxes) >= 3 and len(arrows) >= 2
    width, height = float(root.get("width")), float(root.get("height"))
    corners = [tuple(float(box.get(key)) for key in ("x", "y", "width", "height")) for box in boxes]
    for x, y, w, h in corners:
        assert 0 <= x and x + w <= width and 0 <= y and y + h <= height
    assert len({corner[:2] for corner in corners}) == len(corners)
    assert "test_explanation.py" in path.read_text()


@pytest.mark.parametrize("name", ["plan.html", "plan.dot", "plan.gv"])
def test_other_pictures(tmp_path, name):
    plan().visualize(str(tmp_path / name))
    assert (tmp_path / name).stat().st_size > 100


def test_unknown_pictures_are_refused(tmp_path):
    with pytest.raises(ValueError, match=".svg, .html or .dot"):
        plan().visualize(str(tmp_path / "plan.png"))

"""Plans as text, dicts and pictures."""

from __future__ import annotations

import json
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


def test_several_workers_are_planned_for():
    product = plan().rechunk(10)
    explanation = product.explain(nodes=2, workers=2)
    assert "on 2 nodes of 2 workers: " in str(explanation) and "who owns" not in str(explanation)
    figures = explanation.to_dict()
    assert figures == json.loads(explanation.to_json())
    # `timed` is among them only where it saves time.
    assert set(figures["schedulers"]) - {"timed"} == {"algebraic", "pattern", "lshs", "roundrobin"}
    (piece,) = figures["machine"]["pieces"]
    assert sum(map(sum, piece["matrix"]["bytes"])) == figures["wire_bytes_total"]
    assert len(piece["lost"]) == len(figures["schedulers"]) - 1
    sending = [each for each in piece["lost"] if each["wire_bytes_max_rank"] > 0]
    assert sending and all("test_explanation.py" in each["most_sent"]["place"] for each in sending)
    owners = [owner for value in piece["owners"] for owner in value["owners"]]
    assert set(owners) <= {0, 1, 2, 3}
    lanes = piece["timeline"]["lanes"]
    assert [lane["worker"] for lane in lanes] == [0, 1, 2, 3]
    assert sum(run["tasks"] for lane in lanes for run in lane["runs"]) == figures["tasks"]
    assert product.explain(nodes=2, workers=2).to_dict()["machine"] == figures["machine"]


def test_a_scheduler_is_put_in_front():
    for scheduler in ("algebraic", "pattern", "lshs", "roundrobin"):
        explanation = plan().explain("line", nodes=3, scheduler=scheduler)
        assert explanation.to_dict()["chosen"] == scheduler
        assert str(explanation).rstrip().endswith(f"placed by {scheduler}")
    assert plan().explain(nodes=3, scheduler="auto").to_dict()["chosen"] == plan().explain(nodes=3).to_dict()["chosen"]


def test_pictures_of_several_workers():
    text = str(plan().explain(workers=3, pictures=True))
    for title in ("who owns which block", "who sends how much to whom", "who does what when"):
        assert title in text
    page = plan().explain(workers=3)._repr_html_()
    drawing = page[: page.index("<pre>")]
    root = xml.fromstring(drawing)
    width, height = float(root.get("width")), float(root.get("height"))
    titles = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text") if text.get("class") == "title"]
    assert any(title.startswith("who sends") for title in titles) and any(title.startswith("who does") for title in titles)
    for group in root:
        shift = float((group.get("transform") or "translate(0 0)").split()[1].rstrip(")"))
        for box in group.iter("{http://www.w3.org/2000/svg}rect"):
            x, y, w, h = (float(box.get(key) or 0) for key in ("x", "y", "width", "height"))
            assert 0 <= x and x + w <= width + 1 and 0 <= shift + y and shift + y + h <= height + 1


def test_pictures_of_several_workers_in_files(tmp_path):
    path = tmp_path / "plan.svg"
    plan().visualize(path, nodes=2)
    xml.parse(path)
    assert "who does what when" in path.read_text()
    plan().visualize(tmp_path / "plan.html", nodes=2, scheduler="pattern")
    assert "placed by pattern" in (tmp_path / "plan.html").read_text()


def test_a_machine_is_a_dict_or_a_file(tmp_path):
    path = tmp_path / "machine.txt"
    path.write_text("nodes = 4\nacross.bandwidth = 10GB/s\n")
    fast = plan().explain(machine=path).to_dict()["machine"]
    assert fast["nodes"] == 4
    assert plan().explain(machine={"nodes": 4, "across.bandwidth": "10GB/s"}).to_dict()["machine"]["text"] == fast["text"]
    assert plan().explain(machine=str(path), nodes=2).to_dict()["machine"]["nodes"] == 2


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"nodes": 0}, ValueError, "0 nodes"),
        ({"nodes": -1}, ValueError, "-1 is not a number of nodes"),
        ({"workers": 1 << 40}, ValueError, "not a number of workers"),
        ({"nodes": "2"}, TypeError, "integer"),
        ({"nodes": 2.0}, TypeError, "integer"),
        ({"scheduler": "lshs"}, ValueError, "give nodes"),
        ({"pictures": True}, ValueError, "give nodes"),
        ({"nodes": 2, "scheduler": "poem"}, ValueError, "no scheduler `poem`"),
        ({"machine": {"speed": 3}}, ValueError, "no `speed`"),
        ({"machine": {"memory": "1KiB", "nodes": 2}}, MemoryError, "within 1024 bytes"),
        ({"machine": "/nowhere/machine.txt"}, FileNotFoundError, "nowhere"),
    ],
)
def test_machines_that_cannot_be_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        plan().explain(**arguments)


def test_wrong_lines_of_a_machine_file_are_named(tmp_path):
    path = tmp_path / "machine.txt"
    path.write_text("nodes = 4\nflops = lots\n")
    with pytest.raises(ValueError, match=r"line 2 of the machine file `.*machine.txt`"):
        plan().explain(machine=path)


def test_two_plans_are_compared():
    draw = tw.random.default_rng
    coarse, fine = (draw(0).normal(size=(400, 30)).rechunk((rows, 30)).sum(axis=0).explain() for rows in (200, 100))
    same = coarse.diff(coarse)
    assert same.to_dict()["is_same"] and "both plans are the same" in str(same)
    change = coarse.diff(fine)
    figures = change.to_dict()
    assert not figures["is_same"] and figures["changed"]
    assert figures["a"]["figures"]["tasks"] == coarse.to_dict()["tasks"]
    assert figures["b"]["figures"]["tasks"] == fine.to_dict()["tasks"]
    assert "[200, 30] -> [100, 30]" in str(change) and str(change) == repr(change)
    assert change._repr_html_().count("<table>") == 2 and "-&gt;" in change._repr_html_()
    assert json.loads(change.to_json()) == figures


def test_schedulers_are_compared():
    # Blocks that are cut against the sums over them: something must be sent, whoever places them.
    x = tw.random.default_rng(0).normal(size=(400, 300)).rechunk((100, 100))
    product = x.T @ x
    change = product.explain(nodes=3, scheduler="lshs").diff(product.explain(nodes=3, scheduler="roundrobin"))
    assert "lshs" in change.to_dict()["a"]["name"] and "roundrobin" in change.to_dict()["b"]["name"]
    assert change.to_dict()["b"]["figures"]["wire_bytes_total"] > 0
    with pytest.raises(TypeError, match="not with str"):
        product.explain().diff("plan")

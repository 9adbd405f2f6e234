"""Plans that name lines and operations, count every byte, and stand beside what was measured."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as xml

import numpy as np
import pytest

import tilewright as tw


class Source:
    """Something with NumPy's slicing, of which no element is stored."""

    def __init__(self, shape: tuple[int, ...], chunks: tuple[int, ...], dtype: str = "f8") -> None:
        self.shape, self.chunks, self.dtype = shape, chunks, np.dtype(dtype)

    def __getitem__(self, key: tuple[slice, ...]) -> np.ndarray:
        return np.ones([len(range(*part.indices(n))) for part, n in zip(key, self.shape, strict=True)], self.dtype)


def rows(explanation: object) -> list[dict]:
    return [line for section in explanation.to_dict()["sections"] for line in section.get("lines", [])]


def test_sources_are_counted():
    x = tw.from_array(Source((1000, 500), (100, 500)))
    plan = (x + 1).sum().explain()
    assert "1 pass over 3.81 MiB of inputs" in str(plan)
    (read,) = plan.to_dict()["inputs"]
    assert (read["name"], read["bytes"], read["read_bytes"], read["passes"]) == ("Source", 4_000_000, 4_000_000, 1.0)


@pytest.mark.parametrize("dtype", ["f4", "c16", "i1", "bool"])
def test_sources_of_other_types_are_counted(dtype):
    x = tw.from_array(Source((300, 70), (50, 70), dtype))
    (read,) = x.sum(axis=0).explain().to_dict()["inputs"]
    assert read["bytes"] == read["read_bytes"] == 300 * 70 * np.dtype(dtype).itemsize


def test_parts_of_a_source_are_counted_as_parts():
    x = tw.from_array(Source((1000, 500), (100, 500)), chunks=(100, 500))
    (read,) = x[:100].sum().explain().to_dict()["inputs"]
    assert read["passes"] == pytest.approx(0.1)


def test_files_and_arrays_are_counted(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((200, 300)))
    figures = (tw.from_npy(tmp_path / "x.npy") * 2).sum().explain().to_dict()
    assert [each["read_bytes"] for each in figures["inputs"]] == [200 * 300 * 8]
    memory = np.ones((2000, 300))
    memory.flags.writeable = False
    (read,) = (tw.asarray(memory, copy=False) * 2).sum().explain().to_dict()["inputs"]
    assert read["bytes"] == read["read_bytes"] == memory.nbytes


def test_generated_blocks_are_no_inputs():
    x = tw.map_blocks(lambda block: block, tw.ones((100, 100), chunks=50), dtype="f8")
    assert x.sum().explain().to_dict()["inputs"] == []


def test_concatenation_moves_what_it_copies():
    parts = [tw.from_array(Source((1000, 100), (1000, 100))) for _ in range(40)]
    figures = tw.concatenate(parts).sum().explain().to_dict()
    size = 40 * 1000 * 100 * 8
    assert sum(each["read_bytes"] for each in figures["inputs"]) == size
    # Each byte is made, at most copied once (read and written), and read by the sum.
    assert size <= figures["moved_bytes"] <= 4.1 * size


def test_inputs_that_are_not_read_once_are_told():
    x = tw.from_array(Source((1 << 12, 1 << 10), (256, 1 << 10)))
    # Two segments need it: the mask is counted before anything is selected. It is held in between, so nothing is avoidable.
    plan = tw.sort(x[x > 0]).explain()
    figures = plan.to_dict()
    assert len(figures["sections"]) == 2
    assert [(read["read_bytes"], read["passes"]) for read in figures["inputs"]] == [(1 << 25, 1.0)]
    assert str(plan).startswith("1 pass over 32.0 MiB of inputs, ")
    assert figures["avoidable"] == [] and "Source (" not in str(plan)
    part = x[: 1 << 10].sum().explain()
    assert str(part).startswith("0.25 passes over 32.0 MiB of inputs, ")
    assert re.search(r"^  - Source \(test_profile.py:\d+ `from_array`\), 32.0 MiB: 0.25 passes$", str(part), re.MULTILINE)


def test_copies_that_a_user_can_avoid_are_told():
    n = 1 << 22
    a, b = (tw.from_array(Source((n,), (chunk,)), chunks=chunk).persist() for chunk in (1 << 20, 1_000_000))
    plan = (a + b).sum().explain()
    (sentence,) = plan.to_dict()["avoidable"]
    found = re.fullmatch(
        r"(.*) of (.*) moved are copies of blocks into the cut that test_profile.py:\d+ `sum` needs: "
        r"cut the operands alike, in Python by `rechunk`",
        sentence,
    )
    # Every block of one spans two of the other, so one operand is copied whole, that is read and written; the rest is reading both, twice.
    assert found and found.groups() == ("64.0 MiB", "192 MiB")
    assert f"  - avoidable: {sentence}\n" in str(plan)
    # Operands that are cut alike are not copied, copies that the user asks for are his, and small ones cost nothing.
    assert (a + a * 2).sum().explain().to_dict()["avoidable"] == []
    assert b.rechunk(1 << 20).explain().to_dict()["avoidable"] == []
    small = [tw.from_array(Source((1 << 12,), (chunk,)), chunks=chunk).persist() for chunk in (1 << 10, 1000)]
    assert (small[0] + small[1]).sum().explain().to_dict()["avoidable"] == []


def test_crumbs_are_told():
    x = tw.random.default_rng(1).normal(size=200_000).rechunk(10)
    figures = (x * 2).rechunk(10).explain().to_dict()
    assert any("larger blocks" in sentence for sentence in figures["avoidable"])


def normalised() -> tw.Array:
    x = tw.random.default_rng(0).normal(size=(400, 30))
    return (x - x.mean(axis=0)) / x.std(axis=0)


def test_lines_and_operations_are_named():
    plan = (normalised().T @ normalised()).explain()
    text = str(plan)
    assert "return (x - x.mean(axis=0)) / x.std(axis=0)" in text
    assert not re.search(r"\bindex\b", text)
    assert "test_profile.py:" in text and "/test_profile.py" not in text
    names = {line["operation"] for line in rows(plan)}
    assert {"mean", "std", "-", "/", "normal"} <= names
    assert {"@"} & names


def test_rows_of_one_line_are_told_apart():
    x = tw.random.default_rng(0).normal(size=(400, 30)).persist()
    plan = tw.stack([x.sum(axis=0), x.sum(axis=0) * 2, x.max(axis=0)]).explain()
    here = [line for line in rows(plan) if "tw.stack" in line["text"]]
    assert [line["operation"] for line in here].count("sum") == 2
    assert {"max", "*"} <= {line["operation"] for line in here}


def test_numpy_functions_have_their_names():
    x = tw.random.default_rng(0).normal(size=(400, 30)).persist()
    names = {line["operation"] for line in rows(np.sqrt(np.mean(x, axis=0)).explain())}
    assert {"mean", "sqrt"} <= names


def test_pictures_name_lines_without_directories(tmp_path):
    normalised().visualize(tmp_path / "plan.svg")
    drawing = (tmp_path / "plan.svg").read_text()
    assert "test_profile.py:" in drawing and "/test_profile.py" not in drawing
    assert "mean: return (x - x.mean" in drawing and ">index" not in drawing


def test_labels_of_arrows_do_not_overlap(tmp_path):
    x = tw.random.default_rng(0).normal(size=(400, 30)).persist()
    (x.sum() + x.max() * x.min() - x.std() / x.mean() + (x @ x.T).sum()).visualize(tmp_path / "plan.svg")
    root = xml.parse(tmp_path / "plan.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    boxes = {text for group in root.iter(f"{space}g") for text in group.iter(f"{space}text")}
    labels = [text for text in root.iter(f"{space}text") if text.get("class") == "small" and text not in boxes]
    spots = [(float(text.get("x")), float(text.get("y")), 6.0 * len(text.text)) for text in labels]
    for k, (x1, y1, w1) in enumerate(spots):
        for x2, y2, w2 in spots[:k]:
            assert x1 + w1 <= x2 or x2 + w2 <= x1 or abs(y1 - y2) >= 11, (labels[k].text, spots)


def test_a_profile_stands_beside_its_plan(tmp_path):
    product = normalised().T @ normalised()
    profile = product.profile()
    text = str(profile)
    for word in ("planned", "measured", "peak memory", "read from inputs", "moved", "time"):
        assert word in text
    figures = profile.to_dict()
    assert figures["measured"]["tasks"] == figures["tasks"]
    assert figures["measured"]["peak_bytes"] > 0 and figures["measured"]["running_s"] > 0
    lines = rows(profile)
    assert sum(line["measured_tasks"] for line in lines) == figures["tasks"]
    assert sum(line["measured_moved_bytes"] for line in lines) == figures["moved_bytes"]
    xml.fromstring(profile.to_svg())
    assert "@ (test_profile.py" in profile.to_svg()
    assert profile._repr_html_().startswith("<svg")
    assert not product._tensor.is_computed


def test_a_profile_is_a_chrome_trace(tmp_path):
    profile = normalised().sum().profile()
    trace = profile.to_chrome_trace(tmp_path / "trace.json")
    assert trace == json.loads((tmp_path / "trace.json").read_text())
    complete = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(complete) == profile.to_dict()["measured"]["tasks"]
    for event in complete:
        assert {"name", "ts", "dur", "pid", "tid", "args"} <= set(event)
        assert event["dur"] >= 0 and event["ts"] >= 0
    assert any(event["ph"] == "C" and event["name"] == "memory" for event in trace["traceEvents"])
    assert any(event["args"].get("line", "").startswith("return (x - x.mean") for event in complete)


def test_profiles_are_written(tmp_path):
    profile = tw.ones((10, 10)).sum().profile()
    for name in ("p.svg", "p.html", "p.json", "p.txt"):
        profile.save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 50
    with pytest.raises(ValueError, match=".svg, .html, .json or .txt"):
        profile.save(tmp_path / "p.png")


def test_what_is_computed_already_takes_nothing():
    x = tw.ones((10, 10)).persist()
    assert x.profile().to_dict()["measured"]["peak_bytes"] >= 0
    assert "planned" in str(tw.zeros((0, 3)).profile())


def test_errors_of_a_profiled_run_are_raised():
    def fails(block: np.ndarray) -> np.ndarray:
        raise KeyError("no such block")

    with pytest.raises(KeyError, match="no such block"):
        tw.map_blocks(fails, tw.ones(4), dtype="f8").profile()

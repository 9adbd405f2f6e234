//! A drawing of the plan without external tools: boxes in layers, arrows between them.

use std::fmt::Write;

use super::Explanation;
use super::graph::{SectionGraph, StatementBox};
use super::html::escape;

/// Sizes in pixels.
const BOX_WIDTH: usize = 270;
const BOX_HEIGHT: usize = 44;
const GAP: usize = 24;
const LAYER_GAP: usize = 64;
const TITLE_HEIGHT: usize = 34;
pub(super) const MARGIN: usize = 16;

/// As many characters as fit into a box.
const BOX_CHARS: usize = 38;

/// Named by class, so that a page around the drawing keeps its own.
const STYLE: &str = ".tw-plan text{font:12px system-ui,sans-serif;fill:#222}.tw-plan .title{font-size:14px;font-weight:600}\
    .tw-plan .small{fill:#666;font-size:11px}.tw-plan rect{fill:#eef3f8;stroke:#4c78a8}\
    .tw-plan .later{fill:#fff;stroke-dasharray:4 3}.tw-plan path{fill:none;stroke:#888}";

/// A fragment of a drawing, relative to its upper left corner.
pub(crate) struct Drawing {
    pub(super) width: usize,
    pub(super) height: usize,
    /// Elements of SVG.
    pub(super) body: String,
    /// True for one of many small ones.
    pub(super) is_map: bool,
}

impl Drawing {
    pub(super) fn new(width: usize, height: usize, body: String) -> Drawing {
        Drawing { width, height, body, is_map: false }
    }

    /// Drawings below each other.
    fn stacked(drawings: impl IntoIterator<Item = Drawing>) -> Drawing {
        let mut all = Drawing::new(0, MARGIN, String::new());
        for drawing in drawings {
            let _ = writeln!(all.body, "<g transform=\"translate(0 {})\">\n{}</g>", all.height, drawing.body);
            all.width = all.width.max(drawing.width);
            all.height += drawing.height + MARGIN;
        }
        all
    }

    /// A drawing of its own.
    pub(super) fn to_svg(&self) -> String {
        let Drawing { width, height, body, .. } = self;
        format!(
            "<svg class=\"tw-plan\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\
             <style>{STYLE}</style><defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" \
             markerHeight=\"7\" orient=\"auto\"><polygon points=\"0 0 8 4 0 8\" fill=\"#888\"/></marker></defs>\
             <rect width=\"{width}\" height=\"{height}\" style=\"fill:#fff;stroke:none\"/>\n{body}</svg>\n"
        )
    }
}

impl Explanation {
    /// The graph of statements, with the pictures of a cluster below it.
    pub(crate) fn svg(&self) -> String {
        let (mut body, mut width, mut height) = (String::new(), 0, MARGIN);
        for graph in self.graphs() {
            let layout = Layout::of(&graph);
            draw(&graph, &layout, height, &mut body);
            // A title may be longer than the boxes below it are wide.
            width = width.max(layout.width()).max(graph.title.chars().count() * 8);
            height += TITLE_HEIGHT + layout.height() + MARGIN;
        }
        let graph = Drawing::new(width + 2 * MARGIN, height, body);
        match &self.on {
            None => graph.to_svg(),
            Some(on) => Drawing::stacked(std::iter::once(graph).chain(self.pictures(on))).to_svg(),
        }
    }
}

/// The positions of boxes: the operands of a statement are in layers above it.
struct Layout {
    /// Layer and place within it, of every box.
    places: Vec<(usize, usize)>,
    /// Boxes of every layer.
    lengths: Vec<usize>,
}

impl Layout {
    fn of(graph: &SectionGraph) -> Layout {
        let mut layers = vec![0; graph.boxes.len()];
        // Arrows lead to later boxes and are sorted by where they lead, so one pass is enough.
        for arrow in &graph.arrows {
            layers[arrow.to] = layers[arrow.to].max(layers[arrow.from] + 1);
        }
        let mut lengths = vec![0; layers.iter().max().map_or(0, |last| last + 1)];
        let place = |layer: usize| {
            lengths[layer] += 1;
            (layer, lengths[layer] - 1)
        };
        let places = layers.into_iter().map(place).collect();
        Layout { places, lengths }
    }

    fn width(&self) -> usize {
        let longest = self.lengths.iter().max().copied().unwrap_or(0);
        longest * (BOX_WIDTH + GAP)
    }

    fn height(&self) -> usize {
        self.lengths.len() * (BOX_HEIGHT + LAYER_GAP)
    }

    /// The upper left corner of a box.
    fn corner(&self, k: usize, top: usize) -> (usize, usize) {
        let (layer, place) = self.places[k];
        // Short layers stand in the middle.
        let spare = self.width() - self.lengths[layer] * (BOX_WIDTH + GAP);
        (MARGIN + spare / 2 + place * (BOX_WIDTH + GAP), top + TITLE_HEIGHT + layer * (BOX_HEIGHT + LAYER_GAP))
    }
}

fn draw(graph: &SectionGraph, layout: &Layout, top: usize, out: &mut String) {
    let _ = writeln!(out, "<text class=\"title\" x=\"{MARGIN}\" y=\"{}\">{}</text>", top + 14, escape(&graph.title));
    let mut taken: Vec<Area> = (0..graph.boxes.len()).map(|k| Area::of_box(layout.corner(k, top))).collect();
    // Boxes are drawn over the arrows that pass behind them.
    for arrow in &graph.arrows {
        let ((x1, y1), (x2, y2)) = (layout.corner(arrow.from, top), layout.corner(arrow.to, top));
        let (x1, y1, x2) = (x1 + BOX_WIDTH / 2, y1 + BOX_HEIGHT, x2 + BOX_WIDTH / 2);
        let middle = (y1 + y2) / 2;
        let label = cut(&arrow.label);
        let _ = write!(
            out,
            "<path d=\"M{x1} {y1}C{x1} {middle} {x2} {middle} {x2} {y2}\" marker-end=\"url(#tip)\"><title>{}</title></path>",
            escape(&arrow.label)
        );
        let mut places = ALONG.iter().map(|&t| Area::of_label(point_on((x1, y1), (x2, y2), t), &label));
        if let Some(area) = places.find(|area| !taken.iter().any(|other| area.meets(other))) {
            let (x, y) = area.baseline();
            let _ = write!(out, "<text class=\"small\" x=\"{x:.0}\" y=\"{y:.0}\">{}</text>", escape(&label));
            taken.push(area);
        }
        out.push('\n');
    }
    for (k, statement) in graph.boxes.iter().enumerate() {
        draw_box(statement, layout.corner(k, top), out);
    }
}

/// Where along an arrow its label may stand, best first; one that fits nowhere is shown by the browser when the mouse is over its arrow.
const ALONG: [f64; 9] = [0.5, 0.35, 0.65, 0.22, 0.78, 0.42, 0.58, 0.12, 0.88];

/// A point on the curve of an arrow.
fn point_on((x1, y1): (usize, usize), (x2, y2): (usize, usize), t: f64) -> (f64, f64) {
    let (a, b, c, d) = ((1.0 - t).powi(3), 3.0 * (1.0 - t).powi(2) * t, 3.0 * (1.0 - t) * t * t, t.powi(3));
    let (x1, y1, x2, y2) = (x1 as f64, y1 as f64, x2 as f64, y2 as f64);
    ((a + b) * x1 + (c + d) * x2, a * y1 + (b + c) * (y1 + y2) / 2.0 + d * y2)
}

/// A part of the drawing that something stands in.
#[derive(Clone, Copy, Debug)]
struct Area {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Area {
    fn of_box((x, y): (usize, usize)) -> Area {
        let (left, top) = (x as f64, y as f64);
        Area { left, top, right: left + BOX_WIDTH as f64, bottom: top + BOX_HEIGHT as f64 }
    }

    /// Right of a point. Letters of the small font are at most this wide on average.
    fn of_label((x, y): (f64, f64), label: &str) -> Area {
        const LETTER: f64 = 6.5;
        Area { left: x + 6.0, top: y - 7.0, right: x + 6.0 + LETTER * label.chars().count() as f64, bottom: y + 6.0 }
    }

    fn meets(&self, other: &Area) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }

    /// Where text in it starts.
    fn baseline(&self) -> (f64, f64) {
        (self.left, self.bottom - 2.0)
    }
}

fn draw_box(statement: &StatementBox, (x, y): (usize, usize), out: &mut String) {
    let class = if statement.is_later { " class=\"later\"" } else { "" };
    let _ = writeln!(
        out,
        "<g><title>{}</title><rect{class} x=\"{x}\" y=\"{y}\" width=\"{BOX_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"4\"/>\
         <text x=\"{2}\" y=\"{3}\">{1}</text><text class=\"small\" x=\"{2}\" y=\"{4}\">{5}</text></g>",
        escape(&statement.text),
        escape(&cut(&statement.text)),
        x + 10,
        y + 18,
        y + 35,
        escape(&statement.tasks)
    );
}

fn cut(text: &str) -> String {
    if text.chars().count() <= BOX_CHARS {
        return text.to_string();
    }
    let kept: String = text.chars().take(BOX_CHARS - 1).collect();
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::graph::Arrow;

    fn graph(n: usize, arrows: &[(usize, usize)]) -> SectionGraph {
        let statement = || StatementBox { text: "y = <x>".into(), tasks: "map, 1 task".into(), is_later: false };
        let arrow = |&(from, to): &(usize, usize)| Arrow { from, to, label: "x".into() };
        SectionGraph {
            title: "plan".into(),
            boxes: (0..n).map(|_| statement()).collect(),
            arrows: arrows.iter().map(arrow).collect(),
        }
    }

    #[test]
    fn readers_stand_below_what_they_read_and_no_boxes_overlap() {
        let arrows = [(0, 2), (1, 2), (0, 3), (2, 4), (3, 4)];
        let layout = Layout::of(&graph(5, &arrows));
        assert_eq!(layout.places, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]);
        let corners: Vec<_> = (0..5).map(|k| layout.corner(k, 0)).collect();
        for (from, to) in arrows {
            assert!(corners[from].1 + BOX_HEIGHT < corners[to].1);
        }
        for (k, a) in corners.iter().enumerate() {
            for b in &corners[..k] {
                assert!(a.0.abs_diff(b.0) > BOX_WIDTH || a.1.abs_diff(b.1) > BOX_HEIGHT);
            }
        }
    }

    #[test]
    fn labels_stand_apart() {
        // Eight arrows into one box, and one that passes a layer.
        let arrows: Vec<(usize, usize)> = (0..8).map(|k| (k, 8)).chain([(8, 9), (0, 9)]).collect();
        let drawn = graph(10, &arrows);
        let layout = Layout::of(&drawn);
        let mut out = String::new();
        draw(&drawn, &layout, 0, &mut out);
        let attribute = |text: &str, name: &str| -> f64 {
            let value = text.split(&format!("{name}=\"")).nth(1).unwrap();
            value.split('"').next().unwrap().parse().unwrap()
        };
        let labels: Vec<Area> = out
            .split("<text class=\"small\"")
            .skip(1)
            .filter(|text| text.contains(">x</text>"))
            .map(|text| Area::of_label((attribute(text, " x") - 6.0, attribute(text, " y") - 4.0), "x"))
            .collect();
        assert!(labels.len() > 5, "{}", labels.len());
        for (k, a) in labels.iter().enumerate() {
            assert!(!labels[..k].iter().any(|b| a.meets(b)), "{a:?}");
            assert!((0..10).all(|k| !a.meets(&Area::of_box(layout.corner(k, 0)))), "{a:?} lies on a box");
        }
    }

    #[test]
    fn text_is_escaped_and_cut() {
        let mut out = String::new();
        let drawn = graph(1, &[]);
        draw(&drawn, &Layout::of(&drawn), 0, &mut out);
        assert!(out.contains("y = &lt;x&gt;") && !out.contains("<x>"));
        assert_eq!(cut(&"é".repeat(100)).chars().count(), BOX_CHARS);
        assert_eq!(cut("short"), "short");
    }

    #[test]
    fn nothing_to_draw_is_no_reason_to_fail() {
        let layout = Layout::of(&graph(0, &[]));
        assert_eq!((layout.width(), layout.height()), (0, 0));
    }
}

//! Differences as JSON.

use serde_json::{Map, Value, json};

use super::text::moved;
use super::{Difference, Line, Side};

impl Difference {
    /// The figures of both plans, and both versions of each changed line.
    pub fn to_json(&self) -> Value {
        let changed = self.changed().map(|(a, b)| {
            let moved = a.zip(b).and_then(|(a, b)| moved(a, b)).map(|(moved, _)| moved);
            json!({ "a": a.map(|line| self.line(line)), "b": b.map(|line| self.line(line)), "blocks_elsewhere": moved })
        });
        let [a, b] = &self.sides;
        json!({ "is_same": self.is_empty(), "a": side(a), "b": side(b), "changed": changed.collect::<Vec<Value>>() })
    }

    fn line(&self, line: &Line) -> Value {
        let values = line.values.iter().map(|value| {
            json!({
                "name": value.name,
                "grid": value.axes.tiles_per_axis(),
                "tiles": value.axes.iter().map(|axis| axis.longest()).collect::<Vec<u64>>(),
            })
        });
        let mut told = json!({
            "place": line.place.full(),
            "text": line.text,
            "fused": line.fused,
            "tasks": line.tasks,
            "flops": line.flops,
            "values": values.collect::<Vec<Value>>(),
        });
        told[if self.is_wire { "wire_bytes_total" } else { "moved_bytes" }] = json!(line.bytes);
        if !line.workers.is_empty() {
            told["workers"] = json!(line.workers);
        }
        told
    }
}

fn side(side: &Side) -> Value {
    let figures: Map<String, Value> =
        side.figures.iter().map(|figure| (figure.names.1.to_string(), number(figure.value))).collect();
    json!({ "name": side.name, "figures": figures })
}

/// Counts without a decimal point.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 { json!(value as u64) } else { json!(value) }
}

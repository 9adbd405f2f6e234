//! Placements as JSON.

use serde_json::{Map, Value, json};
use tw_place::{Machine, Placed, Rivals};

use super::draw::{LANES, MATRIX, RESOLUTION};
use super::matrix::Matrix;
use super::text::idle_words;
use super::timeline::Timeline;
use super::{Explanation, OnMachine, Piece};

/// The owners of at most this many blocks per value are listed; a flag marks truncated lists.
const MOST_BLOCKS: usize = 1 << 14;

impl Explanation {
    /// Figures of the chosen plan and of all others, over all segments, beside the figures of the explanation itself.
    pub(crate) fn add_machine_to_json(&self, on: &OnMachine, value: &mut Value) {
        let passes = value["input_passes"].clone();
        let plans = || on.counted().flat_map(|rivals| &rivals.placed);
        let mut all: Map<String, Value> = Map::new();
        for name in plans().map(|placed| placed.scheduler) {
            let placed: Vec<&Placed> = plans().filter(|placed| placed.scheduler == name).collect();
            all.entry(name).or_insert_with(|| on.figures(&placed, &passes));
        }
        if let Some(chosen) = on.placed_by() {
            let figures = on.figures(&on.chosen().collect::<Vec<_>>(), &passes);
            for (key, figure) in figures.as_object().into_iter().flatten() {
                value[key.as_str()] = figure.clone();
            }
            value["chosen"] = json!(chosen);
            value["schedulers"] = Value::Object(all);
        }
        let pieces = on.pieces.iter().map(|piece| self.piece_json(piece, &on.machine));
        value["machine"] = json!({
            "nodes": on.machine.nodes,
            "workers": on.machine.workers,
            "memory": on.machine.memory,
            "text": on.machine.to_string(),
            "pieces": pieces.collect::<Vec<Value>>(),
        });
    }

    fn piece_json(&self, piece: &Piece, machine: &Machine) -> Value {
        let Piece { title, rivals, counts, .. } = piece;
        let Some(placed) = rivals.placed.first() else { return Value::Null };
        let lost = rivals.placed[1..].iter().chain(&rivals.refused).zip(self.why_lost(rivals, machine));
        let lost = lost.map(|(rival, why)| self.lost_json(rival, &why));
        json!({
            "title": title,
            "counts": counts,
            "scheduler": placed.scheduler,
            "lower_bound_bytes": rivals.bound_bytes.ceil() as u64,
            "lost": lost.collect::<Vec<Value>>(),
            "failed": rivals.failed.iter().map(|(name, error)| json!({ "scheduler": name, "why": error.message() })).collect::<Vec<Value>>(),
            "idle": idle_words(rivals),
            "statements": self.statements_json(rivals, placed),
            "owners": self.owners_json(placed),
            "matrix": matrix_json(&Matrix::of(&placed.simulation, machine, MATRIX)),
            "timeline": timeline_json(&Timeline::of(placed, LANES, RESOLUTION)),
        })
    }

    fn lost_json(&self, rival: &Placed, why: &str) -> Value {
        let most = rival.flows(None).first().map(|flow| {
            let (place, text) = self.placed_statement(&rival.workflow, flow.statement);
            json!({
                "value": self.placed_value(&rival.workflow, flow.set),
                "place": place.full(),
                "text": text,
                "bytes": flow.bytes,
            })
        });
        json!({
            "scheduler": rival.scheduler,
            "why": why,
            "makespan_s": rival.simulation.makespan,
            "critical_path_s": rival.simulation.critical_path,
            "wire_bytes_max_rank": rival.simulation.wire_bytes_max(),
            "peak_bytes_max_rank": rival.simulation.peak_bytes_max(),
            "work_share_max_rank": rival.simulation.flops_max().1,
            "most_sent": most,
        })
    }

    fn statements_json(&self, rivals: &Rivals, placed: &Placed) -> Vec<Value> {
        let flows = self.statement_flows(rivals, placed).into_iter().map(|(statement, flow)| {
            json!({
                "statement": statement.as_u32(),
                "place": flow.place.full(),
                "text": flow.text,
                "grid": flow.grid,
                "best_grids": flow.best_grids.iter().map(|(grid, bytes)| json!({ "grid": grid, "bytes": bytes })).collect::<Vec<_>>(),
                "workers": flow.workers,
                "tasks": flow.tasks,
                "wire_bytes_total": flow.received,
                "wire_bytes_max_rank": flow.busiest,
                "lower_bound_bytes": flow.bound.map(|bound| bound.ceil() as u64),
                "term": flow.term.as_ref().map(|term| json!({
                    "text": term.words(),
                    "workers": term.sites,
                    "bytes": term.bytes,
                    "by_rules": term.best.as_ref().map(|best| json!({
                        "text": best.words(),
                        "bytes": best.bytes,
                        "rules": best.rules,
                        "tried": best.tried,
                        "fired": best.fired,
                        "stopped": best.stopped,
                    })),
                })),
            })
        });
        flows.collect()
    }

    fn owners_json(&self, placed: &Placed) -> Vec<Value> {
        let maps = self.owner_maps(placed).into_iter().map(|map| {
            let shown = &map.cells[..map.cells.len().min(MOST_BLOCKS)];
            let mut value = json!({
                "value": map.name,
                "shape": map.shape,
                "grid": map.grid.tiles_per_axis(),
                "owners": shown.iter().map(|cell| cell.owner).collect::<Vec<_>>(),
                "left_out": map.cells.len() - shown.len(),
            });
            if map.is_made_elsewhere() {
                value["makers"] = json!(shown.iter().map(|cell| &cell.makers).collect::<Vec<_>>());
            }
            value
        });
        maps.collect()
    }
}

fn matrix_json(matrix: &Matrix) -> Value {
    json!({
        "labels": matrix.labels,
        "nodes": matrix.nodes,
        "workers_per_row": matrix.workers_per_row,
        "bytes": matrix.cells,
    })
}

fn timeline_json(timeline: &Timeline) -> Value {
    let lanes = timeline.lanes.iter().map(|lane| {
        let runs = lane.runs.iter().map(|run| {
            json!({
                "statement": run.statement.as_u32(),
                "start_s": run.start,
                "end_s": run.end,
                "busy_s": run.busy,
                "tasks": run.tasks,
            })
        });
        json!({ "worker": lane.worker, "waiting": timeline.waiting(lane), "runs": runs.collect::<Vec<Value>>() })
    });
    json!({ "makespan_s": timeline.makespan, "lanes": lanes.collect::<Vec<Value>>() })
}

impl OnMachine {
    /// The figures of one plan per segment.
    fn figures(&self, placed: &[&Placed], passes: &Value) -> Value {
        let sum = |of: fn(&Placed) -> u64| placed.iter().map(|placed| of(placed)).sum::<u64>();
        // Of the worker with the most in each segment, over an even share of all segments.
        let (most, flops) = (sum(|p| p.simulation.flops_max().0), sum(|p| p.simulation.flops()));
        let share = if flops == 0 { 1.0 } else { most as f64 * self.machine.n_workers() as f64 / flops as f64 };
        json!({
            "tasks": sum(|p| p.order.len() as u64),
            "planning_s": placed.iter().map(|placed| placed.took.as_secs_f64()).sum::<f64>(),
            "input_passes": passes,
            "wire_bytes_total": sum(|p| p.simulation.wire_bytes()),
            "wire_bytes_max_rank": sum(|p| p.simulation.wire_bytes_max()),
            "flops_max_rank": most,
            "work_share_max_rank": share,
            "peak_bytes_max_rank": placed.iter().map(|p| p.simulation.peak_bytes_max()).max().unwrap_or(0),
            "lower_bound_bytes": self.bound_bytes().ceil() as u64,
            // The bound is for plans in which all workers do equally much of every statement.
            "lower_bound_holds": placed.iter().all(|p| self.is_bounded(p)),
            "makespan_s": placed.iter().map(|p| p.simulation.makespan).sum::<f64>(),
        })
    }

    fn is_bounded(&self, placed: &Placed) -> bool {
        let mut of = self.counted().filter(|rivals| rivals.placed.iter().any(|other| std::ptr::eq(other, placed)));
        of.next().is_some_and(|rivals| rivals.is_bounded(placed))
    }
}

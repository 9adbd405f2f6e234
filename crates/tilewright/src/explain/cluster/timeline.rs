//! Timelines: the task of each worker at each time, and its waiting.

use tw_ir::EntityRef;
use tw_ir::workflow::StmtId;
use tw_place::Placed;

use super::super::units::count;
use super::busiest;

/// Tasks of one statement that a worker runs one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) statement: StmtId,
    pub(crate) start: f64,
    pub(crate) end: f64,
    /// Seconds of that in which it computes.
    pub(crate) busy: f64,
    pub(crate) tasks: u64,
    /// Seconds of the task that gives the run its statement.
    longest: f64,
}

/// One worker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lane {
    pub(crate) worker: u32,
    pub(crate) runs: Vec<Run>,
}

/// The predicted run of a plan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Timeline {
    pub(crate) makespan: f64,
    pub(crate) lanes: Vec<Lane>,
    /// Statements that have tasks, in their order.
    pub(crate) statements: Vec<StmtId>,
    n_workers: usize,
}

impl Timeline {
    /// The timeline of a plan, of at most this many workers. Intervals shorter than the `resolution`-th part of the makespan are merged with their successors.
    pub(crate) fn of(placed: &Placed, most_lanes: usize, resolution: usize) -> Timeline {
        let simulation = &placed.simulation;
        let n_workers = simulation.workers.len();
        // Some of many workers, evenly, and the last to end among them.
        let mut last = vec![0.0f64; n_workers];
        for &task in &placed.order {
            let end = &mut last[placed.sites.of(task) as usize];
            *end = end.max(simulation.intervals[task.index()].end);
        }
        let step = n_workers.div_ceil(most_lanes.max(1));
        let mut shown: Vec<u32> = (0..n_workers as u32).step_by(step.max(1)).collect();
        if let (true, Some((latest, _))) = (step > 1, busiest(last.into_iter())) {
            let nearest = latest as usize / step;
            shown[nearest] = latest;
        }
        let mut lane_of: Vec<Option<usize>> = vec![None; n_workers];
        shown.iter().enumerate().for_each(|(lane, &worker)| lane_of[worker as usize] = Some(lane));
        let mut lanes: Vec<Lane> = shown.iter().map(|&worker| Lane { worker, runs: Vec::new() }).collect();
        let grain = simulation.makespan / resolution.max(1) as f64;
        let mut statements = vec![false; placed.workflow.statements.len()];
        for &task in &placed.order {
            let statement = placed.workflow.statement(task);
            statements[statement.index()] = true;
            if let Some(lane) = lane_of[placed.sites.of(task) as usize] {
                let interval = simulation.intervals[task.index()];
                lanes[lane].add(statement, interval.start, interval.end, grain);
            }
        }
        let statements =
            statements.iter().enumerate().filter(|(_, used)| **used).map(|(k, _)| StmtId::new(k)).collect();
        Timeline { makespan: simulation.makespan, lanes, statements, n_workers }
    }

    /// The fraction of the makespan in which a worker is idle.
    pub(crate) fn waiting(&self, lane: &Lane) -> f64 {
        let busy: f64 = lane.runs.iter().map(|run| run.busy).sum();
        (1.0 - busy / self.makespan.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
    }

    /// A number among the statements shown.
    pub(crate) fn number(&self, statement: StmtId) -> usize {
        self.statements.binary_search(&statement).unwrap_or_default()
    }

    /// The letter of a statement; after 52 of them they begin again.
    pub(crate) fn letter(number: usize) -> char {
        let letters = ('A'..='Z').chain('a'..='z');
        letters.clone().nth(number % letters.count()).unwrap_or('A')
    }

    /// The timeline of a worker in this many characters: the letter of the statement that takes most of each slot, or a dot for waiting.
    pub(crate) fn characters(&self, lane: &Lane, columns: usize) -> String {
        let width = self.makespan / columns as f64;
        let mut runs = &lane.runs[..];
        let mut text = String::with_capacity(columns);
        for column in 0..columns {
            let (start, end) = (column as f64 * width, (column + 1) as f64 * width);
            while runs.first().is_some_and(|run| run.end <= start) {
                runs = &runs[1..];
            }
            let here = runs.iter().take_while(|run| run.start < end);
            // How long each run computes here: a run that waits in between does so evenly.
            let share = |run: &Run| {
                let overlap = run.end.min(end) - run.start.max(start);
                overlap * run.busy / (run.end - run.start).max(f64::MIN_POSITIVE)
            };
            let busy: f64 = here.clone().map(share).sum();
            let longest = here.max_by(|a, b| share(a).total_cmp(&share(b)));
            text.push(match longest {
                Some(run) if 2.0 * busy >= width => Timeline::letter(self.number(run.statement)),
                _ => '.',
            });
        }
        text
    }

    /// A note about omitted workers.
    pub(crate) fn note(&self) -> Option<String> {
        let (shown, all) = (self.lanes.len(), self.n_workers);
        (shown < all).then(|| format!("{shown} of {} workers, the last to end among them", count(all as u64)))
    }
}

impl Lane {
    fn add(&mut self, statement: StmtId, start: f64, end: f64, grain: f64) {
        let seconds = end - start;
        if let Some(run) = self.runs.last_mut() {
            let is_near = start - run.end <= grain;
            if is_near && (run.statement == statement || end - run.start <= grain) {
                run.end = end;
                run.busy += seconds;
                run.tasks += 1;
                if seconds > run.longest {
                    (run.statement, run.longest) = (statement, seconds);
                }
                return;
            }
        }
        self.runs.push(Run { statement, start, end, busy: seconds, tasks: 1, longest: seconds });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(tasks: &[(usize, f64, f64)], makespan: f64, grain: f64) -> Timeline {
        let mut lane = Lane { worker: 0, runs: Vec::new() };
        tasks.iter().for_each(|&(statement, start, end)| lane.add(StmtId::new(statement), start, end, grain));
        let mut statements: Vec<StmtId> = tasks.iter().map(|task| StmtId::new(task.0)).collect();
        statements.sort();
        statements.dedup();
        Timeline { makespan, lanes: vec![lane], statements, n_workers: 1 }
    }

    #[test]
    fn tasks_of_one_statement_are_one_run_unless_they_wait() {
        let line = timeline(&[(3, 0.0, 1.0), (3, 1.0, 2.0), (3, 4.0, 5.0), (7, 5.0, 8.0)], 10.0, 0.1);
        assert_eq!(line.lanes[0].runs.len(), 3);
        assert_eq!(line.lanes[0].runs[0].tasks, 2);
        assert!((line.waiting(&line.lanes[0]) - 0.4).abs() < 1e-12);
        assert_eq!(line.characters(&line.lanes[0], 10), "AA..ABBB..");
    }

    #[test]
    fn what_is_too_short_to_see_is_drawn_together() {
        let tasks: Vec<(usize, f64, f64)> = (0..1000).map(|k| (k % 2, k as f64, k as f64 + 0.9)).collect();
        let line = timeline(&tasks, 1000.0, 50.0);
        assert!(line.lanes[0].runs.len() <= 21, "{}", line.lanes[0].runs.len());
        assert_eq!(line.lanes[0].runs.iter().map(|run| run.tasks).sum::<u64>(), 1000);
        assert!((line.waiting(&line.lanes[0]) - 0.1).abs() < 1e-9);
    }
}

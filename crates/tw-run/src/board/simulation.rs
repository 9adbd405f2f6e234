//! A simulation of runs that share a budget: random schedules with moves, random surpluses, and every order of events a seed can think of, with no threads and no clock.
//!
//! Each run waits for its share of the budget while it holds nothing, as a session grants it, and then is on the board. Actors are the callers of all runs and the workers of the
//! pool; each step of an actor is a stretch of code between taking and giving up the lock of the board, or a task. The simulation uses the board, the ledger, the moves and the spill
//! file themselves. It fails if nobody can take a step before all runs have ended, if a run ever holds more than it was promised, or if results have other bits than those of a serial replay.

use std::sync::Arc;

use common::{BLOCK_BYTES, Dice, Flaky, TestIo, bits, only, random_schedule, replay, with_random_moves};
use tw_block::{Meter, SpillFile};

use super::{Board, JobId};
use crate::job::{Job, Report};
use crate::options::RunOptions;
use crate::prepared::Prepared;

#[path = "../../tests/common/mod.rs"]
mod common;

/// A run, from waiting for its share to its end.
struct Run {
    prepared: Prepared,
    expected: Vec<Vec<u64>>,
    io: Arc<TestIo>,
    options: RunOptions,
    surplus: u64,
    on_board: Option<(JobId, Arc<Job>)>,
    has_ended: bool,
}

impl Run {
    fn promised(&self) -> u64 {
        self.prepared.schedule().peak_bytes() + self.surplus
    }
}

/// Callers have the number of their run.
enum State {
    /// Waits for the share of a run.
    Waiting,
    Looking,
    Running(JobId, Arc<Job>, u32),
    Reporting(JobId, Report, Vec<u32>),
    Searching,
    Asleep,
    Gone,
}

struct World {
    board: Board,
    runs: Vec<Run>,
    /// The callers first.
    actors: Vec<State>,
    budget: u64,
    dice: Dice,
    n_moves: usize,
}

impl World {
    fn new(seed: u64, spill: &Arc<SpillFile>) -> World {
        let mut dice = Dice::new(seed);
        let n_runs = 1 + dice.below(3);
        let mut runs = Vec::new();
        for run in 0..n_runs as u64 {
            let schedule = random_schedule(seed * 4 + run, 4 + dice.below(16), &Flaky::never());
            let expected = replay(&schedule).outputs;
            let schedule = match dice.below(4) {
                0 => schedule,
                _ => Arc::new(with_random_moves(&schedule, &mut dice)),
            };
            let options = RunOptions {
                meter: Meter::new(),
                spill: Some(Arc::clone(spill)),
                chaos: (dice.below(2) == 1).then_some(seed),
                ..RunOptions::default()
            };
            let surplus = dice.below(6) as u64 * BLOCK_BYTES;
            let (prepared, io) = (Prepared::new(schedule).unwrap(), Arc::new(TestIo::default()));
            runs.push(Run { prepared, expected, io, options, surplus, on_board: None, has_ended: false });
        }
        // Enough for the largest run, seldom for all of them.
        let largest = runs.iter().map(Run::promised).max().unwrap_or(0);
        let budget = largest + dice.below(2 * largest as usize) as u64;
        let n_workers = dice.below(4);
        let callers = (0..n_runs).map(|_| State::Waiting);
        let actors = callers.chain((0..n_workers).map(|_| State::Looking)).collect();
        let n_moves = runs.iter().map(|run| run.prepared.schedule().n_moves()).sum();
        World { board: Board::default(), runs, actors, budget, dice, n_moves }
    }

    /// Bytes that were promised to the runs that are under way.
    fn promised(&self) -> u64 {
        let under_way = self.runs.iter().filter(|run| run.on_board.is_some() && !run.has_ended);
        under_way.map(Run::promised).sum()
    }

    fn can_step(&mut self, actor: usize) -> bool {
        match &self.actors[actor] {
            State::Gone => false,
            State::Waiting => self.promised() + self.runs[actor].promised() <= self.budget,
            State::Asleep => match self.runs.get(actor).and_then(|run| run.on_board.as_ref()) {
                Some(&(id, _)) => self.board.caller_wakes(id),
                None => self.board.worker_wakes(),
            },
            _ => true,
        }
    }

    fn step(&mut self, actor: usize) {
        let state = std::mem::replace(&mut self.actors[actor], State::Gone);
        self.actors[actor] = match state {
            State::Gone => State::Gone,
            State::Waiting => {
                let run = &mut self.runs[actor];
                let bindings = run.io.bindings(run.prepared.schedule());
                let job = Job::new(run.prepared.plan(), &bindings, &run.options, Some(run.surplus), None).unwrap();
                let job = Arc::new(job);
                let id = self.board.next_id();
                self.board.add(id, &job);
                run.on_board = Some((id, job));
                self.look(actor)
            }
            State::Running(id, job, rank) => {
                let mut ready = Vec::new();
                let board = &mut self.board;
                let report = job.run_from(rank, actor as u32, &mut ready, |others| {
                    board.push(id, others);
                    board.balance();
                });
                State::Reporting(id, report, ready)
            }
            State::Reporting(id, report, mut ready) => {
                self.board.settle(id, report, &mut ready);
                self.look_again(actor, id)
            }
            State::Searching => self.stop_searching(actor),
            State::Looking | State::Asleep => self.look(actor),
        };
    }

    /// Takes another task of the same run, if there is one.
    fn look_again(&mut self, actor: usize, id: JobId) -> State {
        let job = self.runs.iter().find_map(|run| run.on_board.as_ref().filter(|(own, _)| *own == id));
        let job = Arc::clone(&job.unwrap().1);
        match self.board.begin(id) {
            Some(rank) => {
                self.board.balance();
                State::Running(id, job, rank)
            }
            None => {
                drop(job);
                self.look(actor)
            }
        }
    }

    fn look(&mut self, actor: usize) -> State {
        let own = self.runs.get(actor).and_then(|run| run.on_board.clone());
        let next = match own {
            Some((id, job)) => match self.board.begin(id) {
                Some(rank) => State::Running(id, job, rank),
                None if self.board.is_over(id) => {
                    drop(job);
                    self.end(actor, id);
                    State::Gone
                }
                None => {
                    self.board.caller_searches(id);
                    State::Searching
                }
            },
            None => match self.board.job_with_work() {
                Some((id, job)) => match self.board.begin(id) {
                    Some(rank) => State::Running(id, job, rank),
                    None => State::Looking,
                },
                None => {
                    self.board.worker_searches();
                    State::Searching
                }
            },
        };
        self.board.balance();
        next
    }

    fn stop_searching(&mut self, actor: usize) -> State {
        let own = self.runs.get(actor).and_then(|run| run.on_board.as_ref()).map(|(id, _)| *id);
        let stays = match own {
            Some(id) => self.board.caller_stays(id).is_none(),
            None => self.board.worker_stays(),
        };
        if stays { self.look(actor) } else { State::Asleep }
    }

    fn end(&mut self, actor: usize, id: JobId) {
        let (tally, failure) = self.board.remove(id);
        assert!(failure.is_none(), "{failure:?}");
        let run = &mut self.runs[actor];
        run.has_ended = true;
        let (_, job) = run.on_board.take().unwrap();
        let outputs = job.outputs(&tally).unwrap();
        let found: Vec<Vec<u64>> = outputs.handles.iter().map(|output| bits(&only(output))).collect();
        assert_eq!(found, run.expected, "other bits");
        assert!(run.options.meter.peak() <= run.promised(), "{} of {}", run.options.meter.peak(), run.promised());
        drop(outputs);
        assert_eq!(run.options.meter.now(), 0, "blocks are left");
    }

    /// Lets actors step until all runs have ended.
    fn walk(mut self) -> usize {
        while self.runs.iter().any(|run| !run.has_ended) {
            let n = self.actors.len();
            let first = self.dice.below(n);
            let mover = (0..n).map(|k| (first + k) % n).find(|&actor| self.can_step(actor));
            self.step(mover.expect("nobody can take a step, and runs have not ended"));
        }
        self.n_moves
    }
}

#[test]
fn runs_with_moves_that_share_a_budget_all_end() {
    let n: u64 = std::env::var("TW_SIMULATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let directory = std::env::temp_dir().join(format!("tw-simulation-{}", std::process::id()));
    let spill = SpillFile::new(&directory, None);
    let mut n_moves = 0;
    for seed in 0..n {
        n_moves += World::new(seed, &spill).walk();
    }
    assert!(n_moves as u64 > 5 * n, "only {n_moves} moves in {n} simulations");
    std::fs::remove_dir_all(directory).unwrap();
}

//! A model of the pool: the critical sections of `pool` in every order a seed can think of, with no threads and no clock.
//!
//! Each actor (the caller and the workers) is a small state machine whose steps are exactly the stretches of code between taking and giving up the
//! lock of the board, and the stretches without it. A walk lets a random actor that is not asleep take a step until the run is over. If all
//! actors are asleep before that, a wake-up was lost.

use std::sync::Arc;

use tw_block::provider;
use tw_ir::schedule::Schedule;
use tw_ir::workflow::Workflow;
use tw_ir::{Result, random};

use super::{Board, Caller, JobId};
use crate::bindings::Bindings;
use crate::job::{Job, Report};
use crate::options::RunOptions;
use crate::overhead::{coupled_workflow, overhead_workflow};
use crate::prepared::Prepared;

enum State {
    /// About to take the lock and look for work.
    Looking,
    /// Has begun a task and does not hold the lock.
    Running(u32),
    /// Has run it and is about to report.
    Reporting(Report, Vec<u32>),
    /// Spinning.
    Searching,
    Asleep,
    /// The caller, when its run is over.
    Gone,
}

struct Model {
    board: Board,
    job: Arc<Job>,
    id: JobId,
    /// The caller first.
    actors: Vec<State>,
    seed: u64,
    rolls: i64,
}

impl Model {
    fn new(job: Job, workers: usize, seed: u64) -> Model {
        let job = Arc::new(job);
        let mut board = Board::default();
        let id = board.next_id();
        board.add(id, &job);
        let actors = (0..=workers).map(|_| State::Looking).collect();
        Model { board, job, id, actors, seed, rolls: 0 }
    }

    fn below(&mut self, n: usize) -> usize {
        self.rolls += 1;
        random::integer(self.seed, self.rolls, 0, n as i64) as usize
    }

    /// The effect of `Shared::release`.
    fn release(&mut self) {
        self.board.balance();
        self.check();
    }

    /// The invariant while no thread holds the lock.
    fn check(&self) {
        let board = &self.board;
        assert!(board.tokens <= board.sleeping);
        let state = &board.jobs[0];
        let covered =
            board.searching + board.tokens + matches!(state.caller, Caller::Searching | Caller::Woken) as usize;
        assert!(
            state.available() <= covered || board.sleeping == board.tokens,
            "a task is available, a worker sleeps, and nobody is on the way"
        );
    }

    fn step(&mut self, actor: usize) {
        let is_caller = actor == 0;
        let state = std::mem::replace(&mut self.actors[actor], State::Gone);
        self.actors[actor] = match state {
            State::Gone => State::Gone,
            State::Looking => self.look(actor),
            State::Running(rank) => {
                let mut ready = Vec::new();
                let (job, id, board) = (&self.job, self.id, &mut self.board);
                let report = job.run_from(rank, actor as u32, &mut ready, |others| {
                    board.push(id, others);
                    board.balance();
                });
                State::Reporting(report, ready)
            }
            State::Reporting(report, mut ready) => {
                self.board.settle(self.id, report, &mut ready);
                self.look(actor)
            }
            State::Searching if is_caller => match self.board.caller_stays(self.id) {
                None => self.look(actor),
                Some(_) => self.sleep(),
            },
            State::Searching if self.board.worker_stays() => self.look(actor),
            State::Searching => self.sleep(),
            State::Asleep => self.look(actor),
        };
    }

    /// The part of `Shared::participate`, `serve` and `run` after a report or a rest.
    fn look(&mut self, actor: usize) -> State {
        let next = match self.board.begin(self.id) {
            Some(rank) => State::Running(rank),
            None if actor == 0 && self.board.is_over(self.id) => State::Gone,
            None if actor == 0 => {
                self.board.caller_searches(self.id);
                State::Searching
            }
            None => {
                self.board.worker_searches();
                State::Searching
            }
        };
        self.release();
        next
    }

    /// Waiting gives up the lock without a balance.
    fn sleep(&self) -> State {
        self.check();
        State::Asleep
    }

    /// True if an actor can take a step; one that sleeps asks whether it is woken.
    fn can_step(&mut self, actor: usize) -> bool {
        match self.actors[actor] {
            State::Gone => false,
            State::Asleep if actor == 0 => self.board.caller_wakes(self.id),
            State::Asleep => self.board.worker_wakes(),
            _ => true,
        }
    }

    /// Walks until the caller has gone; the number of tasks that ran.
    fn walk(mut self) -> u64 {
        while !matches!(self.actors[0], State::Gone) {
            // A random actor moves, or the next one that can. Between a wake-up and its effect others may move any number of times.
            let n = self.actors.len();
            let first = self.below(n);
            let mover = (0..n).map(|k| (first + k) % n).find(|&actor| self.can_step(actor));
            self.step(mover.expect("everybody is asleep and the run is not over"));
        }
        self.board.remove(self.id).0.steps
    }
}

fn walks(prepared: &Prepared, surplus: Option<u64>, n_walks: u64) {
    for seed in 0..n_walks {
        let chaos = (seed % 2 == 1).then_some(seed);
        let options = RunOptions { chaos, ..RunOptions::default() };
        let job = Job::new(prepared.plan(), &Bindings::default(), &options, surplus, None).unwrap();
        let tasks = Model::new(job, 1 + seed as usize % 4, seed).walk();
        assert_eq!(tasks, prepared.schedule().n_tasks() as u64);
    }
}

fn prepare(workflow: Result<Workflow>) -> Prepared {
    let workflow = workflow.unwrap();
    let order = workflow.tasks().collect();
    Prepared::new(Arc::new(Schedule::freeze(workflow, order, provider()).unwrap())).unwrap()
}

#[test]
fn no_wake_up_is_lost() {
    for (n_tasks, width) in [(3, 3), (12, 3), (30, 5), (40, 1)] {
        walks(&prepare(overhead_workflow(n_tasks, width)), None, 400);
        walks(&prepare(coupled_workflow(n_tasks, width)), None, 400);
    }
}

#[test]
fn no_wake_up_is_lost_under_a_budget() {
    for (n_tasks, width) in [(3, 3), (12, 3), (30, 5), (40, 1)] {
        for surplus in [0, 8, 24] {
            walks(&prepare(overhead_workflow(n_tasks, width)), Some(surplus), 200);
            walks(&prepare(coupled_workflow(n_tasks, width)), Some(surplus), 200);
        }
    }
}

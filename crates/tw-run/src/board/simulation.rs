//! A simulation of runs that share a budget: random schedules with moves, random surpluses, and every order of events a seed can think of, with no threads and no clock.
//!
//! Each run waits for its share of the budget while it holds nothing, as a session grants it, and then is on the board. Actors are the callers of all runs and the workers of the
//! pool; each step of an actor is a stretch of code between taking and giving up the lock of the board, or a task. The simulation uses the board, the ledger, the moves and the spill
//! file themselves. It fails if nobody can take a step before all runs have ended, if a run ever holds more than it was promised, or if results have other bits than those of a serial replay.

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{BLOCK_BYTES, Dice, Flaky, TestIo, bits, only, random_schedule, replay};
use tw_block::{Meter, SpillFile};
use tw_ir::schedule::{Instance, InstanceId, Memory, Move, Placement, Schedule, Step};
use tw_ir::workflow::{BlockId, TaskKind, Workflow};

use super::{Board, JobId};
use crate::job::{Job, Report};
use crate::options::RunOptions;
use crate::prepared::Prepared;

#[path = "../../tests/common/mod.rs"]
mod common;

/// A schedule that keeps to a number of blocks by moves to disk and back, of blocks that luck has chosen.
struct Mover<'a> {
    workflow: &'a Workflow,
    /// Per block, its instances.
    host: BTreeMap<BlockId, InstanceId>,
    disk: BTreeMap<BlockId, InstanceId>,
    steps: Vec<Step>,
    placement: Placement,
    room: usize,
}

impl Mover<'_> {
    fn add(&mut self, block: BlockId, memory: Memory) -> InstanceId {
        self.placement.add_instance(Instance { block, region: 0, memory })
    }

    /// Moves a block that is not needed to disk.
    fn evict(&mut self, dice: &mut Dice, needed: &[BlockId]) {
        let others: Vec<BlockId> = self.host.keys().copied().filter(|block| !needed.contains(block)).collect();
        if others.is_empty() {
            return;
        }
        let block = dice.pick(&others);
        let from = self.host.remove(&block).unwrap();
        if !self.disk.contains_key(&block) {
            let to = self.add(block, Memory::Disk(0));
            self.steps.push(self.placement.add_move(Move { from, to }));
            self.disk.insert(block, to);
        }
    }

    /// Makes a new instance in main memory.
    fn make(&mut self, dice: &mut Dice, block: BlockId, needed: &[BlockId]) -> InstanceId {
        while self.host.len() >= self.room {
            self.evict(dice, needed);
        }
        let instance = self.add(block, Memory::Host(0));
        self.host.insert(block, instance);
        instance
    }

    fn bring(&mut self, dice: &mut Dice, block: BlockId, needed: &[BlockId]) {
        if !self.host.contains_key(&block) {
            let from = self.disk[&block];
            let to = self.make(dice, block, needed);
            self.steps.push(self.placement.add_move(Move { from, to }));
        }
    }
}

fn with_random_moves(schedule: &Schedule, dice: &mut Dice) -> Schedule {
    let workflow = schedule.workflow();
    let order: Vec<_> = schedule.order().collect();
    let touched = |task| {
        let reads = workflow.present_operands(task).map(|operand| operand.block);
        let mut blocks: Vec<BlockId> = reads.chain(workflow.outputs(task).iter().copied()).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks
    };
    let least = order.iter().map(|&task| touched(task).len()).max().unwrap_or(1);
    let mut last_uses: BTreeMap<BlockId, usize> = BTreeMap::new();
    order.iter().enumerate().for_each(|(k, &task)| last_uses.extend(touched(task).into_iter().map(|block| (block, k))));
    let results: Vec<BlockId> = workflow.outputs.iter().map(|output| workflow.block(output.set, 0)).collect();
    let placement = Placement::new(1, vec![0; workflow.n_tasks()], Vec::new());
    let (host, disk) = (BTreeMap::new(), BTreeMap::new());
    let room = least + dice.below(4);
    let mut mover = Mover { workflow, host, disk, steps: Vec::new(), placement, room };
    for (k, &task) in order.iter().enumerate() {
        let needed = touched(task);
        if dice.below(4) == 0 {
            mover.evict(dice, &needed);
        }
        let continues = workflow.kind(task) == TaskKind::Fold && workflow.position(task) > 0;
        for operand in mover.workflow.present_operands(task) {
            mover.bring(dice, operand.block, &needed);
        }
        for &output in workflow.outputs(task) {
            if continues {
                mover.bring(dice, output, &needed);
                // The copy on disk lacks what comes now.
                mover.disk.remove(&output);
            } else {
                mover.make(dice, output, &needed);
            }
        }
        let host = &mover.host;
        let reads: Vec<_> = workflow.operands(task).iter().map(|o| Some(host[&o.expand()?.block])).collect();
        let writes: Vec<_> = workflow.outputs(task).iter().map(|block| host[block]).collect();
        mover.placement.add_task(reads, writes);
        mover.steps.push(Step::task(task));
        for block in needed.into_iter().filter(|block| last_uses[block] == k && !results.contains(block)) {
            mover.host.remove(&block);
            mover.disk.remove(&block);
        }
    }
    let found = results.iter().map(|block| *mover.host.get(block).or_else(|| mover.disk.get(block)).unwrap());
    mover.placement.set_results(found.collect());
    schedule.with_moves(mover.steps, mover.placement, None).unwrap()
}

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
                let job = Job::new(run.prepared.plan(), &bindings, &run.options, Some(run.surplus)).unwrap();
                let job = Arc::new(job);
                run.on_board = Some((self.board.add(&job), job));
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

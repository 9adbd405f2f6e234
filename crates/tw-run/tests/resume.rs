//! Runs that are stopped, and later runs of the same tasks that leave out what was kept, with other moves: the same bits, no more memory than the schedule says.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use common::{BLOCK_BYTES, Dice, Flaky, TestIo, bits, only, random_schedule, replay, with_random_moves};
use tw_block::{Meter, SpillFile};
use tw_ir::Result;
use tw_ir::schedule::{Digest, Schedule};
use tw_ir::workflow::{TaskId, TaskKind};
use tw_run::{CancelToken, Engine, Keep, Keeper, KeptTask, Observer, Prepared, RunOptions, Runtime, Serial};

/// A task with descriptions of its blocks.
type Described = (TaskId, Vec<Vec<u8>>);

/// Remembers what was kept as a log would, with descriptions in place of blocks.
#[derive(Default)]
struct Memory(Mutex<BTreeMap<u32, Described>>);

impl Keeper for Memory {
    fn record(&self, _: Digest, kept: &[KeptTask], useless: &[TaskId]) -> Result<()> {
        let mut memory = self.0.lock().unwrap();
        for kept in kept {
            let blocks = kept.blocks.iter().map(|block| block.describe()).collect();
            memory.insert(kept.task.as_u32(), (kept.task, blocks));
        }
        useless.iter().for_each(|task| drop(memory.remove(&task.as_u32())));
        Ok(())
    }
}

/// Cancels a run when so many tasks have begun.
struct Stopper(AtomicU64, CancelToken);

impl Observer for Stopper {
    fn task_started(&self, _: TaskId, _: u32, _: Instant) {
        if self.0.fetch_sub(1, Ordering::Relaxed) == 0 {
            self.1.cancel();
        }
    }
}

#[test]
fn runs_go_on_from_what_was_kept() {
    let directory = std::env::temp_dir().join(format!("tw-rest-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let engines: [Box<dyn Engine>; 2] = [Box::new(Serial), Box::new(Runtime::new(3))];
    let passing = SpillFile::new(&directory, None);
    let (mut skipped, mut stops, mut all) = (0, 0, 0);
    for seed in 0..400 {
        let mut dice = Dice::new(seed);
        let schedule = random_schedule(seed, 10 + dice.below(30), &Flaky::never());
        let expected = replay(&schedule).outputs;
        let memory = Arc::new(Memory::default());
        let path = directory.join(format!("kept-{seed}"));
        for turn in 0.. {
            let moved: Arc<Schedule> = match dice.below(3) {
                0 => schedule.clone(),
                _ => Arc::new(with_random_moves(&schedule, &mut dice)),
            };
            assert_eq!(moved.bits(), schedule.bits());
            // As after a kill: the file is opened again, and nothing else is left.
            let file = SpillFile::durable(&path).unwrap();
            let restore = |(task, blocks): &Described| KeptTask {
                task: *task,
                blocks: blocks.iter().map(|block| Arc::new(file.restore(block, true).unwrap())).collect(),
            };
            let kept: Vec<KeptTask> = memory.0.lock().unwrap().values().map(restore).collect();
            let prepared = Prepared::new(moved).unwrap().with_rest(kept, true);
            let cancel = CancelToken::new();
            let ahead = dice.below(4) as u64 * BLOCK_BYTES;
            let options = RunOptions {
                meter: Meter::new(),
                observer: Some(Arc::new(Stopper(AtomicU64::new(dice.below(12) as u64 + turn), cancel.clone()))),
                cancel,
                ahead: Some(ahead),
                spill: Some(passing.clone()),
                chaos: Some(seed + turn),
                keep: Some(Keep { file: file.clone(), keeper: memory.clone(), sinks: Vec::new() }),
                ..RunOptions::default()
            };
            let io = Arc::new(TestIo { forgets: true, ..TestIo::default() });
            let engine = &engines[dice.below(2)];
            let outcome = engine.run(&prepared, &io.bindings(prepared.schedule()), &options);
            let most = prepared.schedule().peak_bytes() + ahead;
            assert!(options.meter.peak() <= most, "seed {seed}: {} of {most}", options.meter.peak());
            all += prepared.schedule().n_steps() as u64;
            match outcome {
                Ok(outcome) => {
                    skipped += outcome.stats.skipped;
                    let found: Vec<Vec<u64>> = outcome.outputs.iter().map(|output| bits(&only(output))).collect();
                    assert_eq!(found, expected, "seed {seed}");
                    // Blocks of results are kept, unless they are read from where they are.
                    let workflow = schedule.workflow();
                    let is_load = |task: &TaskId| workflow.kind(*task) == TaskKind::Load;
                    let loaded: Vec<_> =
                        workflow.tasks().filter(is_load).map(|task| workflow.outputs(task)[0]).collect();
                    for (output, kept) in workflow.outputs.iter().zip(&outcome.kept) {
                        assert_eq!(kept[0].is_none(), loaded.contains(&workflow.block(output.set, 0)));
                    }
                    break;
                }
                Err(error) => {
                    assert_eq!(error.blame(), tw_ir::Blame::Cancelled, "seed {seed}: {error}");
                    stops += 1;
                }
            }
            assert_eq!(options.meter.now(), 0, "blocks are left");
        }
        // Nobody wants the results again: only stores are left.
        let prepared = Prepared::new(schedule.clone()).unwrap().with_rest(Vec::new(), false);
        let io = Arc::new(TestIo::default());
        let outcome = Serial.run(&prepared, &io.bindings(&schedule), &RunOptions::default()).unwrap();
        assert!(outcome.outputs.iter().all(Option::is_none));
        assert_eq!(*io.stored.lock().unwrap(), replay(&schedule).stored, "seed {seed}");
    }
    assert!(stops > 400 && skipped > 1000, "{stops} stops, {skipped} of {all} steps left out");
    std::fs::remove_dir_all(directory).unwrap();
}

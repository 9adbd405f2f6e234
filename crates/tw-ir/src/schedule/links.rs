//! Dependencies, readers and results: derived from the order of steps, never encoded.

use cranelift_entity::EntityRef;

use super::placement::Placement;
use super::step::{self, Step, StepKind};
use crate::error::{Error, Result};
use crate::workflow::{TaskKind, Workflow};

/// Rows of numbers, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rows {
    ends: Vec<u32>,
    values: Vec<u32>,
}

impl Rows {
    /// Rows from pairs of a row and a value; values of a row keep their order.
    fn from_pairs(n_rows: usize, pairs: &[(u32, u32)]) -> Rows {
        let mut ends = vec![0u32; n_rows];
        for &(row, _) in pairs {
            ends[row as usize] += 1;
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        // Filled from the back of every row.
        let mut values = vec![0; pairs.len()];
        let mut cursor = ends.clone();
        for &(row, value) in pairs.iter().rev() {
            let slot = &mut cursor[row as usize];
            *slot -= 1;
            values[*slot as usize] = value;
        }
        Rows { ends, values }
    }

    /// Adds a row.
    pub(super) fn push_row(&mut self, values: impl IntoIterator<Item = u32>) {
        self.values.extend(values);
        self.ends.push(self.values.len() as u32);
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn row(&self, k: usize) -> &[u32] {
        let start = if k == 0 { 0 } else { self.ends[k - 1] };
        &self.values[start as usize..self.ends[k] as usize]
    }

    /// The values of all rows.
    pub(super) fn values(&self) -> &[u32] {
        &self.values
    }

    pub(super) fn heap_bytes(&self) -> usize {
        4 * (self.ends.capacity() + self.values.capacity())
    }
}

/// The derived facts about steps and instances that engines need besides the order.
#[derive(Clone, Debug)]
pub(super) struct Links {
    pub(super) n_dependencies: Vec<u32>,
    pub(super) successors: Rows,
    /// Per instance, the steps that read it.
    pub(super) readers: Rows,
    /// Per instance, how many outputs it is part of.
    pub(super) n_outputs: Vec<u32>,
}

const NOBODY: u32 = u32::MAX;

impl Links {
    /// Builds the graph: a reader waits for the last writer of each instance it reads, a fold for the step before it that made or changed its block.
    ///
    /// Refuses orders in which an instance is read before it is complete: dependencies would not order that reader before the next contribution, so
    /// its bits would depend on time. Moves may read an unfinished block; the chain then goes on in the instance that the last move has made.
    pub(super) fn of(workflow: &Workflow, steps: &[Step], placement: Option<&Placement>) -> Result<Links> {
        let n_instances = placement.map_or(workflow.n_blocks(), Placement::n_instances);
        let mut last_writer: Vec<u32> = vec![NOBODY; n_instances];
        // Reads before the last contribution to an instance are found when that comes.
        let mut is_read = vec![false; n_instances];
        let mut chains = placement.map(|_| Chains::of(workflow, n_instances));
        let mut n_dependencies = vec![0u32; steps.len()];
        let mut edges: Vec<(u32, u32)> = Vec::with_capacity(steps.len() * 3);
        let mut reads: Vec<(u32, u32)> = Vec::with_capacity(steps.len() * 2);
        // The last step that was made to wait for each.
        let mut last_follower: Vec<u32> = vec![NOBODY; steps.len()];
        for (position, &step) in steps.iter().enumerate() {
            let position = position as u32;
            let mut add = |from: u32, edges: &mut Vec<(u32, u32)>| {
                // A step may read several instances that another made, or one twice; parallel edges would only cost time.
                if std::mem::replace(&mut last_follower[from as usize], position) != position {
                    edges.push((from, position));
                    n_dependencies[position as usize] += 1;
                }
            };
            for read in step::reads(workflow, placement, position as usize, step).flatten() {
                match last_writer[read.index()] {
                    NOBODY => return Err(Error::internal(format!("step {position} reads {read} before it is made"))),
                    writer => add(writer, &mut edges),
                }
                is_read[read.index()] = true;
                reads.push((read.as_u32(), position));
            }
            if let (Some(chains), Some(placement)) = (&mut chains, placement) {
                chains.step(workflow, placement, position as usize, step)?;
            }
            let chain = match step.kind() {
                StepKind::Task(task) if workflow.kind(task) == TaskKind::Fold => workflow.position(task),
                _ => 0,
            };
            for written in step::writes(workflow, placement, position as usize, step) {
                let previous = last_writer[written.index()];
                let follows = |previous: u32| match steps[previous as usize].as_task() {
                    Some(task) => workflow.position(task) + 1 == chain,
                    // A fetched block: `Chains` has compared how far its chain has come.
                    None => true,
                };
                match (chain, previous) {
                    (0, NOBODY) => {}
                    (1.., previous) if previous != NOBODY && follows(previous) => add(previous, &mut edges),
                    (1.., NOBODY) => {
                        return Err(Error::internal(format!("step {position} continues a chain that has not begun")));
                    }
                    _ => return Err(Error::internal(format!("step {position} writes {written} out of turn"))),
                }
                if is_read[written.index()] {
                    return Err(Error::internal(format!("{written} is read before it is complete")));
                }
                last_writer[written.index()] = position;
            }
        }
        let mut n_outputs = vec![0; n_instances];
        for result in step::results(workflow, placement) {
            n_outputs[result.index()] += 1;
        }
        let successors = Rows::from_pairs(steps.len(), &edges);
        let readers = Rows::from_pairs(n_instances, &reads);
        Ok(Links { n_dependencies, successors, readers, n_outputs })
    }

    pub(super) fn heap_bytes(&self) -> usize {
        4 * self.n_dependencies.capacity()
            + self.successors.heap_bytes()
            + self.readers.heap_bytes()
            + 4 * self.n_outputs.capacity()
    }
}

/// How far the chains of blocks have come, by instance. Without a placement the only instance of a block is in order if its writers are.
struct Chains {
    /// Per block, the number of its contributions; 0 if one task makes it.
    lengths: Vec<u32>,
    /// Per instance, the contributions it has.
    contributions: Vec<u32>,
}

impl Chains {
    fn of(workflow: &Workflow, n_instances: usize) -> Chains {
        let mut lengths = vec![0; workflow.n_blocks()];
        for task in workflow.tasks().filter(|&task| workflow.kind(task) == TaskKind::Fold) {
            for &block in workflow.outputs(task) {
                let length = &mut lengths[block.index()];
                *length = (*length).max(workflow.position(task) + 1);
            }
        }
        Chains { lengths, contributions: vec![0; n_instances] }
    }

    /// Checks that a task reads finished blocks and that a fold has the contributions before its own; counts contributions.
    fn step(&mut self, workflow: &Workflow, placement: &Placement, position: usize, step: Step) -> Result<()> {
        match step.kind() {
            StepKind::Move(id) => {
                let moved = placement.moved(id);
                self.contributions[moved.to.index()] = self.contributions[moved.from.index()];
            }
            StepKind::Task(task) => {
                for read in placement.reads(position).flatten() {
                    if self.contributions[read.index()] != self.lengths[placement.instance(read).block.index()] {
                        return Err(Error::internal(format!("step {position} reads {read}, which is not complete")));
                    }
                }
                if workflow.kind(task) == TaskKind::Fold {
                    for written in placement.writes(position) {
                        let contributions = &mut self.contributions[written.index()];
                        if *contributions != workflow.position(task) {
                            return Err(Error::internal(format!("step {position} writes {written} out of turn")));
                        }
                        *contributions += 1;
                    }
                }
            }
        }
        Ok(())
    }
}

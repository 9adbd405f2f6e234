//! One statement under a grid: what each worker reads, owns and receives.

use std::collections::BTreeMap;

use tw_ir::index::{Idx, Var};
use tw_ir::program::{Node, Op, Program, ValueId};
use tw_ir::{BoxRegion, EntityRef};

use crate::cluster::bounds::{Touching, Volume};
use crate::cluster::mesh::{Mesh, Ownership, part};

/// A statement as the search sees it.
pub(super) struct Statement<'a> {
    pub(super) node: usize,
    pub(super) extents: Vec<u64>,
    pub(super) reads: Vec<Read<'a>>,
    pub(super) results: &'a [ValueId],
    out_shape: Vec<u64>,
    out_vars: Vec<Option<usize>>,
    /// Bytes of what is summed for one element of the output.
    state_bytes: u64,
    pub(super) candidates: Vec<Candidate>,
    pub(super) chosen: usize,
}

/// A grid that a statement may have, and what a worker receives if everything the statement reads is where it wants it.
pub(super) struct Candidate {
    pub(super) mesh: Mesh,
    pub(super) alone: u64,
}

pub(super) struct Read<'a> {
    pub(super) value: ValueId,
    idx: &'a [Idx],
    shape: Vec<u64>,
    bytes: u64,
}

impl<'a> Statement<'a> {
    /// A statement that can have a grid: every element of the output is made at one point, or is a sum over some.
    pub(super) fn of(program: &'a Program, number: usize, node: &'a Node) -> Option<Statement<'a>> {
        let Op::Index(stmt) = &node.op else { return None };
        if !stmt.out_is_plain() {
            return None;
        }
        let extents: Vec<u64> = stmt.vars.iter().map(|var| var.extent.known()).collect::<Option<_>>()?;
        let reads = stmt.reads.iter().map(|read| {
            let value = node.args[read.operand as usize];
            let ty = program.ty(value);
            Some(Read { value, idx: &read.idx, shape: ty.known_shape()?, bytes: ty.dtype.size() })
        });
        let reads = reads.collect::<Option<Vec<Read<'_>>>>()?;
        let state = stmt.accum.as_ref().map(|accum| accum.state_types());
        let state_bytes = state.unwrap_or_else(|| stmt.body_types()).iter().map(|dtype| dtype.size()).sum();
        let out_shape = program.ty(*node.results.first()?).known_shape()?;
        let out_vars = stmt.out.idx.iter().map(|idx| idx.as_var().map(|Var(var)| var as usize)).collect();
        Some(Statement {
            node: number,
            extents,
            reads,
            results: &node.results,
            out_shape,
            out_vars,
            state_bytes,
            candidates: Vec::new(),
            chosen: 0,
        })
    }

    pub(super) fn mesh(&self) -> &Mesh {
        &self.candidates[self.chosen].mesh
    }

    /// Who owns a value that belongs where this statement reads it.
    pub(super) fn ownership_of(&self, read: &Read<'_>, mesh: &Mesh) -> Ownership {
        let mut vars: Vec<Option<usize>> = Vec::new();
        for (idx, &n) in read.idx.iter().zip(&read.shape) {
            let var = idx.as_shifted_var().map(|(Var(var), _)| var as usize);
            let fits = |&var: &usize| self.extents[var] == n && !vars.contains(&Some(var));
            vars.push(var.filter(fits));
        }
        Ownership::new(&read.shape, mesh, vars)
    }

    pub(super) fn ownership_of_output(&self, mesh: &Mesh) -> Ownership {
        Ownership::new(&self.out_shape, mesh, self.out_vars.clone())
    }

    /// The box of an operand that a worker reads.
    fn box_of(&self, read: &Read<'_>, mesh: &Mesh, worker: u64) -> BoxRegion {
        let coordinates = mesh.coordinates(worker);
        let ranges: Vec<(i64, i64)> = (0..self.extents.len())
            .map(|var| part(self.extents[var], coordinates[var], mesh.factors()[var]))
            .map(|range| (range.start as i64, range.end as i64 - 1))
            .collect();
        BoxRegion::from_ranges(read.idx.iter().zip(&read.shape).map(|(idx, &n)| {
            let (lo, hi) = idx.interval(&ranges);
            let clip = |at: i64| at.clamp(0, n as i64) as u64;
            clip(lo)..clip(hi.saturating_add(1)).max(clip(lo))
        }))
    }

    /// Bytes that every worker receives. What nobody owns yet will belong where it is read.
    pub(super) fn received(&self, mesh: &Mesh, owners: &BTreeMap<ValueId, Ownership>, n_workers: u64) -> Vec<u64> {
        let own: Vec<Ownership> = (self.reads.iter())
            .map(|read| owners.get(&read.value).cloned().unwrap_or_else(|| self.ownership_of(read, mesh)))
            .collect();
        let output = self.ownership_of_output(mesh);
        let parts: u64 = (0..self.extents.len())
            .filter(|&var| !self.out_vars.contains(&Some(var)))
            .map(|var| mesh.factors()[var])
            .product();
        (0..n_workers)
            .map(|worker| {
                let mut bytes = 0;
                for (k, (read, owner)) in self.reads.iter().zip(&own).enumerate() {
                    let need = self.box_of(read, mesh, worker);
                    let mut missing = elements(&need) - elements(&need.intersect(&owner.owned(worker)));
                    if owner.owned(worker).rank() == 0 {
                        missing = !owner.owns_scalar(worker) as u64;
                    }
                    // What is read twice is received once.
                    for before in self.reads[..k].iter().filter(|before| before.value == read.value) {
                        let both = need.intersect(&self.box_of(before, mesh, worker));
                        missing =
                            missing.saturating_sub(elements(&both) - elements(&both.intersect(&owner.owned(worker))));
                    }
                    bytes += missing * read.bytes;
                }
                let owned = match self.out_shape.is_empty() {
                    true => output.owns_scalar(worker) as u64,
                    false => elements(&output.owned(worker)),
                };
                bytes + (parts - 1) * owned * self.state_bytes
            })
            .collect()
    }
}

fn elements(region: &BoxRegion) -> u64 {
    if region.is_empty() { 0 } else { region.n_elements() }
}

/// Every statement of a program whose arrays all run along its variables, for bounds, with the number of its node. Arrays are numbered as values are.
pub(in crate::cluster) fn touching(program: &Program) -> Vec<(usize, Touching)> {
    let statements = program.body.nodes.iter().enumerate();
    let statements = statements.filter_map(|(number, node)| Statement::of(program, number, node));
    let touching = |statement: Statement<'_>| {
        let mut arrays: Vec<(ValueId, Vec<usize>, u64)> = Vec::new();
        for read in &statement.reads {
            let vars = read.idx.iter().zip(&read.shape).map(|(idx, &n)| {
                let var = idx.as_var()?.0 as usize;
                (statement.extents[var] == n).then_some(var)
            });
            arrays.push((read.value, vars.collect::<Option<Vec<usize>>>()?, read.bytes));
        }
        let out = statement.out_vars.iter().copied().collect::<Option<Vec<usize>>>()?;
        arrays.push((*statement.results.first()?, out, statement.state_bytes));
        let vars: Vec<&[usize]> = arrays.iter().map(|(_, vars, _)| &vars[..]).collect();
        let volume = Volume::new(&statement.extents, &vars).ok()?;
        let arrays = arrays.iter().map(|(value, _, bytes)| (value.index(), *bytes as f64)).collect();
        Some((statement.node, Touching { volume, arrays }))
    };
    statements.filter_map(touching).collect()
}

//! Nodes of the program under construction.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use tw_ir::program::ExtentId;
use tw_ir::{Error, Extent, Op, Program, Region, Result, Span, TensorType, ValueId};

/// A program whose regions are still open, innermost last.
///
/// Equal nodes are made once. That is more than thrift: the extents of `x[mask]` and `y[mask]` are equal only if both come from the same
/// resolved count.
pub(super) struct Emitter {
    program: Program,
    open: Vec<OpenRegion>,
    /// Results of resolve nodes.
    resolved: HashSet<ValueId>,
}

#[derive(Default)]
struct OpenRegion {
    region: Region,
    /// Positions of nodes by hash.
    seen: HashMap<u64, Vec<u32>>,
}

impl Emitter {
    pub(super) fn new() -> Emitter {
        Emitter { program: Program::new(), open: vec![OpenRegion::default()], resolved: HashSet::new() }
    }

    pub(super) fn ty(&self, value: ValueId) -> &TensorType {
        self.program.ty(value)
    }

    /// Appends a node to the innermost region, or finds the equal one.
    pub(super) fn push(&mut self, op: Op, args: &[ValueId], span: &Span) -> Result<Vec<ValueId>> {
        let shared = !matches!(op, Op::Store { .. } | Op::While { .. } | Op::If { .. });
        let mut hasher = DefaultHasher::new();
        (&op, args).hash(&mut hasher);
        let hash = hasher.finish();
        if shared {
            for open in &self.open {
                let candidates = open.seen.get(&hash).map_or(&[][..], Vec::as_slice);
                let nodes = candidates.iter().map(|&k| &open.region.nodes[k as usize]);
                if let Some(node) = nodes.into_iter().find(|node| node.op == op && node.args == args) {
                    return Ok(node.results.clone());
                }
            }
        }
        let resolves = op == Op::Resolve;
        let Emitter { program, open, .. } = self;
        let innermost = open.last_mut().ok_or_else(|| Error::internal("every region is closed"))?;
        let results = program.push_into(&mut innermost.region, op, args, span)?;
        if shared {
            innermost.seen.entry(hash).or_default().push(innermost.region.nodes.len() as u32 - 1);
        }
        if resolves {
            self.resolved.extend(&results);
        }
        Ok(results)
    }

    /// The extent that a resolved scalar tells.
    pub(super) fn extent_of(&mut self, resolved: ValueId) -> Extent {
        self.program.extent_of(resolved)
    }

    /// The resolved scalar that tells an extent of this program.
    pub(super) fn extent_value(&self, extent: ExtentId) -> ValueId {
        self.program.extents[extent].value
    }

    /// True for values that stand for extents.
    pub(super) fn is_resolved(&self, value: ValueId) -> bool {
        self.resolved.contains(&value)
    }

    /// Appends a node with one result.
    pub(super) fn push1(&mut self, op: Op, args: &[ValueId], span: &Span) -> Result<ValueId> {
        match self.push(op, args, span)?.as_slice() {
            [value] => Ok(*value),
            _ => Err(Error::internal("a node with one result was expected")),
        }
    }

    /// Gives a value its first name.
    pub(super) fn name(&mut self, value: ValueId, name: &str) {
        let info = &mut self.program.values[value];
        info.name.get_or_insert_with(|| name.to_string());
    }

    /// Starts a region with parameters of these types.
    pub(super) fn enter(&mut self, params: Vec<TensorType>) -> Vec<ValueId> {
        let params: Vec<ValueId> = params.into_iter().map(|ty| self.program.new_value(ty)).collect();
        let region = Region { params: params.clone(), ..Region::default() };
        self.open.push(OpenRegion { region, seen: HashMap::new() });
        params
    }

    /// Ends the innermost region.
    pub(super) fn leave(&mut self, results: Vec<ValueId>) -> Region {
        let mut region = self.open.pop().map(|open| open.region).unwrap_or_default();
        region.results = results;
        region
    }

    /// Opens a region again to append to it.
    pub(super) fn reopen(&mut self, region: Region) {
        self.open.push(OpenRegion { region, seen: HashMap::new() });
    }

    /// The finished program.
    pub(super) fn finish(mut self, outputs: Vec<(String, ValueId)>) -> Program {
        self.program.body = self.leave(Vec::new());
        for (name, value) in outputs {
            self.program.output(name, value);
        }
        self.program
    }
}

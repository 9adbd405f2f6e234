//! The indices of a statement, and the facts collected while it is resolved.

use std::collections::HashMap;

use tw_ir::{Edge, Extent, Idx, ValueId};

use super::body::{Body, Cell, Node, Read};
use super::extents::Fact;
use crate::ast::{Binder, Name};
use crate::diagnose::{Lowered, error};
use crate::lower::Lowering;
use crate::token::Range;

/// More indices than this in one statement are a mistake, and would take long to solve.
pub(crate) const MAX_INDICES: usize = 64;

/// An index of the statement. All indices of a statement, bound or free, are numbered in one list.
pub(super) struct IndexVariable<'a> {
    pub(super) name: Name<'a>,
    /// Where it starts; the variable of the program starts at 0.
    pub(super) start: i64,
    /// How far it goes, once that is known.
    pub(super) extent: Option<Extent>,
    /// True if the user wrote its range.
    pub(super) explicit: bool,
}

/// A statement being resolved.
pub(super) struct Context<'l, 'a, 'c> {
    pub(super) lowering: &'l mut Lowering<'a, 'c>,
    pub(super) variables: Vec<IndexVariable<'a>>,
    /// Indices that may be used here: those of the left side, then those that the assignment itself binds, then those of reductions around
    /// this place, innermost last.
    pub(super) active: Vec<u32>,
    /// How many of them are on the left.
    pub(super) n_left: usize,
    /// How many of them are not bound by reductions.
    pub(super) n_free: usize,
    /// Ranges written after the statement, for indices declared later; with whether one used them.
    pub(super) ranges: Vec<(Name<'a>, i64, Extent, bool)>,
    /// True where an unknown index on the right is bound by the assignment itself, as with `+=`.
    pub(super) implicit: bool,
    /// True if some points are left out: then an access may leave its tensor at those.
    pub(super) guarded: bool,
    pub(super) facts: Vec<Fact>,
    pub(super) reads: Vec<Read>,
    /// Reads by source and indices, so that equal ones are shared.
    pub(super) shared_reads: HashMap<(ValueId, Vec<Idx>, Edge), u32>,
    pub(super) body: Body,
}

impl<'l, 'a, 'c> Context<'l, 'a, 'c> {
    pub(super) fn new(lowering: &'l mut Lowering<'a, 'c>) -> Context<'l, 'a, 'c> {
        Context {
            lowering,
            variables: Vec::new(),
            active: Vec::new(),
            n_left: 0,
            n_free: 0,
            ranges: Vec::new(),
            implicit: false,
            guarded: false,
            facts: Vec::new(),
            reads: Vec::new(),
            shared_reads: HashMap::new(),
            body: Body::default(),
        }
    }

    /// The index of this name, if it may be used here.
    pub(super) fn variable_named(&self, name: &str) -> Option<u32> {
        self.active.iter().rev().copied().find(|&v| self.variables[v as usize].name.text == name)
    }

    /// True if the range of this index is written after the statement. A value of the same name comes first: an index cannot have its name.
    pub(super) fn has_written_range(&self, name: &str) -> bool {
        self.lowering.scopes.get(name).is_none() && self.ranges.iter().any(|(given, ..)| given.text == name)
    }

    /// Makes a name an index. Its range is the given one, or one written after the statement, or follows from accesses.
    pub(super) fn declare(&mut self, name: Name<'a>, range: Option<(i64, Extent)>) -> Lowered<u32> {
        if self.lowering.scopes.get(name.text).is_some() {
            return Err(error(name.range, format!("`{}` is a value already and cannot be an index", name.text))
                .help("choose another name for the index")
                .into());
        }
        if self.variable_named(name.text).is_some() {
            return Err(error(name.range, format!("the index `{}` is bound already", name.text)).into());
        }
        if self.variables.len() == MAX_INDICES {
            return Err(error(name.range, format!("a statement with more than {MAX_INDICES} indices")).into());
        }
        let range = range.or_else(|| {
            let written = self.ranges.iter_mut().find(|(given, ..)| given.text == name.text)?;
            written.3 = true;
            Some((written.1, written.2))
        });
        let (start, extent) = range.map_or((0, None), |(start, extent)| (start, Some(extent)));
        let id = self.variables.len() as u32;
        self.variables.push(IndexVariable { name, start, extent, explicit: range.is_some() });
        self.active.push(id);
        Ok(id)
    }

    /// Makes an unknown name an index that the assignment itself binds, outside every reduction.
    pub(super) fn declare_implicit(&mut self, name: Name<'a>) -> Lowered<u32> {
        let id = self.declare(name, None)?;
        let position = self.active.len() - 1;
        self.active[self.n_free..=position].rotate_right(1);
        self.n_free += 1;
        Ok(id)
    }

    /// The start and length of `a..b`.
    pub(super) fn written_range(&mut self, binder: &Binder<'a>) -> Lowered<Option<(i64, Extent)>> {
        let Some((from, to)) = &binder.range else { return Ok(None) };
        let start = self.lowering.whole(from, "the start of a range")?;
        let place = from.range.to(to.range);
        match self.lowering.extent(to)? {
            Extent::Known(end) => {
                let length = (end as i128 - start as i128).max(0);
                let length = i64::try_from(length).map_err(|_| error(place, "the range is too long"))?;
                Ok(Some((start, Extent::Known(length as u64))))
            }
            Extent::Deferred(_) if start != 0 => {
                Err(error(place, "a range that ends at an extent that depends on data must start at 0").into())
            }
            extent => Ok(Some((0, extent))),
        }
    }

    pub(super) fn push(&mut self, node: Node, range: Range) -> Cell {
        self.body.push(node, range)
    }

    /// Resolves an expression into a body of its own.
    pub(super) fn separate(
        &mut self,
        resolve: impl FnOnce(&mut Self) -> Lowered<(Cell, Option<Cell>)>,
    ) -> Lowered<(Body, Cell, Option<Cell>)> {
        let outer = std::mem::take(&mut self.body);
        let resolved = resolve(self);
        let body = std::mem::replace(&mut self.body, outer);
        resolved.map(|(root, guard)| (body, root, guard))
    }
}

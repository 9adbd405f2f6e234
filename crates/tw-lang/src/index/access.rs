//! Reads of elements: `A[i, k]`, `x[clamp(i-1)]`, `x[idx[i]]`.

use tw_ir::{Edge, Extent, Idx, ValueId, Var};

use super::body::{Body, Cell, Gathered, Node, Read, ReadSource};
use super::context::Context;
use super::extents::{Fact, Weight};
use crate::algebra::evaluate;
use crate::ast::{Expr, ExprKind, Item, Name};
use crate::diagnose::{Lowered, counted, error, find_name};
use crate::token::Range;

/// Where one axis is accessed.
pub(super) enum Position {
    Affine(Idx),
    /// Computed by a body of its own.
    Computed(Body, Cell),
}

/// One axis of an access.
pub(super) struct AxisAccess {
    pub(super) position: Position,
    /// The rule that was written, [`Edge::Error`] if none was.
    pub(super) edge: Edge,
    pub(super) range: Range,
}

/// The edge rule that a call names, and its operand.
fn edge_rule<'e, 'a>(expr: &'e Expr<'a>) -> Option<(Edge, &'e Expr<'a>)> {
    let ExprKind::Call { function, args } = &expr.kind else { return None };
    let edge = match function.text {
        "clamp" => Edge::Clamp,
        "wrap" => Edge::Wrap,
        "fill" => Edge::Fill,
        _ => return None,
    };
    match args.as_slice() {
        [arg] if arg.keyword.is_none() => Some((edge, &arg.value)),
        _ => None,
    }
}

impl<'a> Context<'_, 'a, '_> {
    /// Reads an element of a tensor.
    pub(super) fn access(&mut self, base: &Expr<'a>, items: &[Item<'a>], range: Range) -> Lowered<Cell> {
        let data = self.base(base)?;
        let axes = self.axes(items)?;
        let ty = self.lowering.ty(data).clone();
        let name = match base.kind {
            ExprKind::Name(text) => format!("`{text}`"),
            _ => "this".to_string(),
        };
        if axes.len() != ty.rank() {
            let given = counted(axes.len(), "index is", "indices are");
            let text = format!("{name} has rank {}, but {given} given", ty.rank());
            return Err(error(range, text).note(format!("its type is {ty}")).into());
        }
        let mut gathered = Gathered { data, axes: Vec::new(), positions: Vec::new(), edge: Edge::Error };
        let (mut kept, mut gather_edges) = (Vec::new(), Vec::new());
        for (axis, access) in axes.into_iter().enumerate() {
            let extent = ty.shape[axis];
            match access.position {
                Position::Affine(idx) => {
                    let what = format!("axis {axis} of {name}");
                    kept.push((idx, access.edge, Fact::new(extent, access.edge, access.range, what)));
                }
                Position::Computed(body, root) => {
                    gathered.axes.push(axis);
                    gathered.positions.push((body, root));
                    gather_edges.push(access.edge);
                }
            }
        }
        let (idx, edge) = self.common_edge(kept, range)?;
        if gathered.axes.is_empty() {
            return Ok(self.read(data, idx, edge, range));
        }
        gathered.edge = gather_edges[0];
        if gather_edges.iter().any(|edge| *edge != gathered.edge) {
            return Err(mixed_rules(range));
        }
        self.reads.push(Read { source: ReadSource::Gather(gathered.into()), idx, edge, range });
        Ok(self.push(Node::Read(self.reads.len() as u32 - 1), range))
    }

    /// Reads a value at an index, sharing equal reads.
    pub(super) fn read(&mut self, value: ValueId, idx: Vec<Idx>, edge: Edge, range: Range) -> Cell {
        let key = (value, idx, edge);
        let read = match self.shared_reads.get(&key) {
            Some(&read) => read,
            None => {
                let read = self.reads.len() as u32;
                self.reads.push(Read { source: ReadSource::Value(value), idx: key.1.clone(), edge, range });
                self.shared_reads.insert(key, read);
                read
            }
        };
        self.push(Node::Read(read), range)
    }

    /// The accessed tensor: an expression on whole tensors.
    fn base(&mut self, base: &Expr<'a>) -> Lowered<ValueId> {
        if let ExprKind::Name(text) = base.kind
            && self.variable_named(text).is_some()
        {
            return Err(error(base.range, format!("`{text}` is an index and has no elements")).into());
        }
        let context: &Self = self;
        if let Some(Name { text, .. }) = find_name(base, &mut |name| context.variable_named(name).is_some()) {
            return Err(error(base.range, format!("what is indexed here uses the index `{text}` itself"))
                .help("only whole tensors can be indexed; give it a name in a statement of its own")
                .into());
        }
        self.lowering.tensor_of(base)
    }

    /// The axes of an access.
    pub(super) fn axes(&mut self, items: &[Item<'a>]) -> Lowered<Vec<AxisAccess>> {
        items
            .iter()
            .map(|item| {
                let Item::At(expr) = item else {
                    return Err(error(item.range(), "slices do not mix with index notation")
                        .help("use an index with a range: `for i in 0..n`")
                        .into());
                };
                let (edge, expr) = edge_rule(expr).unwrap_or((Edge::Error, expr));
                let position = match self.affine(expr)? {
                    Some(idx) => Position::Affine(idx),
                    None => {
                        let (body, root, _) = self.separate(|context| Ok((evaluate(context, expr)?, None)))?;
                        Position::Computed(body, root)
                    }
                };
                Ok(AxisAccess { position, edge, range: expr.range })
            })
            .collect()
    }

    /// One rule for all axes of an access. An axis without a rule must then stay inside, and wrapping beside another rule becomes a remainder.
    fn common_edge(&mut self, kept: Vec<(Idx, Edge, Fact)>, range: Range) -> Lowered<(Vec<Idx>, Edge)> {
        let mut rules: Vec<Edge> = Vec::new();
        for (_, edge, _) in &kept {
            if *edge != Edge::Error && !rules.contains(edge) {
                rules.push(*edge);
            }
        }
        let wrapped_by_hand = rules.len() > 1 && rules.contains(&Edge::Wrap);
        if wrapped_by_hand {
            rules.retain(|edge| *edge != Edge::Wrap);
        }
        if rules.len() > 1 {
            return Err(mixed_rules(range));
        }
        let common = rules.first().copied().unwrap_or(Edge::Error);
        let mut all = Vec::with_capacity(kept.len());
        for (mut idx, edge, mut fact) in kept {
            fact.idx = idx.clone();
            fact.must_stay_inside = edge == Edge::Error && common != Edge::Error;
            if wrapped_by_hand && edge == Edge::Wrap {
                match fact.extent {
                    Extent::Known(n @ 1..) => idx = idx.modulo(n as i64),
                    _ => return Err(mixed_rules(range)),
                }
            }
            self.facts.push(fact);
            all.push(idx);
        }
        Ok((all, common))
    }

    /// Says that an index on the left lies in an axis of the target.
    pub(super) fn left_fact(
        &mut self,
        idx: &Idx,
        extent: Extent,
        edge: Edge,
        weight: Weight,
        range: Range,
        axis: usize,
    ) {
        let mut fact = Fact::new(extent, edge, range, format!("axis {axis} on the left"));
        fact.idx = idx.clone();
        fact.weight = weight;
        self.facts.push(fact);
    }
}

fn mixed_rules(range: Range) -> crate::diagnose::Failure {
    error(range, "this access mixes edge rules in a way that is not supported")
        .help("use one of fill and clamp for all axes that need a rule")
        .into()
}

/// The variable, if the expression is nothing but that.
pub(super) fn bare(idx: &Idx) -> Option<u32> {
    idx.as_var().map(|Var(v)| v)
}

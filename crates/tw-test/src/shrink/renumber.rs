//! Numbers the values of a program anew, without those that nothing makes.

use std::collections::BTreeMap;

use tw_ir::program::{ExtentDef, ExtentId, SourceOp, ValueInfo};
use tw_ir::{Extent, Op, PrimaryMap, Program, Region, ValueId};

/// The same program with its values numbered in the order they are made.
pub(super) fn renumber(program: &Program) -> Program {
    let mut numbers = Numbers { old: program, new: PrimaryMap::new(), map: BTreeMap::new(), extents: BTreeMap::new() };
    numbers.declare(&program.body);
    let mut extents = PrimaryMap::new();
    for (id, extent) in &program.extents {
        if let Some(&value) = numbers.map.get(&extent.value) {
            numbers.extents.insert(id, extents.push(ExtentDef { value }));
        }
    }
    let mut result = program.clone();
    numbers.region(&mut result.body);
    for info in numbers.new.values_mut() {
        info.ty.shape.iter_mut().for_each(|extent| *extent = renamed(&numbers.extents, *extent));
    }
    result.values = numbers.new;
    result.extents = extents;
    result
}

struct Numbers<'a> {
    old: &'a Program,
    new: PrimaryMap<ValueId, ValueInfo>,
    map: BTreeMap<ValueId, ValueId>,
    extents: BTreeMap<ExtentId, ExtentId>,
}

fn renamed(map: &BTreeMap<ExtentId, ExtentId>, extent: Extent) -> Extent {
    match extent {
        Extent::Deferred(id) => Extent::Deferred(map.get(&id).copied().unwrap_or(id)),
        known => known,
    }
}

impl Numbers<'_> {
    fn declare(&mut self, region: &Region) {
        self.add(&region.params);
        for node in &region.nodes {
            node.op.regions().for_each(|region| self.declare(region));
            self.add(&node.results);
        }
    }

    fn add(&mut self, values: &[ValueId]) {
        for &value in values {
            self.map.insert(value, self.new.push(self.old.values[value].clone()));
        }
    }

    fn region(&self, region: &mut Region) {
        self.values(&mut region.params);
        self.values(&mut region.results);
        for node in &mut region.nodes {
            self.values(&mut node.args);
            self.values(&mut node.results);
            match &mut node.op {
                Op::Index(stmt) => {
                    stmt.vars.iter_mut().for_each(|var| var.extent = renamed(&self.extents, var.extent));
                    self.extents(&mut stmt.out.shape);
                }
                Op::Source(SourceOp::Input { ty, .. }) => self.extents(&mut ty.shape),
                Op::Scatter { extents, .. } => self.extents(extents),
                Op::Compact { extent, .. } => *extent = renamed(&self.extents, *extent),
                Op::Reshape { shape } => self.extents(shape),
                Op::While { condition: first, body: second } | Op::If { then: first, otherwise: second } => {
                    self.region(first);
                    self.region(second);
                }
                _ => {}
            }
        }
    }

    fn values(&self, values: &mut [ValueId]) {
        values.iter_mut().for_each(|value| *value = self.map.get(value).copied().unwrap_or(*value));
    }

    fn extents(&self, extents: &mut [Extent]) {
        extents.iter_mut().for_each(|extent| *extent = renamed(&self.extents, *extent));
    }
}

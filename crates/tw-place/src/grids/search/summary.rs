//! A summary program: one statement represents all statements of one form, so an unrolled loop is a few choices, not thousands.

use std::collections::{BTreeMap, HashMap};

use tw_ir::EntityRef;
use tw_ir::program::ValueId;

use super::{Search, Statement, Value};
use crate::grids::SearchReport;

/// The class of a value: its producer's form, the forms of its readers, and its element size. A source is in a class of its own.
type Alike = (Option<usize>, Vec<(usize, usize)>, u64);

impl<'a> Search<'a> {
    /// Statements of each form.
    pub(super) fn by_form(&self) -> Vec<Vec<usize>> {
        let mut found: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (k, statement) in self.statements.iter().enumerate() {
            found.entry(statement.form).or_default().push(k);
        }
        found.into_values().collect()
    }

    /// Copies the meshes and source owners of a summary to all statements of the same forms.
    pub(super) fn follow(&mut self, summary: &Search<'_>, value_of: &[ValueId]) {
        let chosen: BTreeMap<usize, usize> = summary.statements.iter().map(|s| (s.form, s.chosen)).collect();
        for unit in self.by_form() {
            self.choose(&unit, chosen[&self.statements[unit[0]].form]);
        }
        for (number, class) in value_of.iter().enumerate() {
            let Some(anchor) = summary.values[class.index()].anchor else { continue };
            let form = summary.statements[anchor].form;
            let reader = self.values[number].readers.iter().find(|(k, _)| self.statements[*k].form == form);
            if let Some(&(reader, _)) = reader {
                self.anchor(number, reader);
            }
        }
    }

    /// The search of the summary, with one statement per form and one value per class. Also returns the representative of each value.
    pub(super) fn summary(&self) -> (Search<'a>, Vec<ValueId>) {
        let form = |k: usize| self.statements[k].form;
        let mut classes: BTreeMap<Alike, usize> = BTreeMap::new();
        let (mut values, mut value_of): (Vec<Value>, Vec<ValueId>) = (Vec::new(), Vec::new());
        for (number, value) in self.values.iter().enumerate() {
            let mut readers: Vec<(usize, usize)> = value.readers.iter().map(|&(k, read)| (form(k), read)).collect();
            readers.sort_unstable();
            readers.dedup();
            let new = values.len();
            // Sources and what the user has placed are not alike, even if they are read alike.
            let class = match value.maker.filter(|_| !value.fixed) {
                Some(maker) => *classes.entry((Some(form(maker)), readers, value.bytes)).or_insert(new),
                None => *classes.entry((None, Vec::new(), number as u64)).or_insert(new),
            };
            if class == new {
                let owner = value.owner.clone().filter(|_| value.fixed);
                let (readers, received) = (Vec::new(), self.nothing.clone());
                let (bytes, size, fixed) = (value.bytes, value.size, value.fixed);
                let (maker, anchor) = (None, None);
                values.push(Value { bytes, size, maker, readers, anchor, owner, fixed, received, weight: 0 });
            }
            values[class].weight += 1;
            value_of.push(ValueId::new(class));
        }
        let mut summary = Search {
            machine: self.machine,
            forms: self.forms.clone(),
            statements: Vec::new(),
            begun: Vec::new(),
            values,
            owner_computes: BTreeMap::new(),
            total: self.nothing.to_vec(),
            nothing: self.nothing.clone(),
            known: HashMap::new(),
            undo: Vec::new(),
            report: SearchReport::default(),
            looks: 0,
        };
        // Statements of one form that make or read other values are there several times; they change together.
        let mut known: BTreeMap<(usize, Vec<ValueId>, Vec<ValueId>), usize> = BTreeMap::new();
        for statement in &self.statements {
            let classes = |values: &[ValueId]| values.iter().map(|value| value_of[value.index()]).collect::<Vec<_>>();
            let (reads, results) = (classes(&statement.reads), classes(&statement.results));
            let new = summary.statements.len();
            let number = *known.entry((statement.form, reads.clone(), results.clone())).or_insert(new);
            if number == new {
                let (node, form, sums) = (statement.node, statement.form, self.nothing.clone());
                summary.add(Statement { node, form, reads, results, chosen: 0, sums, weight: 0 });
            }
            summary.statements[number].weight += 1;
        }
        (summary, value_of)
    }
}

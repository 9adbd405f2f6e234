//! The reads of each input of the user.

use std::collections::BTreeMap;
use std::sync::Arc;

use tw_ir::kernel::Kernel;
use tw_ir::program::{FunctionRef, Op, Program, SourceOp};
use tw_ir::schedule::Schedule;
use tw_ir::span::Span;
use tw_ir::workflow::SourceDecl;

use super::cost::reads_input;
use super::source::Place;
use super::{Explanation, Turn, units};

/// The reads of one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputUse {
    key: InputKey,
    /// The input, or its reader.
    pub name: String,
    /// Its place in the program.
    pub span: Span,
    /// Its size.
    pub bytes: u64,
    /// Bytes of it that are read, each as often as it is.
    pub read_bytes: u64,
}

/// The identity of an input across segments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum InputKey {
    Named(String),
    /// A function that reads something outside, by its address.
    Function(usize),
}

impl InputKey {
    fn of(function: &FunctionRef) -> InputKey {
        InputKey::Function(Arc::as_ptr(&function.0).cast::<()>() as usize)
    }
}

impl InputUse {
    /// A further read of an input that an earlier segment names.
    pub(super) fn again(name: &str, read_bytes: u64) -> InputUse {
        InputUse {
            key: InputKey::Named(name.to_string()),
            name: name.to_string(),
            span: Span::None,
            bytes: 0,
            read_bytes,
        }
    }

    /// The average number of passes over it.
    pub fn passes(&self) -> f64 {
        if self.bytes == 0 { 0.0 } else { self.read_bytes as f64 / self.bytes as f64 }
    }
}

/// The reads of a segment. `is_stored` marks sources that are values of an earlier segment; they are not inputs.
pub(crate) fn of_segment(before: &Program, schedule: &Schedule, is_stored: &dyn Fn(&str) -> bool) -> Vec<InputUse> {
    let workflow = schedule.workflow();
    let mut read: BTreeMap<InputKey, u64> = BTreeMap::new();
    for task in schedule.order() {
        let key = match &workflow.kernels[workflow.kernel(task)].kernel {
            Kernel::Load { source } => match &workflow.sources[*source] {
                SourceDecl::Input { name, .. } => InputKey::Named(name.clone()),
                _ => continue,
            },
            Kernel::Call(function) if function.0.reads_input() => InputKey::of(function),
            _ => continue,
        };
        let made = workflow.outputs(task).iter().map(|&block| workflow.block_size(block).estimate()).sum::<u64>();
        let sum = read.entry(key).or_default();
        *sum = sum.saturating_add(made);
    }
    let mut inputs: Vec<InputUse> = Vec::new();
    for node in &before.body.nodes {
        let (key, name) = match &node.op {
            Op::Source(SourceOp::Input { name, .. }) if !is_stored(name) => {
                (InputKey::Named(name.clone()), name.clone())
            }
            Op::BlockFn(call) if reads_input(&node.op) => {
                (InputKey::of(&call.function), call.function.0.name().to_string())
            }
            _ => continue,
        };
        let bytes =
            node.results.iter().map(|&value| before.ty(value).known_bytes().unwrap_or(0)).fold(0, u64::saturating_add);
        // An unread source is not an input of this plan.
        if let Some(&read_bytes) = read.get(&key)
            && inputs.iter().all(|known| known.key != key)
        {
            inputs.push(InputUse { key, name, span: node.span, bytes, read_bytes });
        }
    }
    inputs
}

impl Explanation {
    /// The reads of each input over the whole program, in the order of first use. Loop bodies count once.
    pub fn inputs(&self) -> Vec<InputUse> {
        let mut all: Vec<InputUse> = Vec::new();
        let sections = self.plans().filter(|(section, _)| section.at.turn != Turn::First);
        for input in sections.flat_map(|(_, plan)| &plan.inputs) {
            match all.iter_mut().find(|known| known.key == input.key) {
                Some(known) => known.read_bytes = known.read_bytes.saturating_add(input.read_bytes),
                None => all.push(input.clone()),
            }
        }
        all
    }

    /// The number of passes over each input, if some input is not read exactly once.
    pub(crate) fn input_lines(&self) -> Vec<String> {
        let inputs = self.inputs();
        if inputs.iter().all(|input| input.read_bytes == input.bytes) {
            return Vec::new();
        }
        // Files that one line reads in one way are told together.
        let mut groups: Vec<(Place, String, Vec<&InputUse>)> = Vec::new();
        for input in &inputs {
            let (place, passes) = (self.place(&input.span), passes(input.passes()));
            match groups.iter_mut().find(|(at, often, _)| *at == place && *often == passes) {
                Some((_, _, group)) => group.push(input),
                None => groups.push((place, passes, vec![input])),
            }
        }
        let line = |(place, passes, group): &(Place, String, Vec<&InputUse>)| {
            let bytes = units::bytes(group.iter().map(|input| input.bytes).sum());
            let name = match group.as_slice() {
                [only] => only.name.clone(),
                several => units::counted(several.len() as u64, "input"),
            };
            format!("{name} ({place}), {bytes}: {passes}")
        };
        groups.iter().map(line).collect()
    }
}

/// A number of passes in words.
pub(crate) fn passes(passes: f64) -> String {
    let number = if passes == passes.round() { format!("{passes:.0}") } else { format!("{passes:.2}") };
    format!("{number} {}", if number == "1" { "pass" } else { "passes" })
}

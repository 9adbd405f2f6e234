//! The oracle: a slow interpreter of programs, and the definition of what a program means.
//!
//! One small function per operator, element by element, straight from the documentation of [`Op`]. Every engine is compared with it, so it
//! prefers being obviously right to being fast. Contributions to one element are combined in row-major order of the points that make them.

use std::collections::BTreeMap;
use std::rc::Rc;

use cranelift_entity::SecondaryMap;

use crate::array::Array;
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::program::{Node, Op, Program, Region, SourceOp, TensorType, ValueId, verify};
use crate::shape::{self, Extent};
use crate::spec::{GatherSpec, ScanSpec, ScatterSpec, SortSpec};

mod arrange;
mod block_fn;
mod control;
mod gather;
mod groups;
mod index;
mod points;
mod routine;
mod scan;
mod sort;

#[cfg(test)]
mod tests;

/// The results of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramResults {
    /// The outputs by name.
    pub outputs: BTreeMap<String, Array>,
    /// The arrays that store nodes would write, by path. Of two stores to one path, the later wins.
    pub stored: BTreeMap<String, Array>,
}

/// The outputs of a program by name. Stores are computed and thrown away.
///
/// The program is verified first, so an ill-formed one is an error and not a panic. A loop that never ends runs for ever; see
/// [`evaluate_with_limit`].
pub fn evaluate(program: &Program, inputs: &BTreeMap<String, Array>) -> Result<BTreeMap<String, Array>> {
    Ok(evaluate_all(program, inputs)?.outputs)
}

/// The outputs of a program, and what it would store.
pub fn evaluate_all(program: &Program, inputs: &BTreeMap<String, Array>) -> Result<ProgramResults> {
    evaluate_with_limit(program, inputs, u64::MAX)
}

/// Like [`evaluate_all`], but gives up with a resource error after running `max_steps` nodes. A loop counts one step for every turn, and
/// one for every node it runs.
pub fn evaluate_with_limit(
    program: &Program,
    inputs: &BTreeMap<String, Array>,
    max_steps: u64,
) -> Result<ProgramResults> {
    verify(program)?;
    let mut machine = Machine {
        program,
        inputs,
        values: SecondaryMap::new(),
        stored: BTreeMap::new(),
        max_steps,
        steps_left: max_steps,
    };
    let results = machine.region(&program.body, &[])?;
    let outputs = program.outputs.iter().zip(results).map(|(name, array)| (name.clone(), (*array).clone())).collect();
    Ok(ProgramResults { outputs, stored: machine.stored })
}

/// The state of an evaluation.
struct Machine<'a> {
    program: &'a Program,
    inputs: &'a BTreeMap<String, Array>,
    /// The newest array of each value; nodes of a loop overwrite theirs at every turn.
    values: SecondaryMap<ValueId, Option<Rc<Array>>>,
    stored: BTreeMap<String, Array>,
    max_steps: u64,
    steps_left: u64,
}

impl Machine<'_> {
    /// Runs a region with its parameters bound to the given arrays.
    fn region(&mut self, region: &Region, params: &[Rc<Array>]) -> Result<Vec<Rc<Array>>> {
        for (&param, array) in region.params.iter().zip(params) {
            self.values[param] = Some(array.clone());
        }
        for node in &region.nodes {
            self.node(node).map_err(|error| error.at(&node.span))?;
        }
        region.results.iter().map(|&value| self.get(value)).collect()
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        self.step()?;
        let args: Vec<Rc<Array>> = node.args.iter().map(|&value| self.get(value)).collect::<Result<_>>()?;
        let results = match &node.op {
            Op::While { condition, body } => self.run_while(condition, body, args)?,
            Op::If { then, otherwise } => self.run_if(then, otherwise, &args[0])?,
            Op::Resolve => args,
            Op::Store { path } => {
                self.stored.insert(path.clone(), (*args[0]).clone());
                Vec::new()
            }
            _ => self.apply(node, &args)?.into_iter().map(Rc::new).collect(),
        };
        for (&value, array) in node.results.iter().zip(results) {
            self.check_type(value, &array)?;
            self.values[value] = Some(array);
        }
        Ok(())
    }

    /// The operators without control flow: arrays in, arrays out.
    fn apply(&self, node: &Node, args: &[Rc<Array>]) -> Result<Vec<Array>> {
        let arrays: Vec<&Array> = args.iter().map(|array| &**array).collect();
        let fills: Vec<Scalar> = node.args.iter().map(|&value| self.program.ty(value).fill).collect();
        match &node.op {
            Op::Source(SourceOp::Input { name, ty }) => Ok(vec![self.input(name, ty)?]),
            Op::Source(SourceOp::Constant(array)) => Ok(vec![(**array).clone()]),
            Op::Index(stmt) => {
                let extents: Vec<Extent> = stmt.vars.iter().map(|var| var.extent).collect();
                let (extents, out_shape) = (self.extents(&extents)?, self.extents(&stmt.out.shape)?);
                index::run(stmt, &extents, &out_shape, &arrays, &fills)
            }
            Op::Scan(ScanSpec { accum, axis, exclusive, reverse }) => {
                scan::run(accum, *axis as usize, *exclusive, *reverse, &arrays)
            }
            Op::Gather(GatherSpec { axes, edge }) => {
                gather::gather(axes, *edge, fills[0], arrays[0], &arrays[1..]).map(|a| vec![a])
            }
            Op::Scatter { spec: ScatterSpec { axes, accum, edge }, extents } => {
                gather::scatter(axes, &self.extents(extents)?, accum, *edge, &arrays)
            }
            Op::Compact { extent, .. } => arrange::compact(self.extent(*extent)?, arrays[0], &arrays[1..]),
            Op::Expand { .. } => Ok(vec![arrange::expand(arrays[0], arrays[1], arrays[2])?]),
            Op::Sort { spec: SortSpec { axis, descending }, limit } => {
                sort::run(arrays[0], *axis as usize, *descending, *limit)
            }
            Op::Reshape { shape } => arrange::reshape(arrays[0], &self.extents(shape)?).map(|a| vec![a]),
            Op::Retile { .. } => Ok(vec![arrays[0].clone()]),
            Op::Concat { axis } => arrange::concat(&arrays, *axis as usize).map(|a| vec![a]),
            Op::BlockFn(call) => {
                let types: Vec<&TensorType> = node.args.iter().map(|&value| self.program.ty(value)).collect();
                block_fn::run(call, &types, &arrays)
            }
            Op::Routine(spec) => routine::run(spec, &arrays, self.steps_left),
            Op::Resolve | Op::While { .. } | Op::If { .. } | Op::Store { .. } => {
                Err(Error::internal(format!("{} is not a function of arrays alone", node.op.name())))
            }
        }
    }

    fn input(&self, name: &str, ty: &TensorType) -> Result<Array> {
        let array = self.inputs.get(name).ok_or_else(|| Error::source(format!("the input `{name}` is missing")))?;
        if array.dtype() != ty.dtype || array.shape() != self.extents(&ty.shape)? {
            let given = format!("{}{}", array.dtype(), shape::display(array.shape()));
            return Err(Error::source(format!("the input `{name}` should be {ty}, but is {given}")));
        }
        Ok(array.clone())
    }

    fn step(&mut self) -> Result<()> {
        self.steps_left = self
            .steps_left
            .checked_sub(1)
            .ok_or_else(|| Error::resource(format!("the program did not end within {} steps", self.max_steps)))?;
        Ok(())
    }

    fn get(&self, value: ValueId) -> Result<Rc<Array>> {
        self.values[value].clone().ok_or_else(|| Error::internal(format!("{value} has not been computed")))
    }

    /// The extent of an axis; a deferred one is the newest value of its scalar.
    fn extent(&self, extent: Extent) -> Result<u64> {
        match extent {
            Extent::Known(n) => Ok(n),
            Extent::Deferred(id) => {
                let told_by = self.program.told_by(extent);
                let value = told_by.ok_or_else(|| Error::internal(format!("nothing tells the extent {id}")))?;
                let array = self.get(value)?;
                let n = array.item().ok_or_else(|| Error::internal(format!("the extent {value} is not a scalar")))?;
                let name = self.program.display_name(value);
                u64::try_from(n.as_i64()).map_err(|_| Error::data(format!("the extent `{name}` is negative: {n}")))
            }
        }
    }

    fn extents(&self, extents: &[Extent]) -> Result<Vec<u64>> {
        extents.iter().map(|&extent| self.extent(extent)).collect()
    }

    /// Inference and evaluation must agree; where extents depend on data, only evaluation can see that they do not.
    fn check_type(&self, value: ValueId, array: &Array) -> Result<()> {
        let ty = self.program.ty(value);
        if array.dtype() == ty.dtype && array.shape() == self.extents(&ty.shape)? {
            return Ok(());
        }
        let given = format!("{}{}", array.dtype(), shape::display(array.shape()));
        Err(Error::data(format!("`{}` should be {ty}, but came out as {given}", self.program.display_name(value))))
    }
}

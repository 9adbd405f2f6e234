//! From statements to a program.
//!
//! Statements that fail do not stop the others: the names that they assign are marked, and uses of those are not reported again.

use std::collections::{BTreeMap, BTreeSet};

use tw_ir::program::FunctionTable;
use tw_ir::{Error, Op, TensorType, ValueId};

use super::ast::{Assign, AssignOp, ExprKind, Name, Operator, Stmt, StmtKind};
use super::catalog::Catalog;
use super::diagnose::{Failure, Lowered, MAX_ERRORS, Place, check_fits, check_literal_fits, error, unknown};
use super::emit::Emitter;
use super::index::{self, IndexStatement};
use super::names::{Binding, Scopes};
use super::params::ParamValue;
use super::token::Range;
use super::{InputDecl, ProgramUnit, algebra};
use tw_build as build;
use tw_build::Reduction;

mod block_call;
mod call;
mod control;
mod create;
mod declare;
mod functions;
mod linalg;
mod list;
mod rearrange;
mod replace;
mod subscript;
mod value;

pub(super) use value::Value;

/// Everything that is known while statements are read in order.
pub(super) struct Lowering<'a, 'c> {
    /// The whole program, to tell names that come later from names that never do.
    statements: &'c [Stmt<'a>],
    pub(super) emitter: Emitter,
    pub(super) scopes: Scopes<'a>,
    catalog: &'c dyn Catalog,
    functions: &'c FunctionTable,
    sets: &'c BTreeMap<String, ParamValue>,
    params: BTreeMap<String, ParamValue>,
    inputs: Vec<InputDecl>,
    outputs: Vec<(String, ValueId)>,
    /// Paths written so far.
    stored: BTreeSet<&'a str>,
    errors: Vec<Error>,
    /// Random calls so far; those without a seed are numbered.
    n_random: u64,
}

/// Gives a parsed program its meaning, or says everything that is wrong with it.
pub(super) fn lower<'a>(
    statements: &[Stmt<'a>],
    end: Range,
    sets: &BTreeMap<String, ParamValue>,
    catalog: &dyn Catalog,
    functions: &FunctionTable,
) -> Result<ProgramUnit, Vec<Error>> {
    let mut lowering = Lowering {
        statements,
        emitter: Emitter::new(),
        scopes: Scopes::new(),
        catalog,
        functions,
        sets,
        params: BTreeMap::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        stored: BTreeSet::new(),
        errors: Vec::new(),
        n_random: 0,
    };
    lowering.lower_all(statements);
    lowering.check_sets();
    if lowering.errors.is_empty() && lowering.outputs.is_empty() {
        let help = "name what you want: `output x`, or `output x -> \"x.npy\"`";
        lowering.errors.push(error(end, "the program has no output").help(help));
    }
    if !lowering.errors.is_empty() {
        return Err(lowering.errors);
    }
    let program = lowering.emitter.finish(lowering.outputs);
    // All statements have been checked; an error of the verifier is a fault of this crate.
    tw_ir::program::verify(&program).map_err(|error| vec![error])?;
    Ok(ProgramUnit { program, params: lowering.params, inputs: lowering.inputs })
}

impl<'a> Lowering<'a, '_> {
    /// Lowers statements in order. True if all of them have a meaning.
    fn lower_all(&mut self, statements: &[Stmt<'a>]) -> bool {
        let mut fine = true;
        for statement in statements {
            if self.errors.len() >= MAX_ERRORS {
                return false;
            }
            if let Err(failure) = self.statement(statement).at(statement.range) {
                fine = false;
                if let Failure::New(error) = failure {
                    self.errors.push(error);
                }
                for name in control::assigned(std::slice::from_ref(statement)) {
                    self.scopes.bind(name, Binding::Broken);
                }
            }
        }
        fine
    }

    fn statement(&mut self, statement: &Stmt<'a>) -> Lowered<()> {
        let range = statement.range;
        match &statement.kind {
            StmtKind::Param { name, value } => self.param(*name, value),
            StmtKind::Input { name, ty, path, tile } => self.input(*name, ty.as_ref(), *path, tile.as_ref(), range),
            StmtKind::Declare { name, ty } => {
                self.check_assignable(*name)?;
                let ty = self.tensor_type(ty)?;
                self.scopes.bind(name.text, Binding::Declared(ty));
                Ok(())
            }
            StmtKind::Assign(assign) => self.assign(assign, range),
            StmtKind::BlockCall(call) => self.block_call(call, range),
            StmtKind::Unpack { targets, value } => self.unpack(targets, value, range),
            StmtKind::Output { name, path } => self.output(*name, *path, range),
            StmtKind::While { condition, body } => self.while_loop(condition, body, range),
            StmtKind::If { condition, then, otherwise } => self.branch(condition, then, otherwise, range),
        }
    }

    fn assign(&mut self, assign: &Assign<'a>, range: Range) -> Lowered<()> {
        self.check_assignable(assign.target)?;
        if let Some(value) = self.replaced(assign, range)? {
            self.define(assign.target.text, Value::Tensor(value));
            return Ok(());
        }
        let by_index = assign.indices.is_some()
            || assign.guard.is_some()
            || !assign.ranges.is_empty()
            || (assign.op == AssignOp::Set && matches!(assign.value.kind, ExprKind::Reduce(_)));
        let value = if by_index {
            Value::Tensor(index::lower(self, IndexStatement::of(assign, range))?)
        } else {
            let value = algebra::evaluate(self, &assign.value)?;
            match assign.op {
                AssignOp::Set => value,
                AssignOp::Update(operator) => {
                    let before = self.read(assign.target)?;
                    algebra::operate(self, operator, before, value, range)?
                }
            }
        };
        let value = self.as_declared(assign.target, value, range)?;
        self.define(assign.target.text, value);
        Ok(())
    }

    /// Binds a name to a value.
    pub(super) fn define(&mut self, name: &'a str, value: Value) {
        match value {
            Value::Literal(literal) => self.scopes.bind(name, Binding::Literal(literal)),
            Value::Tensor(tensor) => {
                self.emitter.name(tensor, name);
                self.scopes.bind(name, Binding::Tensor(tensor));
            }
        }
    }

    /// Checks that an assigned value has the declared type of its name.
    fn as_declared(&mut self, target: Name<'a>, value: Value, range: Range) -> Lowered<Value> {
        let Some(Binding::Declared(declared)) = self.scopes.get(target.text) else { return Ok(value) };
        let declared = declared.clone();
        let value = match value {
            Value::Literal(literal) => {
                check_literal_fits(literal, declared.dtype, range)?;
                self.tensor(Value::Literal(literal.cast(declared.dtype)), range)?
            }
            Value::Tensor(tensor) => tensor,
        };
        let ty = self.ty(value).clone();
        if ty.shape != declared.shape {
            let text = format!("`{}` was declared as {declared}, but this is {ty}", target.text);
            return Err(error(range, text).into());
        }
        check_fits(ty.dtype, declared.dtype, range)?;
        Ok(Value::Tensor(self.converted(value, &declared, range)?))
    }

    /// The value with the element type of another.
    pub(super) fn converted(&mut self, value: ValueId, like: &TensorType, range: Range) -> Lowered<ValueId> {
        let ty = self.ty(value).clone();
        if ty.dtype == like.dtype {
            return Ok(value);
        }
        let op = build::cast(&ty, like.dtype).at(range)?;
        self.push1(op, &[value], range)
    }

    fn check_assignable(&self, name: Name<'a>) -> Lowered<()> {
        if let Some(Binding::Param(_)) = self.scopes.get(name.text) {
            let help = "parameters keep their value; choose another name";
            return Err(error(name.range, format!("`{}` is a parameter", name.text)).help(help).into());
        }
        if Reduction::named(name.text).is_some() {
            // `sum[i](..)` would not be an access of a tensor called `sum`.
            let text = format!("`{}` is a reduction and cannot be the name of a tensor", name.text);
            return Err(error(name.range, text).into());
        }
        Ok(())
    }

    /// The value of a name where it is read.
    pub(super) fn read(&self, name: Name<'a>) -> Lowered<Value> {
        match self.scopes.get(name.text) {
            Some(Binding::Param(value) | Binding::Literal(value)) => Ok(Value::Literal(*value)),
            Some(Binding::Tensor(value)) => Ok(Value::Tensor(*value)),
            Some(Binding::Broken) => Err(Failure::Reported),
            Some(Binding::Declared(ty)) => Err(error(name.range, format!("`{}` has no value yet", name.text))
                .note(format!("it is declared as {ty}, but nothing is assigned before this"))
                .into()),
            Some(Binding::OneBranch) => Err(error(
                name.range,
                format!("`{}` has no value if the branch that assigns it is not taken", name.text),
            )
            .help("assign it before the `if`, or in both branches")
            .into()),
            None => match value::constant_named(name.text) {
                Some(value) => Ok(Value::Literal(value)),
                None if control::assigned(self.statements).contains(&name.text) => {
                    Err(error(name.range, format!("`{}` is read before it is assigned", name.text)).into())
                }
                None => Err(unknown("value", name, self.scopes.readable()).into()),
            },
        }
    }

    fn output(&mut self, name: Name<'a>, path: Option<Name<'a>>, range: Range) -> Lowered<()> {
        if !self.scopes.at_top() {
            return Err(error(range, "an output inside a block")
                .help("outputs are made once: put it after the loop or branch")
                .into());
        }
        if self.outputs.iter().any(|(given, _)| given == name.text) {
            return Err(error(name.range, format!("`{}` is an output already", name.text)).into());
        }
        if let Some(path) = path
            && !self.stored.insert(path.text)
        {
            return Err(error(path.range, format!("\"{}\" is written already", path.text)).into());
        }
        let value = self.read(name)?;
        let value = self.tensor(value, range)?;
        if let Some(path) = path {
            self.emitter.push(Op::Store { path: path.text.to_string() }, &[value], &range.span())?;
        }
        self.outputs.push((name.text.to_string(), value));
        Ok(())
    }

    /// Appends a node with one result.
    pub(super) fn push1(&mut self, op: Op, args: &[ValueId], range: Range) -> Lowered<ValueId> {
        Ok(self.emitter.push1(op, args, &range.span())?)
    }

    pub(super) fn ty(&self, value: ValueId) -> &TensorType {
        self.emitter.ty(value)
    }
}

/// The names of the functions on whole tensors.
#[cfg(test)]
pub(super) fn function_names() -> impl Iterator<Item = &'static str> {
    functions::FUNCTIONS.into_iter().flatten().map(|function| function.name)
}

/// The operator of an accumulating assignment, as written.
pub(super) fn assign_text(operator: Operator) -> String {
    use tw_ir::BinaryOp::*;
    match operator {
        Operator::Arithmetic(Add) => "+=".to_string(),
        Operator::Arithmetic(Sub) => "-=".to_string(),
        Operator::Arithmetic(Mul) => "*=".to_string(),
        Operator::Arithmetic(Div) => "/=".to_string(),
        Operator::Arithmetic(op) | Operator::Logical(op) => format!("{op}="),
        Operator::MatrixProduct => "@=".to_string(),
    }
}

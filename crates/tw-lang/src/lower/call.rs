//! Calls: finding the function and matching arguments with its parameters.

use tw_ir::{DType, Scalar, ValueId};

use super::declare::dtype_named;
use super::functions::FUNCTIONS;
use super::{Lowering, Value};
use crate::algebra::{Elementwise, evaluate};
use crate::ast::{Arg, Expr, ExprKind, Name};
use crate::diagnose::{Failure, Lowered, Place, counted, error, nearest, unknown};
use crate::token::Range;
use tw_build as build;

/// A function on whole tensors.
pub(crate) struct Function {
    /// Its name, with the family before a point.
    pub(super) name: &'static str,
    /// Arguments that must be given, by position or by name.
    pub(super) required: &'static [&'static str],
    /// What further arguments by position are, if any number of them may follow.
    pub(super) rest: Option<&'static str>,
    /// Arguments that may be left out. By position only if no others follow.
    pub(super) optional: &'static [&'static str],
    /// Its implementation.
    pub(super) lower: for<'l, 'e, 'a, 'c> fn(&'l mut Lowering<'a, 'c>, &Call<'e, 'a>) -> Lowered<Value>,
}

/// Arguments matched with parameters.
pub(crate) struct Call<'e, 'a> {
    pub(super) function: &'static Function,
    pub(super) range: Range,
    named: Vec<(&'static str, &'e Expr<'a>)>,
    /// Further arguments by position.
    pub(super) rest: Vec<&'e Expr<'a>>,
}

impl<'e, 'a> Call<'e, 'a> {
    /// Matches arguments with parameters.
    pub(super) fn new(function: &'static Function, args: &'e [Arg<'a>], range: Range) -> Lowered<Call<'e, 'a>> {
        let mut call = Call { function, range, named: Vec::new(), rest: Vec::new() };
        let by_position: Vec<&'static str> = match function.rest {
            None => function.required.iter().chain(function.optional).copied().collect(),
            Some(_) => function.required.to_vec(),
        };
        let mut position = 0;
        for arg in args {
            let name = match arg.keyword {
                Some(keyword) => {
                    let mut parameters = function.required.iter().chain(function.optional).copied();
                    match parameters.clone().find(|parameter| *parameter == keyword.text) {
                        Some(name) => name,
                        None => return Err(call.wrong_keyword(keyword, &mut parameters).into()),
                    }
                }
                None if position < by_position.len() => {
                    position += 1;
                    by_position[position - 1]
                }
                None if function.rest.is_some() => {
                    call.rest.push(&arg.value);
                    continue;
                }
                None => return Err(error(arg.value.range, call.too_many(args.len())).into()),
            };
            if call.get(name).is_some() {
                return Err(error(arg.value.range, format!("the argument `{name}` is given twice")).into());
            }
            call.named.push((name, &arg.value));
        }
        if let Some(missing) = function.required.iter().find(|name| call.get(name).is_none()) {
            return Err(error(range, format!("`{}` needs an argument `{missing}`", function.name)).into());
        }
        Ok(call)
    }

    fn wrong_keyword(&self, keyword: Name<'_>, known: &mut dyn Iterator<Item = &'static str>) -> tw_ir::Error {
        let name = self.function.name;
        let known: Vec<&str> = known.collect();
        let wrong = error(keyword.range, format!("`{name}` has no argument called `{}`", keyword.text));
        match nearest(keyword.text, known.iter().copied()) {
            Some(similar) => wrong.help(format!("did you mean `{similar}`?")),
            None if known.is_empty() => wrong,
            None => wrong.help(format!("its arguments are {}", known.join(", "))),
        }
    }

    fn too_many(&self, given: usize) -> String {
        let n = self.function.required.len() + self.function.optional.len();
        format!("`{}` takes at most {}, not {given}", self.function.name, counted(n, "argument", "arguments"))
    }

    /// An argument by name, if it is given.
    pub(super) fn get(&self, name: &str) -> Option<&'e Expr<'a>> {
        self.named.iter().find(|(given, _)| *given == name).map(|(_, expr)| *expr)
    }

    /// An argument that must be given.
    pub(super) fn require(&self, name: &str) -> Lowered<&'e Expr<'a>> {
        self.get(name)
            .ok_or_else(|| error(self.range, format!("`{}` needs an argument `{name}`", self.function.name)).into())
    }

    /// A tensor argument that must be given.
    pub(super) fn tensor(&self, lowering: &mut Lowering<'a, '_>, name: &str) -> Lowered<ValueId> {
        lowering.tensor_of(self.require(name)?)
    }

    /// A whole number.
    pub(super) fn whole(&self, lowering: &mut Lowering<'a, '_>, name: &str, default: i64) -> Lowered<i64> {
        self.get(name).map_or(Ok(default), |expr| lowering.whole(expr, &format!("`{name}`")))
    }

    /// A number.
    pub(super) fn number(&self, lowering: &mut Lowering<'a, '_>, name: &str, default: f64) -> Lowered<f64> {
        match self.get(name) {
            None => Ok(default),
            Some(expr) => Ok(lowering.literal(expr, &format!("`{name}`"))?.as_f64()),
        }
    }

    /// True or false.
    pub(super) fn flag(&self, lowering: &mut Lowering<'a, '_>, name: &str, default: bool) -> Lowered<bool> {
        match self.get(name) {
            None => Ok(default),
            Some(expr) => Ok(lowering.literal(expr, &format!("`{name}`"))?.is_true()),
        }
    }

    /// The name of an element type.
    pub(super) fn dtype(&self) -> Lowered<Option<DType>> {
        match self.get("dtype") {
            None => Ok(None),
            Some(Expr { kind: ExprKind::Name(text), range, .. }) => {
                Ok(Some(dtype_named(Name { text, range: *range })?))
            }
            Some(expr) => Err(error(expr.range, "an element type was expected, for example `dtype=f32`").into()),
        }
    }

    /// One axis of a tensor of this rank.
    pub(super) fn axis(&self, lowering: &mut Lowering<'a, '_>, rank: usize, default: Option<i64>) -> Lowered<usize> {
        let (axis, range) = match (self.get("axis"), default) {
            (Some(expr), _) => (lowering.whole(expr, "an axis")?, expr.range),
            (None, Some(default)) => (default, self.range),
            (None, None) if rank == 1 => (0, self.range),
            (None, None) => {
                return Err(error(
                    self.range,
                    format!("`{}` of a tensor of rank {rank} needs an axis", self.function.name),
                )
                .help("for example `axis=0`")
                .into());
            }
        };
        build::normalize_axis(axis, rank).at(range)
    }

    /// Several axes, or `None` if the argument is left out.
    pub(super) fn axes(&self, lowering: &mut Lowering<'a, '_>, rank: usize) -> Lowered<Option<Vec<usize>>> {
        let Some(expr) = self.get("axis") else { return Ok(None) };
        let axes = match &expr.kind {
            ExprKind::Tuple(parts) => {
                parts.iter().map(|part| lowering.whole(part, "an axis")).collect::<Lowered<Vec<i64>>>()?
            }
            _ => vec![lowering.whole(expr, "an axis")?],
        };
        Ok(Some(build::normalize_axes(&axes, rank).at(expr.range)?))
    }

    /// Further arguments as whole numbers; one tuple stands for its parts.
    pub(super) fn whole_rest(&self, lowering: &mut Lowering<'a, '_>, what: &str) -> Lowered<Vec<i64>> {
        self.rest_parts().into_iter().map(|expr| lowering.whole(expr, what)).collect()
    }

    /// Further arguments; one tuple stands for its parts.
    pub(super) fn rest_parts(&self) -> Vec<&'e Expr<'a>> {
        match self.rest.as_slice() {
            [Expr { kind: ExprKind::Tuple(parts), .. }] => parts.iter().collect(),
            rest => rest.to_vec(),
        }
    }
}

impl<'a> Lowering<'a, '_> {
    /// The function on whole tensors of this name.
    pub(crate) fn function_named(&self, name: &str) -> Option<&'static Function> {
        FUNCTIONS.iter().copied().flatten().find(|function| function.name == name)
    }

    pub(super) fn call(&mut self, function: Name<'a>, args: &[Arg<'a>], range: Range) -> Lowered<Value> {
        let Some(found) = self.function_named(function.text) else {
            return Err(self.unknown_function(function));
        };
        let call = Call::new(found, args, range)?;
        (found.lower)(self, &call)
    }

    pub(super) fn family_call(
        &mut self,
        family: Name<'a>,
        function: Name<'a>,
        args: &[Arg<'a>],
        range: Range,
    ) -> Lowered<Value> {
        let full = format!("{}.{}", family.text, function.text);
        let Some(found) = self.function_named(&full) else {
            let known = self.members(family.text);
            let wrong = error(function.range, format!("no function is called `{full}`"));
            return Err(wrong.help(format!("`{}` has {}", family.text, known.join(", "))).into());
        };
        let call = Call::new(found, args, range)?;
        (found.lower)(self, &call)
    }

    /// Why a function that is called does not exist.
    /// The functions of a family, such as `uniform` of `random`.
    fn members(&self, family: &str) -> Vec<&'static str> {
        let all = FUNCTIONS.iter().copied().flatten();
        all.filter_map(|known| known.name.strip_prefix(family)?.strip_prefix('.')).collect()
    }

    pub(crate) fn unknown_function(&self, function: Name<'a>) -> Failure {
        if function.text == "read" {
            return error(function.range, "a file is read by an input")
                .help("for example `input x = read(\"x.npy\")` at the start of the program")
                .into();
        }
        if self.scopes.get(function.text).is_some() {
            let wrong = error(function.range, format!("`{}` is a tensor and cannot be called", function.text));
            return wrong.help("use brackets for elements, or `*` to multiply").into();
        }
        if matches!(function.text, "clamp" | "wrap" | "fill") {
            let wrong =
                error(function.range, format!("`{}` is an edge rule, for use in index notation", function.text));
            return wrong.help(format!("for example `y[i] = x[{}(i-1)]`", function.text)).into();
        }
        let members = self.members(function.text);
        if let Some(first) = members.first() {
            let text = format!("`{0}` is a family of functions: {1}", function.text, members.join(", "));
            let wrong = error(function.range, text);
            return wrong.help(format!("call one of them: `{}.{first}(..)`", function.text)).into();
        }
        if let Some(family) = FUNCTIONS
            .iter()
            .copied()
            .flatten()
            .find_map(|known| known.name.strip_suffix(function.text)?.strip_suffix('.'))
        {
            let wrong = error(function.range, format!("no function is called `{}`", function.text));
            return wrong.help(format!("did you mean `{family}.{}`?", function.text)).into();
        }
        let known = FUNCTIONS.iter().copied().flatten().map(|known| known.name).chain(Elementwise::names());
        unknown("function", function, known).into()
    }

    /// An argument that may be a number, as a literal of a type.
    pub(super) fn scalar_argument(&mut self, expr: &Expr<'a>, what: &str) -> Lowered<Scalar> {
        match evaluate(self, expr)? {
            Value::Literal(value) => Ok(value),
            Value::Tensor(_) => Err(error(expr.range, format!("{what} must be known before the program runs")).into()),
        }
    }
}

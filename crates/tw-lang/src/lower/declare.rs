//! Parameters, inputs, types and tilings.

use tw_ir::program::{SourceOp, verify_type};
use tw_ir::{Axis, DType, Error, Extent, Op, TensorType, Tiling};

use super::{Lowering, Value};
use crate::ast::{Expr, Name, Tile, TileAxis, TypeExpr};
use crate::diagnose::{Lowered, Place, error, nearest};
use crate::names::Binding;
use crate::params::ParamValue;
use crate::token::Range;
use crate::{InputDecl, algebra, fold};

impl<'a> Lowering<'a, '_> {
    pub(super) fn param(&mut self, name: Name<'a>, value: &Expr<'a>) -> Lowered<()> {
        if !self.scopes.at_top() {
            return Err(error(name.range, "a parameter inside a block")
                .help("parameters are known before anything runs")
                .into());
        }
        if self.params.contains_key(name.text) {
            return Err(error(name.range, format!("`{}` is a parameter already", name.text)).into());
        }
        if self.scopes.get(name.text).is_some() {
            return Err(error(name.range, format!("`{}` has a value already", name.text))
                .help("parameters come first")
                .into());
        }
        let default = self.literal(value, "a parameter")?;
        if default.dtype().is_complex() {
            return Err(error(value.range, "a parameter is a real number")
                .help("make the complex number from two parameters")
                .into());
        }
        let given = self.sets.get(name.text).copied();
        let chosen = match (ParamValue::from_scalar(default), given) {
            (default, None) => default,
            (ParamValue::Float(_), Some(ParamValue::Int(v))) => ParamValue::Float(v as f64),
            (ParamValue::Int(_), Some(given @ (ParamValue::Float(_) | ParamValue::Bool(_)))) => {
                match fold::whole(given.scalar()) {
                    Some(v) => ParamValue::Int(v),
                    None => return Err(wrong_set(name, given, "a whole number")),
                }
            }
            (ParamValue::Float(_), Some(given @ ParamValue::Bool(_))) => {
                return Err(wrong_set(name, given, "a number"));
            }
            (ParamValue::Bool(_), Some(given @ (ParamValue::Int(_) | ParamValue::Float(_)))) => {
                return Err(wrong_set(name, given, "true or false"));
            }
            (_, Some(given)) => given,
        };
        self.params.insert(name.text.to_string(), chosen);
        self.scopes.bind(name.text, Binding::Param(chosen.scalar()));
        Ok(())
    }

    /// Every value given from outside must be for a parameter of the program.
    pub(super) fn check_sets(&mut self) {
        for name in self.sets.keys().filter(|name| !self.params.contains_key(*name)) {
            let error = Error::source(format!("the program has no parameter called `{name}`"));
            let known: Vec<&str> = self.params.keys().map(String::as_str).collect();
            self.errors.push(match nearest(name, known.iter().copied()) {
                Some(similar) => error.help(format!("did you mean `{similar}`?")),
                None if known.is_empty() => error.help("it has no parameters at all"),
                None => error.help(format!("its parameters are {}", known.join(", "))),
            });
        }
    }

    pub(super) fn input(
        &mut self,
        name: Name<'a>,
        ty: Option<&TypeExpr<'a>>,
        path: Option<Name<'a>>,
        tile: Option<&Tile<'a>>,
        range: Range,
    ) -> Lowered<()> {
        self.check_assignable(name)?;
        if !self.scopes.at_top() {
            return Err(error(range, "an input inside a block").help("inputs come first").into());
        }
        if self.inputs.iter().any(|input| input.name == name.text) {
            return Err(error(name.range, format!("`{}` is an input already", name.text)).into());
        }
        let declared = ty.map(|ty| self.tensor_type(ty)).transpose()?;
        let stored = match path {
            Some(path) => Some(self.catalog.header(path.text).at(path.range)?),
            None => None,
        };
        let mut ty = match (declared, stored) {
            (Some(declared), Some(stored)) if !declared.same_shape(&stored) => {
                let text = format!("`{}` is declared as {declared}, but its file holds {stored}", name.text);
                return Err(error(range, text).into());
            }
            (Some(declared), Some(stored)) => TensorType { tiling: stored.tiling, ..declared },
            (Some(ty), None) | (None, Some(ty)) => ty,
            (None, None) => return Err(Error::internal("an input without type or file").into()),
        };
        if let Some(tile) = tile {
            ty.tiling = Some(self.tiling(tile, &ty)?);
        }
        verify_type(&ty).at(range)?;
        let source = SourceOp::Input { name: name.text.to_string(), ty: ty.clone() };
        let value = self.push1(Op::Source(source), &[], range)?;
        let path = path.map(|path| path.text.to_string());
        self.inputs.push(InputDecl { name: name.text.to_string(), ty, path, span: range.span() });
        self.define(name.text, Value::Tensor(value));
        Ok(())
    }

    /// `f64[n, m]`.
    pub(super) fn tensor_type(&mut self, ty: &TypeExpr<'a>) -> Lowered<TensorType> {
        let dtype = dtype_named(ty.dtype)?;
        let mut shape = Vec::with_capacity(ty.extents.len());
        for extent in &ty.extents {
            shape.push(self.extent(extent)?);
        }
        let ty_range = ty.range;
        let ty = TensorType::dense(dtype, shape);
        verify_type(&ty).at(ty_range)?;
        Ok(ty)
    }

    /// An extent: a whole number that is not negative, or the extent of another tensor.
    pub(crate) fn extent(&mut self, expr: &Expr<'a>) -> Lowered<Extent> {
        match algebra::evaluate(self, expr)? {
            Value::Literal(value) => match fold::whole(value) {
                Some(n) if n >= 0 => Ok(Extent::Known(n as u64)),
                Some(n) => Err(error(expr.range, format!("an extent of {n}; extents are not negative")).into()),
                None => Err(error(expr.range, format!("an extent of {value}; extents are whole numbers"))
                    .help("`//` divides and rounds down")
                    .into()),
            },
            // `x.shape[0]` of a tensor whose extent depends on data is the value that extent stands for.
            Value::Tensor(value) if self.is_resolved(value) => Ok(self.emitter.extent_of(value)),
            Value::Tensor(_) => Err(error(expr.range, "an extent must be known before the program runs")
                .help("use numbers and parameters")
                .into()),
        }
    }

    /// A whole number known now.
    pub(crate) fn whole(&mut self, expr: &Expr<'a>, what: &str) -> Lowered<i64> {
        let value = self.literal(expr, what)?;
        fold::whole(value)
            .ok_or_else(|| error(expr.range, format!("{what} must be a whole number, not {value}")).into())
    }

    /// A number known now.
    pub(super) fn literal(&mut self, expr: &Expr<'a>, what: &str) -> Lowered<tw_ir::Scalar> {
        match algebra::evaluate(self, expr)? {
            Value::Literal(value) => Ok(value),
            Value::Tensor(_) => Err(error(expr.range, format!("{what} must be known before the program runs"))
                .help("use numbers and parameters")
                .into()),
        }
    }

    /// `tile(500, (3 1 4))` for a tensor of the given type. One number stands for every axis, -1 for a whole axis.
    pub(super) fn tiling(&mut self, tile: &Tile<'a>, ty: &TensorType) -> Lowered<Tiling> {
        let Some(shape) = ty.known_shape() else {
            return Err(error(tile.range, "a tiling of a tensor whose extents depend on data").into());
        };
        let for_all = matches!(tile.axes.as_slice(), [TileAxis::Uniform(_)]) && shape.len() > 1;
        if !for_all && tile.axes.len() != shape.len() {
            let text = format!("a tiling of {} axes for {ty}, which has {}", tile.axes.len(), shape.len());
            return Err(error(tile.range, text).into());
        }
        let mut axes = Vec::with_capacity(shape.len());
        for (k, &extent) in shape.iter().enumerate() {
            axes.push(match &tile.axes[if for_all { 0 } else { k }] {
                TileAxis::Uniform(length) => match self.whole(length, "the length of a tile")? {
                    -1 => Axis::whole(extent),
                    n if n > 0 => Axis::uniform(extent, n as u64),
                    n => {
                        return Err(error(length.range, format!("a tile of length {n}"))
                            .help("-1 is the whole axis")
                            .into());
                    }
                },
                TileAxis::Ragged(lengths) => {
                    let mut sizes = Vec::with_capacity(lengths.len());
                    for length in lengths {
                        let n = self.whole(length, "the length of a tile")?;
                        sizes.push(u64::try_from(n).map_err(|_| error(length.range, format!("a tile of length {n}")))?);
                    }
                    Axis::from_lengths(&sizes).at(tile.range)?
                }
            });
        }
        let tiling = Tiling::Grid(axes.into());
        tiling.verify(&shape).at(tile.range)?;
        Ok(tiling)
    }
}

fn wrong_set(name: Name<'_>, given: ParamValue, wanted: &str) -> crate::diagnose::Failure {
    error(name.range, format!("parameter `{}` is {wanted}, but was set to {given}", name.text)).into()
}

/// The element type of this name.
pub(super) fn dtype_named(name: Name<'_>) -> Lowered<DType> {
    name.text.parse().map_err(|()| {
        let known: Vec<&str> = DType::PHYSICAL.iter().map(|dtype| dtype.name()).collect();
        error(name.range, format!("no element type is called `{}`", name.text))
            .help(format!("element types are {}, datetime64[unit], timedelta64[unit]", known.join(", ")))
            .into()
    })
}

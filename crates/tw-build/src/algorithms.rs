//! Linear algebra as programs over blocks.
//!
//! A routine is one node of a program, [`Op::Routine`], until the planner expands it. Its algorithm then adds nodes to the program. [`BlockedRoutines`]
//! is the library that the node refers to. No routine is expanded while a program is built: every shape follows from the shapes of the operands.
//!
//! Block functions of `tw-functions` factor panels, triangles and small matrices; they are found by name. Everything else is
//! contractions, slices and gathers, which the planner tiles and fuses like any other statement. Which rows are exchanged depends on data, but which blocks meet does not:
//! pivots are index tensors, and a row exchange is a gather.
//!
//! - **Panels** are the tiles of the user, or up to 512 columns. A matrix of up to 1024 columns without tiles is one task. A stack of matrices is cut into smaller stacks,
//!   one task each; block functions see whole matrices.
//! - **LU** factors a panel with all its rows in one task, so a pivot is the largest element of its whole column. The plan is known before any pivot: one
//!   gather takes the rows that became pivots, another the rows below. The rows of L get their final order once, at the end. `solve` never forms L; it eliminates the
//!   right-hand side along with the matrix. `inv` forms `U^-1 L^-1`, with L^-1 as a triangle, and permutes columns at the end: a quarter less work than
//!   solving for the identity.
//! - **Large panels** of LU and QR are factored by way of narrower ones (`narrow.rs`), so that tasks stay small.
//! - **QR** of a tall matrix factors blocks of rows, then eight triangles at a time (TSQR). Q stays a product of levels until it is needed. Other matrices use
//!   blocked Householder reflections, `I - V T V^H` per panel.
//! - **Cholesky** and triangular systems proceed panel by panel.
//! - **SVD** first reduces a tall or wide matrix to a triangle. The triangle, and every eigenvalue problem, is one task; a blocked reduction to band form is not
//!   implemented. Compressed SVD uses products only.
//! - **Fourier transforms** take whole fibres along their axis; fibres that are too long for a task are transformed in several steps (`fourier/long.rs`).
//!
//! `routine.rs` maps the routines of [`tw_ir::program::Routine`] to the methods here.

use tw_ir::dtype::DType;
use tw_ir::error::{Error, Result};
use tw_ir::program::{BlockFn, BlockResult, FunctionTable, Op, OperandMode, Program, ResultMode, TensorType};
use tw_ir::scalar::{BinaryOp, UnaryOp};
use tw_ir::{Axis, Extent, Grid, Scalar, Span, Tiling, ValueId, shape};

use crate as build;
use crate::{Joined, SliceItem};
use tw_ir::tiling::cut_leading;

mod cholesky;
mod compressed;
mod fourier;
mod least_squares;
mod lu;
mod narrow;
mod qr;
mod routine;
mod select;
mod solve;
mod spectral;
mod tall;
mod triangular;

pub use routine::BlockedRoutines;

/// A matrix with up to this many rows or columns is factored in one task, unless the user tiled it.
const ONE_TASK: u64 = 1024;

/// Columns of a panel if the user did not tile the matrix: few enough that factoring panels is a small part of the work.
const PANEL: std::ops::RangeInclusive<u64> = 128..=512;

/// The approximate number of panels if the user did not tile the matrix. The trailing matrix is read and written once per panel, and all panels but the first can be
/// factored while other threads still update the trailing matrix.
const N_PANELS: u64 = 6;

/// The largest number of panels, because each adds a few nodes. Finer tiles are merged.
const MAX_PANELS: u64 = 128;

/// Elements of all tiles beside each other of a matrix that is much higher than wide.
const TALL_TILE_ELEMENTS: u64 = 1 << 20;

/// Elements of a block of small matrices.
const STACK_ELEMENTS: u64 = 1 << 17;

/// Linear algebra on a graph.
pub struct Algorithms<'a> {
    program: &'a mut Program,
    functions: &'a FunctionTable,
}

/// Functions of the library that work along an axis are known for the last axes only.
const N_AXES: usize = 8;

/// Columns of a matrix that are factored in one task, with all rows that are left.
struct Panel<V> {
    /// The columns, in the whole matrix.
    range: std::ops::Range<u64>,
    /// Rows and columns that are left, with those of the panel.
    rows: u64,
    columns: u64,
    width: u64,
    /// Pivots or reflections it has.
    n: u64,
    value: V,
}

/// A result of a function that sees whole matrices.
#[derive(Clone, Copy)]
enum Shaped {
    Matrix(u64, u64),
    Vector(u64),
    Number,
}

impl Shaped {
    fn extents(self) -> Vec<u64> {
        match self {
            Shaped::Matrix(rows, columns) => vec![rows, columns],
            Shaped::Vector(n) => vec![n],
            Shaped::Number => Vec::new(),
        }
    }
}

impl<'a> Algorithms<'a> {
    /// Algorithms that add to a program and call the block functions of the library in `functions`.
    fn new(program: &'a mut Program, functions: &'a FunctionTable) -> Algorithms<'a> {
        Algorithms { program, functions }
    }

    fn ty(&self, value: &ValueId) -> &TensorType {
        self.program.ty(*value)
    }

    fn shape(&self, value: &ValueId) -> Result<Vec<u64>> {
        let unknown =
            || Error::source("linear algebra on a tensor whose shape depends on data").help("compute it first");
        shape::require_all(&self.ty(value).shape, unknown)
    }

    /// Rows and columns of the matrices.
    fn size(&self, value: &ValueId) -> Result<(u64, u64)> {
        match self.shape(value)?[..] {
            [.., rows, columns] => Ok((rows, columns)),
            _ => Err(Error::source(format!("a matrix has two axes, not {}", self.ty(value).rank()))),
        }
    }

    fn square(&self, value: &ValueId) -> Result<u64> {
        match self.size(value)? {
            (rows, columns) if rows == columns => Ok(rows),
            (rows, columns) => Err(Error::source(format!("a square matrix is needed, not {rows} by {columns}"))),
        }
    }

    /// A matrix in a type that can be factored: doubles for integers.
    fn numbers(&mut self, value: &ValueId) -> Result<ValueId> {
        match self.ty(value).dtype {
            DType::F32 | DType::F64 | DType::C64 | DType::C128 => Ok(*value),
            dtype if dtype.is_half() || dtype.is_time() => {
                Err(Error::types(format!("linear algebra on {dtype}"))
                    .help("convert it to a wider floating point type"))
            }
            _ => self.cast(value, DType::F64),
        }
    }

    /// Two operands in their common type.
    fn alike(&mut self, a: &ValueId, b: &ValueId) -> Result<(ValueId, ValueId)> {
        let (a, b) = (self.numbers(a)?, self.numbers(b)?);
        let dtype = build::common([self.ty(&a).dtype, self.ty(&b).dtype])?;
        Ok((self.cast(&a, dtype)?, self.cast(&b, dtype)?))
    }

    // Nodes.

    fn push(&mut self, op: Op, args: &[&ValueId]) -> Result<Vec<ValueId>> {
        let args: Vec<ValueId> = args.iter().map(|&&value| value).collect();
        self.program.push(op, &args, &Span::None)
    }

    fn one(&mut self, op: Op, args: &[&ValueId]) -> Result<ValueId> {
        let mut results = self.push(op, args)?;
        results.pop().ok_or_else(|| Error::internal("an operation without a result"))
    }

    fn joined(&mut self, joined: Joined, args: &[&ValueId]) -> Result<ValueId> {
        let mut operands = Vec::with_capacity(args.len());
        for (prepare, &arg) in joined.prepare.into_iter().zip(args) {
            operands.push(match prepare {
                Some(op) => self.one(op, &[arg])?,
                None => *arg,
            });
        }
        self.one(joined.join, &operands.iter().collect::<Vec<_>>())
    }

    fn cast(&mut self, x: &ValueId, dtype: DType) -> Result<ValueId> {
        if self.ty(x).dtype == dtype {
            return Ok(*x);
        }
        let op = build::cast(self.ty(x), dtype)?;
        self.one(op, &[x])
    }

    fn unary(&mut self, op: UnaryOp, x: &ValueId) -> Result<ValueId> {
        let op = build::unary(op, self.ty(x))?;
        self.one(op, &[x])
    }

    fn binary(&mut self, op: BinaryOp, a: &ValueId, b: &ValueId) -> Result<ValueId> {
        let op = build::binary(op, self.ty(a), self.ty(b))?;
        self.one(op, &[a, b])
    }

    fn with_number(&mut self, op: BinaryOp, a: &ValueId, b: f64) -> Result<ValueId> {
        let op = build::binary(op, self.ty(a), Scalar::F64(b))?;
        self.one(op, &[a])
    }

    fn matmul(&mut self, a: &ValueId, b: &ValueId) -> Result<ValueId> {
        let op = build::matmul(self.ty(a), self.ty(b))?;
        self.one(op, &[a, b])
    }

    /// `a^H b`.
    fn adjoint_matmul(&mut self, a: &ValueId, b: &ValueId) -> Result<ValueId> {
        let a = self.conj(a)?;
        let op = build::tensordot(self.ty(&a), self.ty(b), &[(0, 0)])?;
        self.one(op, &[&a, b])
    }

    fn conj(&mut self, x: &ValueId) -> Result<ValueId> {
        match self.ty(x).dtype.is_complex() {
            true => self.unary(UnaryOp::Conj, x),
            false => Ok(*x),
        }
    }

    /// The matrices with rows and columns exchanged, and conjugated.
    fn adjoint(&mut self, x: &ValueId) -> Result<ValueId> {
        let rank = self.ty(x).rank();
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(rank - 2, rank - 1);
        let transposed = self.permuted(x, &order)?;
        self.conj(&transposed)
    }

    fn permuted(&mut self, x: &ValueId, order: &[usize]) -> Result<ValueId> {
        let op = build::permute(self.ty(x), order)?;
        self.one(op, &[x])
    }

    /// Part of a matrix or vector.
    fn part(&mut self, x: &ValueId, ranges: &[std::ops::Range<u64>]) -> Result<ValueId> {
        let shape = self.shape(x)?;
        if ranges.iter().zip(&shape).all(|(range, &n)| *range == (0..n)) {
            return Ok(*x);
        }
        let items: Vec<SliceItem> = ranges
            .iter()
            .map(|range| SliceItem::Slice { start: Some(range.start as i64), stop: Some(range.end as i64), step: 1 })
            .collect();
        let op = build::slice(self.ty(x), &items)?;
        self.one(op, &[x])
    }

    /// Part of a vector.
    fn stretch(&mut self, x: &ValueId, range: std::ops::Range<u64>) -> Result<ValueId> {
        self.part(x, std::slice::from_ref(&range))
    }

    fn concat(&mut self, parts: &[ValueId], axis: usize) -> Result<ValueId> {
        let mut kept = Vec::with_capacity(parts.len());
        for part in parts {
            if self.shape(part)?[axis] > 0 {
                kept.push(part);
            }
        }
        match (&kept[..], parts) {
            ([], [first, ..]) => Ok(*first),
            ([part], _) => Ok(*(*part)),
            _ => {
                let types: Vec<&TensorType> = kept.iter().map(|part| self.ty(part)).collect();
                let joined = build::concat(&types, axis)?;
                self.joined(joined, &kept)
            }
        }
    }

    /// Rows of a matrix, or elements of a vector, in the order of an index vector.
    fn take(&mut self, x: &ValueId, places: &ValueId) -> Result<ValueId> {
        self.take_along(x, places, 0)
    }

    fn take_along(&mut self, x: &ValueId, places: &ValueId, axis: usize) -> Result<ValueId> {
        let joined = build::take(self.ty(x), self.ty(places), axis)?;
        self.joined(joined, &[x, places])
    }

    fn full(&mut self, shape: &[u64], value: Scalar) -> Result<ValueId> {
        let extents: Vec<Extent> = shape.iter().map(|&n| Extent::Known(n)).collect();
        self.one(build::full(&extents, value), &[])
    }

    fn eye(&mut self, rows: u64, columns: u64, dtype: DType) -> Result<ValueId> {
        self.one(build::eye(rows, columns, 0, dtype)?, &[])
    }

    fn retiled(&mut self, x: &ValueId, grid: impl Into<Grid>) -> Result<ValueId> {
        let tiling = Tiling::Grid(grid.into());
        if self.ty(x).tiling.as_ref() == Some(&tiling) {
            return Ok(*x);
        }
        self.one(Op::Retile { tiling }, &[x])
    }

    /// Calls a block function of the library.
    fn call(
        &mut self,
        name: &str,
        args: &[(&ValueId, &[OperandMode])],
        results: Vec<BlockResult>,
    ) -> Result<Vec<ValueId>> {
        let function = self.functions.get(name)?;
        let operands = args.iter().map(|(_, modes)| modes.to_vec()).collect();
        let values: Vec<&ValueId> = args.iter().map(|(value, _)| *value).collect();
        self.push(Op::BlockFn(BlockFn { function, operands, results }), &values)
    }

    /// Calls a function that sees whole matrices: one, or stacks of them of one shape.
    fn whole(&mut self, name: &str, args: &[&ValueId], results: &[(DType, Shaped)]) -> Result<Vec<ValueId>> {
        let mut stack = self.shape(args[0])?;
        stack.truncate(stack.len() - 2);
        for arg in args {
            let (rows, columns) = self.size(arg)?;
            if rows * columns == 0 {
                return results
                    .iter()
                    .map(|(dtype, shaped)| {
                        let shape: Vec<u64> = stack.iter().copied().chain(shaped.extents()).collect();
                        self.full(&shape, dtype.zero())
                    })
                    .collect();
            }
        }
        // The same for every operand, whatever its shape, so that all are cut alike.
        let mut longest = 1;
        for arg in args {
            let (rows, columns) = self.size(arg)?;
            longest = longest.max(rows).max(columns);
        }
        let mut operands = Vec::with_capacity(args.len());
        for &arg in args {
            operands.push(if stack.is_empty() { *arg } else { self.cut_stack(arg, longest)? });
        }
        let grid = (0..stack.len() as u32).map(OperandMode::Grid);
        let modes: Vec<OperandMode> = grid.chain([OperandMode::Whole, OperandMode::Whole]).collect();
        let results = results
            .iter()
            .map(|&(dtype, shaped)| {
                let grid = (0..stack.len() as u32).map(ResultMode::Grid);
                BlockResult { dtype, modes: grid.chain(shaped.extents().into_iter().map(ResultMode::Whole)).collect() }
            })
            .collect();
        let args: Vec<(&ValueId, &[OperandMode])> = operands.iter().map(|value| (value, &modes[..])).collect();
        self.call(name, &args, results)
    }

    /// Cuts a stack of matrices, of sides up to `longest`, into stacks that are a task each.
    fn cut_stack(&mut self, x: &ValueId, longest: u64) -> Result<ValueId> {
        let shape = self.shape(x)?;
        let per_matrix = longest.saturating_pow(2);
        let mut grid = Grid::whole(&shape);
        let stack: Vec<usize> = (0..shape.len() - 2).collect();
        cut_leading(&mut grid[..stack.len()], &stack, (STACK_ELEMENTS / per_matrix).max(1));
        self.retiled(x, grid)
    }

    /// How a matrix is cut into panels of columns, or of rows: as the user has cut it, or by its size.
    fn panels(&self, x: &ValueId, axis: usize) -> Result<Axis> {
        let n = self.shape(x)?[axis];
        if let Some(grid) = self.ty(x).tiling.as_ref().and_then(Tiling::grid) {
            let merged = grid[axis].n_tiles().div_ceil(MAX_PANELS).max(1);
            let boundaries = grid[axis].boundaries();
            let last = boundaries.len().saturating_sub(1);
            let kept = (0..boundaries.len())
                .filter(|&k| (k as u64).is_multiple_of(merged) || k == last)
                .map(|k| boundaries[k]);
            return Ok(Axis::from_boundaries(kept.collect()));
        }
        if n <= ONE_TASK {
            return Ok(Axis::whole(n));
        }
        let width = (n / N_PANELS).next_multiple_of(64).clamp(*PANEL.start(), *PANEL.end());
        Ok(Axis::uniform(n, width.max(n.div_ceil(MAX_PANELS))))
    }

    /// The next panel of what is left of a matrix, if there are rows left.
    fn panel(&mut self, rest: &ValueId, cut: &Axis, number: u64) -> Result<Option<Panel<ValueId>>> {
        let (rows, columns) = self.size(rest)?;
        if rows == 0 {
            return Ok(None);
        }
        let range = cut.range(number);
        let width = range.end - range.start;
        let value = self.part(rest, &[0..rows, 0..width])?;
        Ok(Some(Panel { range, rows, columns, width, n: rows.min(width), value }))
    }

    /// What is left of a matrix from a column on, cut as the panels that are left: its tiles are then made of one tile each of what was left before, and
    /// tiles that no panel will look at are not made at all.
    fn rest(&mut self, x: &ValueId, cut: &Axis, start: u64) -> Result<ValueId> {
        self.cut_as(x, cut, start..cut.extent())
    }

    /// Some columns of what is left of a matrix, cut as its panels. `range` says which columns of the whole matrix they are.
    fn cut_as(&mut self, x: &ValueId, cut: &Axis, range: std::ops::Range<u64>) -> Result<ValueId> {
        let (rows, columns) = self.size(x)?;
        if columns != range.end - range.start || rows == 0 {
            return Ok(*x);
        }
        let boundaries = cut.boundaries().into_iter().filter(|boundary| (range.start..=range.end).contains(boundary));
        let left = boundaries.map(|boundary| boundary - range.start).collect();
        let rows = self.cut_height(rows, cut);
        self.retiled(x, vec![rows, Axis::from_boundaries(left)])
    }

    /// How the rows of what is left of a matrix are cut: as high as panels are wide. Tall matrices have higher tiles, still of whole panels.
    fn cut_height(&self, rows: u64, cut: &Axis) -> Axis {
        let width = cut.range(0).end;
        let mut height = width * rows.div_ceil(width * MAX_PANELS).max(1);
        if rows > 8 * cut.extent() {
            // Narrow panels of a panel: tiles as high as they are wide would be many and tiny.
            height = height.max((TALL_TILE_ELEMENTS / cut.extent().max(1)).next_multiple_of(width));
        }
        Axis::uniform(rows, height)
    }

    /// A matrix cut as its panels, unless the user has cut it.
    fn as_panels(&mut self, x: &ValueId, cut: &Axis) -> Result<ValueId> {
        match self.ty(x).tiling {
            None if cut.n_tiles() > 1 => self.rest(x, cut, 0),
            _ => Ok(*x),
        }
    }

    /// Columns of a right-hand side, cut into tasks.
    fn cut_columns(&mut self, x: &ValueId) -> Result<ValueId> {
        let (rows, columns) = self.size(x)?;
        self.retiled(x, vec![Axis::whole(rows), Axis::uniform(columns, *PANEL.end())])
    }

    /// A right-hand side, cut into tasks: rows as high as panels are wide.
    fn cut_right(&mut self, x: &ValueId, cut: &Axis) -> Result<ValueId> {
        let (rows, columns) = self.size(x)?;
        let rows = self.cut_height(rows, cut);
        self.retiled(x, vec![rows, Axis::uniform(columns, *PANEL.end())])
    }

    /// Rows of a left-hand side, cut into tasks.
    fn cut_rows(&mut self, x: &ValueId) -> Result<ValueId> {
        let (rows, columns) = self.size(x)?;
        self.retiled(x, vec![Axis::uniform(rows, *PANEL.end()), Axis::whole(columns)])
    }

    /// Solves triangular systems for blocks of columns: `triangle x = b`.
    fn solve_triangle(&mut self, name: &str, triangle: &ValueId, b: &ValueId) -> Result<ValueId> {
        let b = self.cut_columns(b)?;
        self.solve_cut_triangle(name, triangle, &b)
    }

    /// Solves triangular systems for blocks of columns as they are cut: `triangle x = b`.
    fn solve_cut_triangle(&mut self, name: &str, triangle: &ValueId, b: &ValueId) -> Result<ValueId> {
        let (rows, _) = self.size(b)?;
        let dtype = self.ty(b).dtype;
        let result = BlockResult { dtype, modes: vec![ResultMode::Whole(rows), ResultMode::Grid(0)] };
        let args: [(&ValueId, &[OperandMode]); 2] =
            [(triangle, &[OperandMode::Whole, OperandMode::Whole]), (b, &[OperandMode::Whole, OperandMode::Grid(0)])];
        first(self.call(name, &args, vec![result])?)
    }

    /// Solves triangular systems for blocks of rows: `x triangle = b`.
    fn solve_triangle_right(&mut self, name: &str, triangle: &ValueId, b: &ValueId) -> Result<ValueId> {
        let (_, columns) = self.size(b)?;
        let dtype = self.ty(b).dtype;
        let b = self.cut_rows(b)?;
        let result = BlockResult { dtype, modes: vec![ResultMode::Grid(0), ResultMode::Whole(columns)] };
        let args: [(&ValueId, &[OperandMode]); 2] =
            [(triangle, &[OperandMode::Whole, OperandMode::Whole]), (&b, &[OperandMode::Grid(0), OperandMode::Whole])];
        first(self.call(name, &args, vec![result])?)
    }
}

/// How a function sees blocks that hold whole fibres along an axis: operands, and a result with `n_out` elements in each fibre.
fn fibre_modes(rank: usize, axis: usize, n_out: u64) -> (Vec<OperandMode>, Vec<ResultMode>) {
    let number = |k: usize| (k - (k > axis) as usize) as u32;
    let operand = |k| if k == axis { OperandMode::Whole } else { OperandMode::Grid(number(k)) };
    let result = |k| if k == axis { ResultMode::Whole(n_out) } else { ResultMode::Grid(number(k)) };
    ((0..rank).map(operand).collect(), (0..rank).map(result).collect())
}

fn first<V>(values: Vec<V>) -> Result<V> {
    values.into_iter().next().ok_or_else(|| Error::internal("a block function without a result"))
}

/// A given number of results.
fn exactly<V, const N: usize>(values: Vec<V>) -> Result<[V; N]> {
    values.try_into().map_err(|_| Error::internal(format!("a block function without {N} results")))
}

/// The type of magnitudes.
fn real_type(dtype: DType) -> DType {
    dtype.part().unwrap_or(dtype)
}

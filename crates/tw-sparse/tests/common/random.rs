//! Random statements over random formats. Elements are small integers, so sums of floats are exact in any order.

use tw_ir::{BinaryOp, Buffer, DType, Scalar, UnaryOp};
use tw_sparse::expr::{
    AffineIndex, Combiner, IndexExpr, IndexStatement, IndexVariable, Monoid, OperandType, TensorAccess,
};
use tw_sparse::{IndexWidth, SparseTensor, TensorFormat};

/// A small generator (splitmix64), so that tests need no dependency.
pub struct Draw(pub u64);

impl Draw {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

pub struct RandomCase {
    pub statement: IndexStatement,
    pub operands: Vec<SparseTensor>,
    pub extents: Vec<u64>,
}

const LEVELS: &[&str] = &["dense", "compressed", "compressed", "bitmap", "banded", "hashed"];

fn format(draw: &mut Draw, rank: usize) -> TensorFormat {
    let width = if draw.one_in(4) { IndexWidth::U64 } else { IndexWidth::U32 };
    let mut order: Vec<usize> = (0..rank).collect();
    if draw.one_in(2) {
        (1..rank).for_each(|k| order.swap(k, draw.below(k + 1)));
    }
    let format = match draw.below(6) {
        0 => TensorFormat::dense(rank),
        1 if rank > 0 => TensorFormat::coordinates(rank),
        2 => TensorFormat::compressed(rank),
        _ => {
            let names: Vec<&str> = (0..rank).map(|_| draw.pick(LEVELS)).collect();
            names.join(", ").parse().unwrap()
        }
    };
    format.with_order(order).unwrap().with_width(width)
}

fn element(draw: &mut Draw, dtype: DType) -> Scalar {
    let value = draw.below(9) as i64 - 4;
    let value = if dtype.is_unsigned() || dtype == DType::Bool { value.abs() } else { value };
    Scalar::I64(value).cast(dtype)
}

fn tensor(draw: &mut Draw, shape: Vec<u64>, format: TensorFormat, fill: Scalar) -> SparseTensor {
    let n: u64 = shape.iter().product();
    let density = draw.pick(&[0, 1, 3, 6, 10]);
    let mut dense = Buffer::full(fill, n as usize);
    for k in 0..n as usize {
        if draw.below(10) < density {
            dense.set(k, element(draw, fill.dtype()));
        }
    }
    SparseTensor::from_dense(shape, format, fill, &dense).unwrap()
}

struct Builder<'a> {
    draw: &'a mut Draw,
    extents: Vec<u64>,
    dtype: DType,
    operands: Vec<OperandType>,
    tensors: Vec<SparseTensor>,
    scope: Vec<IndexVariable>,
    reduced: usize,
}

impl Builder<'_> {
    fn leaf(&mut self) -> IndexExpr {
        if self.operands.len() == 5 || self.draw.one_in(12) {
            return IndexExpr::Constant(element(self.draw, self.dtype));
        }
        let rank = self.draw.below(self.scope.len().min(3) + 1);
        let mut vars = self.scope.clone();
        (1..vars.len()).for_each(|k| vars.swap(k, self.draw.below(k + 1)));
        vars.truncate(rank);
        if rank == 2 && self.draw.one_in(8) {
            vars[1] = vars[0];
        }
        let mut index: Vec<AffineIndex> = vars.iter().map(|&var| var.into()).collect();
        let mut shape: Vec<u64> = vars.iter().map(|var| self.extents[var.0]).collect();
        if rank > 0 && self.draw.one_in(6) {
            // A slice, or every second element.
            let k = self.draw.below(rank);
            let (factor, offset) = self.draw.pick(&[(1, 1), (1, 2), (2, 0), (2, 1)]);
            index[k] = AffineIndex { terms: vec![(vars[k], factor)], offset };
            shape[k] = shape[k] * factor as u64 + offset as u64 + self.draw.below(2) as u64;
        }
        let format = format(self.draw, rank);
        let fill = match self.draw.one_in(6) {
            true => element(self.draw, self.dtype),
            false => self.dtype.zero(),
        };
        let name = format!("{}", (b'A' + self.operands.len() as u8) as char);
        self.tensors.push(tensor(self.draw, shape, format.clone(), fill));
        self.operands.push(OperandType { name, format, fill });
        IndexExpr::Access(TensorAccess { tensor: self.operands.len() - 1, index }, 0)
    }

    fn expr(&mut self, depth: usize) -> IndexExpr {
        if depth == 0 || self.draw.one_in(5) {
            return self.leaf();
        }
        if self.reduced < 2 && self.draw.one_in(5) {
            let var = IndexVariable(self.extents.len());
            self.extents.push(self.draw.pick(&[0, 1, 2, 3, 4, 5]));
            self.reduced += 1;
            self.scope.push(var);
            let body = self.expr(depth - 1);
            self.scope.pop();
            return IndexExpr::Reduce(self.reduction(), vec![var], Box::new(body));
        }
        use BinaryOp::*;
        let takes = |op: &BinaryOp| op.result(self.dtype) == Some(self.dtype);
        let ops: Vec<BinaryOp> = [Mul, Mul, Mul, Add, Add, Sub, Min, Max, Or, Xor].into_iter().filter(takes).collect();
        match self.draw.below(12) {
            0 if UnaryOp::Neg.result(self.dtype).is_some() => {
                IndexExpr::Unary(UnaryOp::Neg, Box::new(self.expr(depth - 1)))
            }
            1 if BinaryOp::Lt.result(self.dtype).is_some() => {
                let compared = IndexExpr::binary(self.draw.pick(&[Lt, Ge, Eq, Ne]), self.expr(depth - 1), self.leaf());
                IndexExpr::Cast(self.dtype, Box::new(compared))
            }
            2 if BinaryOp::Lt.result(self.dtype).is_some() => {
                let compared = IndexExpr::binary(Lt, self.leaf(), self.leaf());
                let (a, b) = (self.expr(depth - 1), self.leaf());
                IndexExpr::Select(Box::new(compared), Box::new(a), Box::new(b))
            }
            _ => {
                let op = self.draw.pick(&ops);
                IndexExpr::binary(op, self.expr(depth - 1), self.expr(depth - 1))
            }
        }
    }

    fn reduction(&mut self) -> Monoid {
        // Infinities of empty minima would meet zeros in products of floats.
        match self.dtype.is_integer() && self.draw.one_in(3) {
            true if self.draw.one_in(2) => Monoid::min(self.dtype),
            true => Monoid::max(self.dtype),
            false => Monoid { combine: Combiner::Op(BinaryOp::Add), identity: self.dtype.zero() },
        }
    }
}

/// A random case; equal seeds give equal cases.
pub fn random_case(seed: u64, dtypes: &[DType]) -> RandomCase {
    let mut draw = Draw(seed);
    let dtype = draw.pick(dtypes);
    let rank = draw.below(4);
    let extents: Vec<u64> = (0..rank).map(|_| draw.pick(&[0, 1, 2, 3, 4, 5, 5])).collect();
    let indices: Vec<IndexVariable> = (0..rank).map(IndexVariable).collect();
    let scope = indices.clone();
    let mut builder =
        Builder { draw: &mut draw, extents, dtype, operands: Vec::new(), tensors: Vec::new(), scope, reduced: 0 };
    let mut reduced = Vec::new();
    for _ in 0..builder.draw.below(3) {
        let var = IndexVariable(builder.extents.len());
        builder.extents.push(builder.draw.pick(&[1, 2, 3, 4, 5]));
        builder.scope.push(var);
        builder.reduced += 1;
        reduced.push(var);
    }
    let depth = 1 + builder.draw.below(3);
    let mut value = builder.expr(depth);
    let mut fill = dtype.zero();
    if !reduced.is_empty() {
        let how = builder.reduction();
        // A sparse result of a scattering reduction needs its fill value.
        fill = how.identity;
        value = IndexExpr::Reduce(how, reduced, Box::new(value));
    } else if builder.draw.one_in(6) {
        fill = element(builder.draw, dtype);
    }
    // A sparse result that a reduction scatters into must have the reduction's value where nothing is.
    if let IndexExpr::Reduce(how, ..) = &value {
        fill = how.identity;
    }
    let Builder { extents, operands, tensors, .. } = builder;
    let output = OperandType { name: "out".into(), format: format(&mut draw, rank), fill };
    let names = ["i", "j", "k", "l", "m", "n", "o", "p"];
    let variables = extents.iter().zip(names).map(|(_, name)| name.to_string()).collect();
    let statement = IndexStatement::new(variables, output, indices, operands, value).unwrap();
    RandomCase { statement, operands: tensors, extents }
}

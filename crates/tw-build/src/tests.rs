use tw_ir::program::infer;
use tw_ir::{BinaryOp, DType, Edge, Extent, Op, Result, Scalar, TensorType, UnaryOp, program::ExtentId};

use super::*;

fn f64s(shape: &[u64]) -> TensorType {
    TensorType::known(DType::F64, shape)
}

fn of(dtype: DType, shape: &[u64]) -> TensorType {
    TensorType::known(dtype, shape)
}

/// The type of the first result, as text, or the message of the error.
fn shown(op: Result<Op>, operands: &[&TensorType]) -> String {
    let types = op.and_then(|op| infer(&Default::default(), &op, operands));
    types.map_or_else(|error| error.message().to_string(), |types| types[0].to_string())
}

fn joined(joined: Result<Joined>, operands: &[&TensorType]) -> String {
    let through = |joined: Joined| -> Result<String> {
        let mut prepared = Vec::new();
        for (ty, op) in operands.iter().zip(&joined.prepare) {
            prepared.push(match op {
                Some(op) => infer(&Default::default(), op, &[ty])?.remove(0),
                None => (*ty).clone(),
            });
        }
        let refs: Vec<&TensorType> = prepared.iter().collect();
        Ok(infer(&Default::default(), &joined.join, &refs)?[0].to_string())
    };
    joined.and_then(through).unwrap_or_else(|error| error.message().to_string())
}

#[test]
fn arithmetic_promotes_and_broadcasts() {
    let (a, b) = (of(DType::F32, &[3, 1]), of(DType::I64, &[4]));
    assert_eq!(shown(binary(BinaryOp::Add, &a, &b), &[&a, &b]), "f64[3, 4]");
    assert_eq!(shown(binary(BinaryOp::Mul, &a, Scalar::F64(0.5)), &[&a]), "f32[3, 1]");
    assert_eq!(shown(binary(BinaryOp::Div, Scalar::I64(1), &b), &[&b]), "f64[4]");
    assert_eq!(shown(binary(BinaryOp::FloorDiv, &b, Scalar::I64(2)), &[&b]), "i64[4]");
    assert_eq!(shown(binary(BinaryOp::Lt, &a, &a), &[&a, &a]), "bool[3, 1]");
    let mask = of(DType::Bool, &[4]);
    assert_eq!(shown(binary(BinaryOp::Add, &mask, Scalar::I64(1)), &[&mask]), "i64[4]");
    assert_eq!(shown(binary(BinaryOp::Sub, &mask, &mask), &[&mask, &mask]), "`-` does not take bool and bool");
    assert_eq!(shown(logical(BinaryOp::And, &mask, &b), &[&mask, &b]), "bool[4]");
    assert_eq!(shown(select(&mask, &b, Scalar::F64(0.0)), &[&mask, &b]), "f64[4]");
    let wrong = shown(binary(BinaryOp::Add, &f64s(&[2]), &b), &[&f64s(&[2]), &b]);
    assert_eq!(wrong, "shapes [2] and [4] do not broadcast together");
}

#[test]
fn functions_of_floats_take_integers() {
    let x = of(DType::I64, &[2]);
    assert_eq!(shown(unary(UnaryOp::Sqrt, &x), &[&x]), "f64[2]");
    assert_eq!(shown(unary(UnaryOp::Floor, &x), &[&x]), "i64[2]");
    assert_eq!(shown(unary(UnaryOp::IsNan, &x), &[&x]), "bool[2]");
    let mask = of(DType::Bool, &[2]);
    assert_eq!(shown(unary(UnaryOp::Neg, &mask), &[&mask]), "`-` does not take bool");
}

#[test]
fn deferred_extents_pass_through() {
    let n = Extent::Deferred(ExtentId::from_u32(7));
    let x = TensorType::dense(DType::F64, vec![n, Extent::Known(3)]);
    assert_eq!(shown(binary(BinaryOp::Add, &x, &x), &[&x, &x]), "f64[#7, 3]");
    assert_eq!(shown(reduce(&x, Reduction::Sum, Some(&[1]), false), &[&x]), "f64[#7]");
    assert_eq!(shown(reduce(&x, Reduction::ArgMax, None, false), &[&x]), "i64[]");
    assert_eq!(shown(slice(&x, &[SliceItem::FULL, SliceItem::Index(-1)]), &[&x]), "f64[#7]");
    assert_eq!(shown(matmul(&x, &f64s(&[3, 2])), &[&x, &f64s(&[3, 2])]), "f64[#7, 2]");
    assert_eq!(shown(roll(&x, 2, 0), &[&x]), "f64[#7, 3]");
    assert!(slice(&x, &[SliceItem::Index(-1)]).is_err());
}

#[test]
fn layouts() {
    let x = f64s(&[2, 3, 4]);
    assert_eq!(shown(Ok(transpose(&x)), &[&x]), "f64[4, 3, 2]");
    assert_eq!(shown(permute(&x, &[1, 2, 0]), &[&x]), "f64[3, 4, 2]");
    assert_eq!(shown(flip(&x, &[0, 2]), &[&x]), "f64[2, 3, 4]");
    assert_eq!(shown(diagonal(&x, 1, (0, 2)), &[&x]), "f64[3, 2]");
    assert_eq!(shown(diagonal(&x, -9, (0, 2)), &[&x]), "f64[3, 0]");
    assert_eq!(shown(pad(&x, &[(1, 0), (0, 0), (2, 2)], Edge::Clamp, Scalar::F64(0.0)), &[&x]), "f64[3, 3, 8]");
    assert_eq!(shown(pad(&x, &[(1, 0), (0, 0), (0, 1)], Edge::Fill, Scalar::I64(7)), &[&x]), "f64[3, 3, 5] fill(7.0)");
    assert_eq!(shown(tril(&x, 0), &[&x]), "f64[2, 3, 4]");
    assert_eq!(shown(squeeze(&f64s(&[1, 3]), &[0]), &[&f64s(&[1, 3])]), "f64[3]");
    assert_eq!(shown(broadcast_to(&f64s(&[3, 1]), &x.shape), &[&f64s(&[3, 1])]), "f64[2, 3, 4]");
    assert!(broadcast_to(&x, &[Extent::Known(1), Extent::Known(3), Extent::Known(4)]).is_err());
    assert_eq!(shown(reshape(&x, &[6, -1]), &[&x]), "f64[6, 4]");
    assert!(reshape(&x, &[5, -1]).is_err() && reshape(&x, &[-1, -1]).is_err() && reshape(&x, &[0, -1]).is_err());
}

#[test]
fn reductions_follow_numpy_dtypes() {
    let (x, mask) = (of(DType::I64, &[2, 3]), of(DType::Bool, &[2, 3]));
    assert_eq!(shown(reduce(&mask, Reduction::Sum, None, false), &[&mask]), "i64[]");
    assert_eq!(shown(reduce(&x, Reduction::Mean, Some(&[0]), true), &[&x]), "f64[1, 3]");
    assert_eq!(shown(reduce(&x, Reduction::Std { ddof: 1.0 }, Some(&[1]), false), &[&x]), "f64[2]");
    assert_eq!(shown(reduce(&x, Reduction::ArgMin, None, false), &[&x]), "i64[]");
    assert_eq!(shown(reduce(&x, Reduction::Any, Some(&[]), false), &[&x]), "bool[2, 3]");
    let empty = f64s(&[0, 3]);
    assert!(reduce(&empty, Reduction::Max, Some(&[0]), false).is_err());
    assert_eq!(shown(reduce(&empty, Reduction::Max, Some(&[1]), false), &[&empty]), "f64[0]");
}

#[test]
fn products() {
    let (v, m, s) = (f64s(&[3]), of(DType::F32, &[3, 4]), f64s(&[5, 1, 2, 3]));
    assert_eq!(shown(matmul(&v, &v), &[&v, &v]), "f64[]");
    assert_eq!(shown(matmul(&v, &m), &[&v, &m]), "f64[4]");
    assert_eq!(shown(matmul(&s, &v), &[&s, &v]), "f64[5, 1, 2]");
    let t = f64s(&[7, 3, 2]);
    assert_eq!(shown(matmul(&s, &t), &[&s, &t]), "f64[5, 7, 2, 2]");
    assert_eq!(shown(matmul(&m, &v), &[&m, &v]), "the matrix product of shapes [3, 4] and [3]");
    assert_eq!(shown(tensordot(&s, &m, &[(3, 0)]), &[&s, &m]), "f64[5, 1, 2, 4]");
}

#[test]
fn einsum_specifications() {
    let (a, b) = (f64s(&[3, 4]), f64s(&[4, 5]));
    assert_eq!(shown(einsum("ij,jk->ik", &[&a, &b]), &[&a, &b]), "f64[3, 5]");
    assert_eq!(shown(einsum("ij,jk", &[&a, &b]), &[&a, &b]), "f64[3, 5]");
    assert_eq!(shown(einsum("ba", &[&a]), &[&a]), "f64[4, 3]");
    assert_eq!(shown(einsum("ij->", &[&a]), &[&a]), "f64[]");
    let square = f64s(&[3, 3]);
    assert_eq!(shown(einsum("ii->i", &[&square]), &[&square]), "f64[3]");
    let batch = f64s(&[7, 3, 4]);
    assert_eq!(shown(einsum("...ij,jk->...ik", &[&batch, &b]), &[&batch, &b]), "f64[7, 3, 5]");
    for (spec, types) in [("ij", vec![&batch]), ("ij,ij->ij", vec![&a, &b]), ("ij->ik", vec![&a]), ("i1->i", vec![&a])]
    {
        assert!(einsum(spec, &types).is_err(), "{spec}");
    }
}

#[test]
fn created_tensors() {
    assert_eq!(shown(arange(Scalar::I64(5), Scalar::I64(0), Scalar::I64(-2), DType::I64), &[]), "i64[3]");
    assert_eq!(shown(arange(Scalar::F64(0.0), Scalar::F64(1.0), Scalar::F64(0.3), DType::F64), &[]), "f64[4]");
    let large = 1 << 63;
    assert_eq!(shown(arange(Scalar::U64(large), Scalar::U64(large + 5), Scalar::I64(2), DType::U64), &[]), "u64[3]");
    assert!(arange(Scalar::I64(0), Scalar::I64(1), Scalar::I64(0), DType::I64).is_err());
    assert!(arange(Scalar::I64(0), Scalar::F64(f64::NAN), Scalar::I64(1), DType::F64).is_err());
    assert_eq!(shown(linspace(0.0, 1.0, 5, true, DType::F32), &[]), "f32[5]");
    assert_eq!(shown(eye(3, 4, -1, DType::Bool), &[]), "bool[3, 4]");
    assert_eq!(shown(random_integers(&[2, 2], 1, 0, 6), &[]), "i64[2, 2]");
    assert!(random_integers(&[2], 1, 6, 6).is_err());
    assert!(random_normal(&[1 << 40, 1 << 40], 1, 0.0, 1.0).is_err());
}

#[test]
fn operators_beside_index_statements() {
    let (x, index, mask) = (f64s(&[4, 3]), of(DType::I64, &[2]), of(DType::Bool, &[4]));
    assert_eq!(shown(scan(&mask, ScanKind::Sum, 0), &[&mask]), "i64[4]");
    assert_eq!(shown(sort(&x, 1, true).map(|sorted| sorted.sort), &[&x]), "f64[4, 3]");
    assert_eq!(joined(take(&x, &index, 1), &[&x, &index]), "f64[4, 2]");
    assert_eq!(joined(concat(&[&x, &of(DType::I64, &[1, 3])], 0), &[&x, &of(DType::I64, &[1, 3])]), "f64[5, 3]");
    assert_eq!(joined(stack(&[&mask, &of(DType::F32, &[4])], 1), &[&mask, &of(DType::F32, &[4])]), "f32[4, 2]");
    let values = of(DType::Bool, &[2]);
    let counted = scatter(&[&index], &values, &[0], &[Extent::Known(9)], Reduction::Count, Edge::Error);
    assert_eq!(joined(counted, &[&index, &values]), "i64[9]");
    assert!(take(&x, &mask, 0).is_err());
}

/// The first result of a node on arrays that hold 0, 1, 2 and so on.
fn elements(op: Result<Op>, operands: &[&TensorType]) -> Vec<f64> {
    let mut program = tw_ir::Program::new();
    let mut args = Vec::new();
    for ty in operands {
        let shape = ty.known_shape().unwrap();
        let n = shape.iter().product::<u64>() as i64;
        let mut array = tw_ir::Array::zeros(&shape, ty.dtype).unwrap();
        (0..n).for_each(|k| array.data_mut().set(k as usize, Scalar::from_i64(k, ty.dtype)));
        let source = Op::Source(tw_ir::program::SourceOp::Constant(array.into()));
        args.push(program.push1(source, &[], &tw_ir::Span::None).unwrap());
    }
    let results = program.push(op.unwrap(), &args, &tw_ir::Span::None).unwrap();
    program.output("y", results[0]);
    tw_ir::oracle::evaluate(&program, &Default::default()).unwrap()["y"].to_f64_vec()
}

#[test]
fn contractions_have_the_right_elements() {
    let (a, b) = (f64s(&[2, 2, 2]), of(DType::I64, &[2, 2]));
    assert_eq!(elements(tensordot(&a, &b, &[(2, 1), (0, 0)]), &[&a, &b]), [24.0, 36.0]);
    assert_eq!(elements(tensordot(&b, &b, &[]), &[&b, &b])[4..8], [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(elements(einsum("...ij,...j->...i", &[&a, &f64s(&[2])]), &[&a, &f64s(&[2])]), [1.0, 3.0, 5.0, 7.0]);
    assert_eq!(elements(einsum("ii", &[&b]), &[&b]), [3.0]);
    let row = f64s(&[1, 2]);
    assert_eq!(elements(einsum("ij,ij->ij", &[&row, &b]), &[&row, &b]), [0.0, 1.0, 0.0, 3.0]);
}

#[test]
fn replaced_parts_broadcast() {
    let (x, column) = (of(DType::I64, &[2, 3]), of(DType::I64, &[2, 1]));
    let last_two = SliceItem::Slice { start: Some(1), stop: None, step: 1 };
    let op = replace(&x, &[SliceItem::Ellipsis, last_two], &column);
    assert_eq!(elements(op, &[&x, &column]), [0.0, 0.0, 0.0, 3.0, 1.0, 1.0]);
    let op = replace(&x, &[SliceItem::Index(-1)], Scalar::F64(7.5));
    assert_eq!(elements(op, &[&x]), [0.0, 1.0, 2.0, 7.0, 7.0, 7.0]);
    let backwards = SliceItem::Slice { start: None, stop: None, step: -2 };
    let pair = of(DType::I64, &[2]);
    let op = replace(&x, &[SliceItem::Index(0), backwards], &pair);
    assert_eq!(elements(op, &[&x, &pair]), [1.0, 1.0, 0.0, 3.0, 4.0, 5.0]);
    assert!(replace(&x, &[SliceItem::Index(2)], Scalar::I64(0)).is_err());
    assert!(replace(&x, &[SliceItem::FULL; 3], Scalar::I64(0)).is_err());
    assert!(replace(&column, &[], &x).is_err());
}

#[test]
fn ranges_and_positions_have_the_right_elements() {
    assert_eq!(elements(arange(Scalar::F64(1.0), Scalar::F64(2.0), Scalar::F64(0.4), DType::F32), &[]).len(), 3);
    assert_eq!(elements(linspace(0.0, 1.0, 3, false, DType::F64), &[])[2], 2.0 / 3.0);
    let x = f64s(&[2, 3]);
    assert_eq!(elements(reduce(&x, Reduction::ArgMax, Some(&[0]), false), &[&x]), [1.0; 3]);
    assert_eq!(elements(reduce(&x, Reduction::ArgMax, None, true), &[&x]), [5.0]);
    assert_eq!(elements(Ok(coordinate(&x.shape, 1)), &[]), [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
    assert_eq!(elements(diagonal(&x, 1, (1, 0)), &[&x]), [3.0]);
}

#[test]
fn overlapping_tiles() {
    let x = f64s(&[10, 4]);
    let cut = |tile, before, after, border| Overlap { tile, before, after, border };
    let alone = cut(4, 0, 0, false);
    assert_eq!(shown(overlap(&x, &[cut(4, 1, 2, false), alone]), &[&x]), "f64[16, 4]");
    assert_eq!(shown(overlap(&x, &[cut(4, 1, 1, true), alone]), &[&x]), "f64[12, 4]");
    assert_eq!(shown(overlap(&x, &[cut(10, 3, 3, false), alone]), &[&x]), "f64[10, 4]");
    assert_eq!(shown(overlap(&x, &[cut(4, 1, 3, false), alone]), &[&x]), "3 elements of a neighbour of 2");
    assert_eq!(shown(overlap(&x, &[alone, cut(2, 3, 2, true)]), &[&x]), "borders of 5 elements for an axis of 4");
    assert!(overlap(&x, &[alone]).is_err());
    assert!(overlap(&x, &[cut(4, u64::MAX, 1, false), alone]).is_err());
}

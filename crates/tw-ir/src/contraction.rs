//! The definition of a contraction.
//!
//! A statement contracts if it reads several operands at plain variables, computes a value from those reads alone, and folds the values by one operation: matrix
//! products over any semiring, and products of more than two operands. Rewrites keep such statements recognisable, kernels run them as blocked products, and explain
//! counts them as contractions. All of them use this module.

use crate::accum::Accum;
use crate::dtype::DType;
use crate::index::{Idx, Var};
use crate::kernel::StatementKernel;
use crate::program::IndexStmt;
use crate::scalar::{BinaryOp, ScalarCode, ScalarOp};

/// A statement recognised as a contraction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contraction {
    /// The operation that folds terms.
    pub aggregate: BinaryOp,
    /// The type of terms and results.
    pub dtype: DType,
    /// The operation that makes a term, if it is one operation applied to every operand once; otherwise terms are made by the whole code.
    pub product: Option<BinaryOp>,
    /// As `product`, but operands may be converted to the type of terms first.
    pub product_of_converted: Option<BinaryOp>,
    /// The variables of each read, by axis; axes that stand still in every task are left out.
    pub reads: Vec<Vec<Var>>,
    /// The variables of the output, in the same way.
    pub out: Vec<Var>,
    /// Variables without a role, because they have one value in every task.
    fixed: Vec<bool>,
}

/// The roles of the variables of a contraction of two operands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// In the first operand and the output, in the order of the output.
    pub rows: Vec<usize>,
    /// In the second operand and the output, in the order of the output.
    pub columns: Vec<usize>,
    /// In both operands, but not in the output.
    pub terms: Vec<usize>,
    /// In both operands and the output.
    pub batches: Vec<usize>,
}

impl Contraction {
    /// Recognises a statement of a program.
    pub fn of_statement(stmt: &IndexStmt) -> Option<Contraction> {
        let reads = stmt.reads.iter().map(|read| read.idx.as_slice());
        let accum = stmt.accum.as_ref().filter(|_| !stmt.has_guard)?;
        Contraction::of(stmt.vars.len(), accum, &stmt.code, reads, &stmt.out.idx)
    }

    /// Recognises a kernel.
    pub fn of_kernel(kernel: &StatementKernel) -> Option<Contraction> {
        let reads = kernel.reads.iter().map(|read| read.idx.as_slice());
        let accum = kernel.accum.as_ref().filter(|_| !kernel.has_guard)?;
        let n_vars = kernel.vars.len();
        if !kernel.reads.iter().flat_map(|read| &read.idx).chain(&kernel.out_idx).any(Idx::has_table) {
            return Contraction::of(n_vars, accum, &kernel.code, reads, &kernel.out_idx);
        }
        // Variables with one value in every task need no role, so that it does not matter where a table sends them.
        let is_fixed = |var: usize| kernel.vars[var].longest() <= 1;
        let moves = |idx: &&Idx| (0..n_vars).any(|var| !is_fixed(var) && idx.uses(Var(var as u32)));
        let moving = |idx: &[Idx]| idx.iter().filter(moves).cloned().collect::<Vec<Idx>>();
        let (reads, out): (Vec<Vec<Idx>>, _) = (reads.map(moving).collect(), moving(&kernel.out_idx));
        let mut found = Contraction::of(n_vars, accum, &kernel.code, reads.iter().map(Vec::as_slice), &out)?;
        found.fixed = (0..n_vars).map(is_fixed).collect();
        Some(found)
    }

    fn of<'a>(
        n_vars: usize,
        accum: &Accum,
        code: &ScalarCode,
        reads: impl Iterator<Item = &'a [Idx]>,
        out: &[Idx],
    ) -> Option<Contraction> {
        let (aggregate, dtype) = accum.as_simple()?;
        let plain = |idx: &[Idx]| idx.iter().map(Idx::as_var).collect::<Option<Vec<Var>>>();
        let reads: Vec<Vec<Var>> = reads.map(plain).collect::<Option<_>>()?;
        let out = plain(out)?;
        let code = code.without_dead_ops();
        let is_read = |k: usize| code.uses_param(k as u32);
        let reads_alone = (0..reads.len()).all(is_read) && !(reads.len()..code.params().len()).any(is_read);
        let is_drawn = code.ops().iter().any(|op| matches!(op, ScalarOp::Random { .. }));
        if reads.len() < 2 || code.results().len() != 1 || !reads_alone || is_drawn {
            return None;
        }
        let (product, product_of_converted) = (product_of(&code, None), product_of(&code, Some(dtype)));
        let fixed = vec![false; n_vars];
        Some(Contraction { aggregate, dtype, product, product_of_converted, reads, out, fixed })
    }

    /// True if every operand lacks a variable: each of its elements is used many times, so that it should be stored and not computed again.
    pub fn reuses_operands(&self) -> bool {
        let n_vars = self.fixed.iter().filter(|fixed| !**fixed).count();
        self.reads.iter().all(|vars| vars.len() < n_vars)
    }

    /// The roles of the variables, if there are two operands, no access names a variable twice, and every variable has a role. There is at least
    /// one term.
    pub fn roles(&self) -> Option<Roles> {
        let [left, right] = self.reads.as_slice() else { return None };
        let distinct = |vars: &[Var]| (1..vars.len()).all(|k| !vars[..k].contains(&vars[k]));
        if !distinct(left) || !distinct(right) || !distinct(&self.out) {
            return None;
        }
        let mut roles = Roles::default();
        for var in (0..self.fixed.len()).filter(|&var| !self.fixed[var]) {
            let name = Var(var as u32);
            let list = match (left.contains(&name), right.contains(&name), self.out.contains(&name)) {
                (true, false, true) => &mut roles.rows,
                (false, true, true) => &mut roles.columns,
                (true, true, false) => &mut roles.terms,
                (true, true, true) => &mut roles.batches,
                _ => return None,
            };
            list.push(var);
        }
        let axis_of = |var: &usize| self.out.iter().position(|v| v.0 as usize == *var);
        roles.rows.sort_by_key(axis_of);
        roles.columns.sort_by_key(axis_of);
        (!roles.terms.is_empty()).then_some(roles)
    }
}

/// The operation, if the code applies one operation to all that it reads, once each, and does nothing else but convert it to a type first.
pub(crate) fn product_of(code: &ScalarCode, converted: Option<DType>) -> Option<BinaryOp> {
    let mut product = None;
    let mut n_used = vec![0u32; code.ops().len()];
    for op in code.ops() {
        match op {
            ScalarOp::Param(_) => {}
            ScalarOp::Cast(dtype, a)
                if converted == Some(*dtype) && matches!(code.ops()[a.0 as usize], ScalarOp::Param(_)) =>
            {
                n_used[a.0 as usize] += 1;
            }
            ScalarOp::Binary(op, a, b) if product.is_none_or(|p| p == *op) => {
                product = Some(*op);
                n_used[a.0 as usize] += 1;
                n_used[b.0 as usize] += 1;
            }
            _ => return None,
        }
    }
    let [result] = code.results() else { return None };
    n_used[result.0 as usize] += 1;
    n_used.iter().all(|&n| n == 1).then_some(product).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::UnaryOp;

    fn var(k: u32) -> Idx {
        Idx::var(Var(k))
    }

    /// `out[i, j] = sum over k of code(a[i, k], b[k, j])`.
    fn matrix_product(code: &ScalarCode, left: &[Idx]) -> Option<Contraction> {
        let right = [var(2), var(1)];
        Contraction::of(3, &Accum::sum(DType::F64), code, [left, &right].into_iter(), &[var(0), var(1)])
    }

    fn product(op: BinaryOp) -> ScalarCode {
        let mut code = ScalarCode::new(vec![DType::F64, DType::F64, DType::I64, DType::I64, DType::I64]);
        let (a, b) = (code.param(0), code.param(1));
        let result = code.binary(op, a, b).unwrap();
        code.set_results(vec![result]);
        code
    }

    #[test]
    fn a_matrix_product_is_one() {
        let found = matrix_product(&product(BinaryOp::Mul), &[var(0), var(2)]).unwrap();
        assert_eq!((found.aggregate, found.product), (BinaryOp::Add, Some(BinaryOp::Mul)));
        assert!(found.reuses_operands());
        let roles = found.roles().unwrap();
        assert_eq!((roles.rows, roles.columns, roles.terms, roles.batches), (vec![0], vec![1], vec![2], vec![]));
    }

    #[test]
    fn any_code_of_the_operands_makes_terms() {
        let mut code = product(BinaryOp::Sub);
        let difference = code.results()[0];
        let distance = code.unary(UnaryOp::Abs, difference).unwrap();
        code.set_results(vec![distance]);
        assert_eq!(matrix_product(&code, &[var(0), var(2)]).unwrap().product, None);
        // The same operand twice is no product of all operands, once each.
        let mut code = product(BinaryOp::Mul);
        let (square, a) = (code.results()[0], code.param(0));
        let cube = code.binary(BinaryOp::Mul, square, a).unwrap();
        code.set_results(vec![cube]);
        let roles = matrix_product(&code, &[var(0), var(2)]).and_then(|found| found.product);
        assert_eq!(roles, None);
    }

    #[test]
    fn other_statements_are_not() {
        // A shifted access.
        assert_eq!(matrix_product(&product(BinaryOp::Mul), &[var(0), var(2).plus_constant(1)]), None);
        // Code that looks at a variable.
        let mut code = product(BinaryOp::Mul);
        let (term, k) = (code.results()[0], code.param(4));
        let k = code.cast(DType::F64, k);
        let weighted = code.binary(BinaryOp::Mul, term, k).unwrap();
        code.set_results(vec![weighted]);
        assert_eq!(matrix_product(&code, &[var(0), var(2)]), None);
        // A variable that only one operand has.
        let found = Contraction::of(
            3,
            &Accum::sum(DType::F64),
            &product(BinaryOp::Mul),
            [&[var(0), var(2)][..], &[var(1)]].into_iter(),
            &[var(0), var(1)],
        );
        assert_eq!(found.unwrap().roles(), None);
    }
}

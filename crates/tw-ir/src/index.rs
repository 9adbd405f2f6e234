//! Index expressions and accesses.
//!
//! An index expression is affine in the variables of its statement, with integer division, remainder and tables as further terms. The form is
//! closed under substitution, so a slice of a transpose of a reshape is still one access. The same form is legal on both sides of a statement.

use std::fmt;
use std::sync::Arc;

use crate::shape::Extent;

/// A variable of an index statement, by position in its list of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var(pub u32);

/// One term of an index expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Term {
    /// A variable.
    Var(Var),
    /// Floor division by a positive constant.
    Div(Box<Idx>, i64),
    /// Remainder of floor division by a positive constant, never negative.
    Mod(Box<Idx>, i64),
    /// The entry of a table at an index; outside the table, its nearest entry. For positions that are known while planning and follow no rule, such
    /// as the keys of a relation with holes. Variables that occur in a table are cut into single values.
    Table(Box<Idx>, Arc<[i64]>),
}

impl Term {
    /// The expression below a division, remainder or table.
    pub fn inner(&self) -> Option<&Idx> {
        match self {
            Term::Var(_) => None,
            Term::Div(inner, _) | Term::Mod(inner, _) | Term::Table(inner, _) => Some(inner),
        }
    }

    /// The value at a point.
    pub fn eval(&self, point: &[i64]) -> i64 {
        match self {
            Term::Var(v) => point[v.0 as usize],
            Term::Div(inner, n) => inner.eval(point).div_euclid(*n),
            Term::Mod(inner, n) => inner.eval(point).rem_euclid(*n),
            Term::Table(inner, table) => entry(table, inner.eval(point)),
        }
    }

    /// True if the variable occurs anywhere.
    pub fn uses(&self, var: Var) -> bool {
        match self {
            Term::Var(v) => *v == var,
            _ => self.inner().is_some_and(|inner| inner.uses(var)),
        }
    }
}

/// The entry of a table at an index, or the nearest one.
pub fn entry(table: &[i64], index: i64) -> i64 {
    let last = table.len().saturating_sub(1) as i64;
    table.get(index.clamp(0, last) as usize).copied().unwrap_or(0)
}

/// The entries of a table at an inclusive range of indices.
fn entries(table: &[i64], (lo, hi): Interval) -> &[i64] {
    let last = table.len().saturating_sub(1) as i64;
    let (from, to) = (lo.clamp(0, last) as usize, hi.clamp(0, last) as usize);
    table.get(from..to + 1).unwrap_or(&[])
}

/// `sum(coefficient * term) + offset`. Terms are sorted and distinct, coefficients are not zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Idx {
    terms: Vec<(Term, i64)>,
    offset: i64,
}

/// An inclusive range of index values.
pub type Interval = (i64, i64);

impl Idx {
    /// A constant.
    pub fn constant(offset: i64) -> Idx {
        Idx { terms: Vec::new(), offset }
    }

    /// A variable.
    pub fn var(var: Var) -> Idx {
        Idx { terms: vec![(Term::Var(var), 1)], offset: 0 }
    }

    /// The terms with their coefficients.
    pub fn terms(&self) -> &[(Term, i64)] {
        &self.terms
    }
    /// The constant part.
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// The sum of two expressions.
    pub fn plus(&self, other: &Idx) -> Idx {
        let mut terms = self.terms.clone();
        terms.extend(other.terms.iter().cloned());
        Idx::from_terms(terms, self.offset.saturating_add(other.offset))
    }

    /// The expression plus a constant.
    pub fn plus_constant(&self, offset: i64) -> Idx {
        Idx { terms: self.terms.clone(), offset: self.offset.saturating_add(offset) }
    }

    /// The expression times a constant.
    pub fn times(&self, factor: i64) -> Idx {
        let terms = self.terms.iter().map(|(t, c)| (t.clone(), c.saturating_mul(factor))).collect();
        Idx::from_terms(terms, self.offset.saturating_mul(factor))
    }

    /// Floor division by a positive constant; exact divisions are carried out on the terms.
    pub fn div(&self, n: i64) -> Idx {
        if n == 1 {
            return self.clone();
        }
        if self.terms.iter().all(|(_, c)| c % n == 0) {
            let terms = self.terms.iter().map(|(t, c)| (t.clone(), c / n)).collect();
            return Idx::from_terms(terms, self.offset.div_euclid(n));
        }
        Idx { terms: vec![(Term::Div(Box::new(self.clone()), n), 1)], offset: 0 }
    }

    /// Remainder of floor division by a positive constant.
    pub fn modulo(&self, n: i64) -> Idx {
        let terms: Vec<_> = self.terms.iter().filter(|(_, c)| c % n != 0).cloned().collect();
        if terms.is_empty() {
            return Idx::constant(self.offset.rem_euclid(n));
        }
        Idx { terms: vec![(Term::Mod(Box::new(Idx { terms, offset: self.offset }), n), 1)], offset: 0 }
    }

    /// The entry of a table at the value of the expression.
    pub fn table(&self, table: Arc<[i64]>) -> Idx {
        if self.terms.is_empty() {
            return Idx::constant(entry(&table, self.offset));
        }
        Idx { terms: vec![(Term::Table(Box::new(self.clone()), table), 1)], offset: 0 }
    }

    /// True if there is a table anywhere.
    pub fn has_table(&self) -> bool {
        let looks_up = |term: &Term| matches!(term, Term::Table(..)) || term.inner().is_some_and(Idx::has_table);
        self.terms.iter().any(|(term, _)| looks_up(term))
    }

    /// True if the variable occurs in a table.
    pub fn looks_up(&self, var: Var) -> bool {
        self.terms.iter().any(|(term, _)| match term {
            Term::Table(inner, _) => inner.uses(var),
            _ => term.inner().is_some_and(|inner| inner.looks_up(var)),
        })
    }

    /// Builds the normal form: sorted, merged, without zeros.
    pub fn from_terms(mut terms: Vec<(Term, i64)>, offset: i64) -> Idx {
        terms.sort_by(|a, b| a.0.cmp(&b.0));
        let mut merged: Vec<(Term, i64)> = Vec::with_capacity(terms.len());
        for (term, coefficient) in terms {
            match merged.last_mut() {
                Some((last, sum)) if *last == term => *sum = sum.saturating_add(coefficient),
                _ => merged.push((term, coefficient)),
            }
        }
        merged.retain(|(_, c)| *c != 0);
        Idx { terms: merged, offset }
    }

    /// The variable, if the expression is nothing but one variable.
    pub fn as_var(&self) -> Option<Var> {
        match self.as_shifted_var() {
            Some((var, 0)) => Some(var),
            _ => None,
        }
    }

    /// The variable and offset of `v + c`.
    pub fn as_shifted_var(&self) -> Option<(Var, i64)> {
        match self.terms.as_slice() {
            [(Term::Var(var), 1)] => Some((*var, self.offset)),
            _ => None,
        }
    }

    /// The coefficients per variable and the offset, unless there is a division or remainder.
    pub fn as_affine(&self, n_vars: usize) -> Option<(Vec<i64>, i64)> {
        let mut coefficients = vec![0; n_vars];
        for (term, c) in &self.terms {
            match term {
                Term::Var(v) => coefficients[v.0 as usize] += c,
                _ => return None,
            }
        }
        Some((coefficients, self.offset))
    }

    /// True if the variable occurs anywhere.
    pub fn uses(&self, var: Var) -> bool {
        self.terms.iter().any(|(term, _)| term.uses(var))
    }

    /// The largest variable used, for bounds checks.
    pub fn max_var(&self) -> Option<Var> {
        self.terms
            .iter()
            .filter_map(|(term, _)| match term {
                Term::Var(v) => Some(*v),
                _ => term.inner().and_then(Idx::max_var),
            })
            .max()
    }

    /// The value at a point.
    pub fn eval(&self, point: &[i64]) -> i64 {
        let mut sum = self.offset;
        for (term, c) in &self.terms {
            sum = sum.wrapping_add(term.eval(point).wrapping_mul(*c));
        }
        sum
    }

    /// Replaces every variable by an expression.
    pub fn substitute(&self, by: &[Idx]) -> Idx {
        let mut sum = Idx::constant(self.offset);
        for (term, c) in &self.terms {
            let replaced = match term {
                Term::Var(v) => by[v.0 as usize].clone(),
                Term::Div(inner, n) => inner.substitute(by).div(*n),
                Term::Mod(inner, n) => inner.substitute(by).modulo(*n),
                Term::Table(inner, table) => inner.substitute(by).table(table.clone()),
            };
            sum = sum.plus(&replaced.times(*c));
        }
        sum
    }

    /// A range that holds the value for every point of a non-empty box of inclusive variable ranges. Exact for affine expressions with
    /// each variable once; an over-approximation where a remainder wraps.
    pub fn interval(&self, vars: &[Interval]) -> Interval {
        let (mut lo, mut hi) = (self.offset as i128, self.offset as i128);
        for (term, c) in &self.terms {
            let (a, b) = match term {
                Term::Var(v) => vars[v.0 as usize],
                Term::Div(inner, n) => {
                    let (a, b) = inner.interval(vars);
                    (a.div_euclid(*n), b.div_euclid(*n))
                }
                Term::Mod(inner, n) => {
                    let (a, b) = inner.interval(vars);
                    if a.div_euclid(*n) == b.div_euclid(*n) { (a.rem_euclid(*n), b.rem_euclid(*n)) } else { (0, n - 1) }
                }
                Term::Table(inner, table) => {
                    let reached = entries(table, inner.interval(vars));
                    (reached.iter().copied().min().unwrap_or(0), reached.iter().copied().max().unwrap_or(0))
                }
            };
            let (x, y) = (a as i128 * *c as i128, b as i128 * *c as i128);
            lo += x.min(y);
            hi += x.max(y);
        }
        let clamp = |v: i128| v.clamp(i64::MIN as i128, i64::MAX as i128) as i64;
        (clamp(lo), clamp(hi))
    }

    /// Simplifies divisions and remainders that never wrap over the given inclusive variable ranges.
    pub fn simplify(&self, vars: &[Interval]) -> Idx {
        let mut sum = Idx::constant(self.offset);
        for (term, c) in &self.terms {
            let simpler = match term {
                Term::Var(v) => Idx::var(*v),
                Term::Div(inner, n) => {
                    let inner = inner.simplify(vars);
                    let (whole, rest) = inner.split_multiples(*n);
                    let (a, b) = rest.interval(vars);
                    if a.div_euclid(*n) == b.div_euclid(*n) {
                        whole.plus_constant(a.div_euclid(*n))
                    } else {
                        whole.plus(&rest.div(*n))
                    }
                }
                Term::Mod(inner, n) => {
                    let inner = inner.simplify(vars);
                    let (_, rest) = inner.split_multiples(*n);
                    let (a, b) = rest.interval(vars);
                    if a.div_euclid(*n) == b.div_euclid(*n) {
                        rest.plus_constant(-(a.div_euclid(*n)).saturating_mul(*n))
                    } else {
                        rest.modulo(*n)
                    }
                }
                Term::Table(inner, table) => simpler_table(inner.simplify(vars), table, vars),
            };
            sum = sum.plus(&simpler.times(*c));
        }
        sum
    }

    /// Splits `self = n * first + second`, with every multiple of `n` in the first part.
    fn split_multiples(&self, n: i64) -> (Idx, Idx) {
        let (multiples, rest): (Vec<_>, Vec<_>) = self.terms.iter().cloned().partition(|(_, c)| c % n == 0);
        let whole = multiples.into_iter().map(|(t, c)| (t, c / n)).collect();
        (Idx::from_terms(whole, 0), Idx::from_terms(rest, self.offset))
    }

    /// Text with the given variable names.
    pub fn display<'a>(&'a self, names: &'a [String]) -> impl fmt::Display + 'a {
        DisplayIdx { idx: self, names }
    }
}

/// A table that has one entry where it is read is a constant. Other straight lines stay tables: how their variables are cut depends on it.
fn simpler_table(inner: Idx, table: &Arc<[i64]>, vars: &[Interval]) -> Idx {
    let reached = entries(table, inner.interval(vars));
    match reached.first() {
        Some(first) if reached.iter().any(|entry| entry != first) => inner.table(table.clone()),
        first => Idx::constant(first.copied().unwrap_or(0)),
    }
}

struct DisplayIdx<'a> {
    idx: &'a Idx,
    names: &'a [String],
}

impl fmt::Display for DisplayIdx<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = |idx| DisplayIdx { idx, names: self.names };
        let mut first = true;
        for (term, c) in &self.idx.terms {
            let sign = match (first, *c < 0) {
                (true, true) => "-",
                (true, false) => "",
                (false, true) => " - ",
                (false, false) => " + ",
            };
            f.write_str(sign)?;
            if c.unsigned_abs() != 1 {
                write!(f, "{}*", c.unsigned_abs())?;
            }
            match term {
                Term::Var(v) => match self.names.get(v.0 as usize) {
                    Some(name) => f.write_str(name)?,
                    None => write!(f, "?{}", v.0)?,
                },
                Term::Div(idx, n) | Term::Mod(idx, n) => {
                    let sign = if matches!(term, Term::Div(..)) { '/' } else { '%' };
                    // The factor applies to the quotient, not to what is divided.
                    let (open, close) = if *c == 1 || (*c == -1 && !first) { ("", "") } else { ("(", ")") };
                    write!(f, "{open}({}) {sign} {n}{close}", inner(idx))?
                }
                Term::Table(idx, table) => {
                    f.write_str("table[")?;
                    for (k, entry) in table.iter().enumerate() {
                        write!(f, "{}{entry}", if k == 0 { "" } else { ", " })?;
                    }
                    write!(f, "]({})", inner(idx))?
                }
            }
            first = false;
        }
        match (first, self.idx.offset) {
            (true, offset) => write!(f, "{offset}"),
            (false, 0) => Ok(()),
            (false, offset) if offset < 0 => write!(f, " - {}", offset.unsigned_abs()),
            (false, offset) => write!(f, " + {offset}"),
        }
    }
}

/// The rule for an index out of range. An axis of extent 0 has no valid index, so clamp and wrap are errors there too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Edge {
    /// An error that names the statement (unless the guard excludes the point).
    Error,
    /// Reading gives the fill value of the tensor, writing is dropped.
    Fill,
    /// The nearest element inside.
    Clamp,
    /// Periodic continuation.
    Wrap,
}

impl Edge {
    /// The name used in text.
    pub fn name(self) -> &'static str {
        match self {
            Edge::Error => "error",
            Edge::Fill => "fill",
            Edge::Clamp => "clamp",
            Edge::Wrap => "wrap",
        }
    }

    /// The position inside the axis an index stands for, or `None` outside it (extent 0 has no inside).
    #[inline]
    pub fn apply(self, index: i64, extent: u64) -> Option<u64> {
        let n = extent as i64;
        if (0..n).contains(&index) {
            return Some(index as u64);
        }
        match self {
            _ if n == 0 => None,
            Edge::Error | Edge::Fill => None,
            Edge::Clamp => Some(index.clamp(0, n - 1) as u64),
            Edge::Wrap => Some(index.rem_euclid(n) as u64),
        }
    }
}

/// The read of one operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Position of the operand among the node's arguments.
    pub operand: u32,
    /// One expression per axis of the operand.
    pub idx: Vec<Idx>,
    /// The edge rule.
    pub edge: Edge,
}

impl Access {
    /// True if no point of variables with these inclusive ranges reads outside of an operand of this shape, so that the edge rule does not matter.
    pub fn stays_inside(&self, shape: &[Extent], ranges: &[(i64, i64)]) -> bool {
        self.idx.iter().zip(shape).all(|(idx, extent)| {
            let (lo, hi) = idx.interval(ranges);
            lo >= 0 && extent.known().is_some_and(|n| hi < n as i64)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v(k: u32) -> Idx {
        Idx::var(Var(k))
    }

    #[test]
    fn normal_form_merges_and_drops() {
        let idx = v(0).times(2).plus(&v(1)).plus(&v(0).times(-2));
        assert_eq!(idx, v(1));
        assert_eq!(v(0).times(4).plus_constant(3).div(4), v(0));
        assert_eq!(v(0).times(4).plus_constant(7).modulo(4), Idx::constant(3));
    }

    #[test]
    fn intervals_of_div_and_mod() {
        let idx = v(0).div(3).plus(&v(0).modulo(3).times(-1));
        assert_eq!(v(0).modulo(10).interval(&[(12, 15)]), (2, 5));
        assert_eq!(v(0).modulo(10).interval(&[(8, 12)]), (0, 9));
        let (lo, hi) = idx.interval(&[(0, 8)]);
        for x in 0..9 {
            assert!((lo..=hi).contains(&idx.eval(&[x])));
        }
    }

    #[test]
    fn simplify_undoes_ravel() {
        // (7*i + j) / 7 with 0 <= j < 7 is i; the remainder is j.
        let linear = v(0).times(7).plus(&v(1));
        let ranges = [(0, 4), (0, 6)];
        assert_eq!(linear.div(7).simplify(&ranges), v(0));
        assert_eq!(linear.modulo(7).simplify(&ranges), v(1));
    }

    #[test]
    fn tables_are_looked_up() {
        let table: Arc<[i64]> = [4, 7, 10, 2].into();
        let idx = v(0).table(table.clone());
        assert_eq!((0..4).map(|p| idx.eval(&[p])).collect::<Vec<_>>(), [4, 7, 10, 2]);
        assert_eq!(idx.interval(&[(1, 3)]), (2, 10));
        assert_eq!(idx.simplify(&[(2, 2)]), Idx::constant(10));
        assert_eq!(idx.simplify(&[(0, 2)]), idx);
        assert_eq!(idx.substitute(&[Idx::constant(3)]), Idx::constant(2));
        assert!(idx.looks_up(Var(0)) && idx.uses(Var(0)) && !idx.looks_up(Var(1)));
    }

    #[test]
    fn display_is_readable() {
        let names = ["i".to_string(), "j".to_string()];
        let idx = v(0).times(2).plus(&v(1).times(-1)).plus_constant(-1);
        assert_eq!(idx.display(&names).to_string(), "2*i - j - 1");
        assert_eq!(v(1).div(2).display(&names).to_string(), "(j) / 2");
        assert_eq!(v(1).modulo(2).times(3).display(&names).to_string(), "3*((j) % 2)");
    }
}

//! Errors in program text, with suggestions.

use tw_ir::{DType, Error, Scalar};

use super::ast::{Expr, ExprKind, Item, Name};
use super::token::Range;

/// After this many errors the rest is not worth reading.
pub(super) const MAX_ERRORS: usize = 20;

/// Why something has no meaning.
#[derive(Debug)]
pub(super) enum Failure {
    /// An error that has not been reported yet.
    New(Error),
    /// It uses something that failed before.
    Reported,
}

/// The result of giving text a meaning.
pub(super) type Lowered<T> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::New(error)
    }
}

/// Names the place of an error.
pub(super) trait Place<T> {
    /// Names the place, unless a more precise one is already known.
    fn at(self, range: Range) -> Lowered<T>;
}

impl<T, E: Into<Failure>> Place<T> for Result<T, E> {
    fn at(self, range: Range) -> Lowered<T> {
        self.map_err(|failure| match failure.into() {
            Failure::New(error) => Failure::New(error.at(&range.span())),
            Failure::Reported => Failure::Reported,
        })
    }
}

/// An error at a place.
pub(super) fn error(range: Range, message: impl Into<String>) -> Error {
    Error::source(message).at(&range.span())
}

/// Values are converted without being asked only where they keep their meaning: not from floats to integers, nor from numbers to bools.
pub(super) fn check_fits(from: DType, to: DType, range: Range) -> Lowered<()> {
    // Integers and floats fit every float and complex type, if with less precision; nothing but a time is a time.
    let numbers = !from.is_time() && !from.is_complex();
    if (to.is_float() || to.is_complex()) && numbers || from.promote(to) == Some(to) && from.is_time() == to.is_time() {
        return Ok(());
    }
    if from.is_complex() && to.is_complex() {
        return Ok(());
    }
    let wrong = error(range, format!("{from} does not fit into {to}"));
    Err(wrong.help(format!("convert it: `{to}(..)`")).into())
}

/// As [`check_fits`], for a literal: a whole number fits every number type that can hold it.
pub(super) fn check_literal_fits(literal: Scalar, to: DType, range: Range) -> Lowered<()> {
    match literal {
        Scalar::I64(value) if to.is_integer() => {
            if Scalar::I64(value).cast(to).as_i64() == value && (to != DType::U64 || value >= 0) {
                return Ok(());
            }
            Err(error(range, format!("the literal {value} does not fit into {to}")).into())
        }
        literal => check_fits(literal.dtype(), to, range),
    }
}

/// A number of things, in words that fit it.
pub(super) fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// How to write to positions that only the run knows, which stand on the axes for which `at_run_time` is true.
pub(super) fn where_equal(target: &str, at_run_time: impl Iterator<Item = bool>) -> String {
    let axes: Vec<(String, bool)> =
        at_run_time.enumerate().map(|(k, at_run_time)| (index_name(k), at_run_time)).collect();
    let indices: Vec<&str> = axes.iter().map(|(name, _)| name.as_str()).collect();
    let equal: Vec<String> =
        axes.iter().filter(|(_, at_run_time)| *at_run_time).map(|(name, _)| format!("{name} == ..")).collect();
    format!("compare an index with it: `{target}[{}] = .. where {}`", indices.join(","), equal.join(" and "))
}

/// A name for the index of an axis in an example.
fn index_name(axis: usize) -> String {
    ["i", "j", "k", "l"].get(axis).map_or_else(|| format!("i{axis}"), |name| name.to_string())
}

/// An error about a name that means nothing, with the closest name that does.
pub(super) fn unknown<'b>(what: &str, name: Name<'_>, known: impl Iterator<Item = &'b str>) -> Error {
    let error = error(name.range, format!("no {what} is called `{}`", name.text));
    match nearest(name.text, known) {
        Some(similar) => error.help(format!("did you mean `{similar}`?")),
        None => error,
    }
}

/// The known name most like the given one, if any is like it at all.
pub(super) fn nearest<'b>(name: &str, known: impl Iterator<Item = &'b str>) -> Option<&'b str> {
    let limit = (name.chars().count() / 3).max(1);
    known
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= limit && *distance < candidate.chars().count())
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance, not counting case. Names are cut off at a length that no two names this different share.
fn distance(a: &str, b: &str) -> usize {
    let letters = |text: &str| text.chars().take(64).flat_map(char::to_lowercase).collect::<Vec<char>>();
    let (a, b) = (letters(a), letters(b));
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = (diagonal + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], cost);
        }
    }
    row[b.len()]
}

/// The first name in an expression that the predicate picks.
pub(super) fn find_name<'a>(expr: &Expr<'a>, picks: &mut dyn FnMut(&str) -> bool) -> Option<Name<'a>> {
    let mut each = |expr: &Expr<'a>| find_name(expr, picks);
    match &expr.kind {
        ExprKind::Name(text) => picks(text).then_some(Name { text, range: expr.range }),
        ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Imaginary(_)
        | ExprKind::Bool(_)
        | ExprKind::Text(_)
        | ExprKind::Tile(_) => None,
        ExprKind::Chain { first, rest } => each(first).or_else(|| rest.iter().find_map(|(_, expr)| each(expr))),
        ExprKind::Unary(_, operand) | ExprKind::Not(operand) => each(operand),
        ExprKind::Attribute { base, .. } => each(base),
        ExprKind::Power(base, exponent) => each(base).or_else(|| each(exponent)),
        ExprKind::Select(parts) => parts.iter().find_map(each),
        ExprKind::Tuple(parts) | ExprKind::List(parts) => parts.iter().find_map(each),
        ExprKind::Call { args, .. } | ExprKind::FamilyCall { args, .. } => args.iter().find_map(|arg| each(&arg.value)),
        ExprKind::Index { base, items } => each(base).or_else(|| {
            items.iter().find_map(|item| match item {
                Item::At(expr) => each(expr),
                Item::Slice { start, stop, step, .. } => {
                    [start.as_ref(), stop.as_ref(), step.as_deref()].into_iter().flatten().find_map(&mut each)
                }
                Item::Ellipsis(_) => None,
            })
        }),
        ExprKind::Reduce(reduce) => {
            let bound = |name: &str| reduce.binders.iter().any(|binder| binder.name.text == name);
            let mut picks = |name: &str| !bound(name) && picks(name);
            let ranges = reduce.binders.iter().filter_map(|binder| binder.range.as_ref());
            std::iter::once(&reduce.body)
                .chain(&reduce.guard)
                .chain(ranges.flat_map(|(start, end)| [start, end]))
                .find_map(|expr| find_name(expr, &mut picks))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_similar() {
        let known = ["matrix", "vector", "n", "Weights"];
        assert_eq!(nearest("matirx", known.into_iter()), Some("matrix"));
        assert_eq!(nearest("weights", known.into_iter()), Some("Weights"));
        assert_eq!(nearest("x", known.into_iter()), None);
        assert_eq!(nearest("something", known.into_iter()), None);
    }
}

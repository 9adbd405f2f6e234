//! Index variables, index expressions and edge rules.

use super::cursor::{Cursor, is_word};
use super::printer::{commas, quote};
use crate::error::Result;
use crate::index::{Edge, Idx, Term, Var};

/// A word for every variable: its name where that is a word and tells it apart, otherwise a made-up one.
pub(super) fn labels(names: &[String]) -> Vec<String> {
    let is_usable = |k: usize| is_word(&names[k]) && !names[..k].contains(&names[k]);
    let mut labels: Vec<String> = Vec::with_capacity(names.len());
    for k in 0..names.len() {
        let mut label = if is_usable(k) { names[k].clone() } else { format!("v{k}") };
        while !is_usable(k) && (names.contains(&label) || labels.contains(&label)) {
            label.push('_');
        }
        labels.push(label);
    }
    labels
}

/// The head of a variable's declaration: its label, and its name where that differs.
pub(super) fn print_label(label: &str, name: &str) -> String {
    if label == name { label.to_string() } else { format!("{label} {}", quote(name)) }
}

/// Reads what [`print_label`] writes: label and name.
pub(super) fn parse_label(cursor: &mut Cursor<'_>, labels: &mut Vec<String>) -> Result<String> {
    let start = cursor.place();
    let label = cursor.word("the name of a variable")?.to_string();
    if labels.contains(&label) {
        return Err(cursor.error_since(start, format_args!("there are two variables `{label}`")));
    }
    let name = if cursor.sees("\"") { cursor.string()? } else { label.clone() };
    labels.push(label);
    Ok(name)
}

/// Index expressions in brackets.
pub(super) fn print_indices(indices: &[Idx], labels: &[String]) -> String {
    format!("[{}]", commas(indices.iter().map(|idx| idx.display(labels))))
}

/// Reads what [`print_indices`] writes.
pub(super) fn parse_indices(cursor: &mut Cursor<'_>, labels: &[String]) -> Result<Vec<Idx>> {
    cursor.list("[", "]", |cursor| parse_idx(cursor, labels))
}

fn parse_idx(cursor: &mut Cursor<'_>, labels: &[String]) -> Result<Idx> {
    let (mut terms, mut offset) = (Vec::new(), 0i128);
    let start = cursor.place();
    let mut sign = if cursor.eat("-") { -1 } else { 1 };
    loop {
        let number = cursor.sees_digit().then(|| cursor.integer()).transpose()?;
        match number {
            Some(number) if !cursor.eat("*") => offset = offset.saturating_add(sign * number),
            _ => {
                let factor = number.unwrap_or(1).saturating_mul(sign);
                let factor = i64::try_from(factor).map_err(|_| cursor.error_since(start, "a factor is too large"))?;
                terms.push((parse_term(cursor, labels)?, factor));
            }
        }
        sign = if cursor.eat("+") {
            1
        } else if cursor.eat("-") {
            -1
        } else {
            break;
        };
    }
    let offset = i64::try_from(offset).map_err(|_| cursor.error_since(start, "the offset is too large"))?;
    Ok(Idx::from_terms(terms, offset))
}

fn parse_term(cursor: &mut Cursor<'_>, labels: &[String]) -> Result<Term> {
    if cursor.eat("(") {
        let inner = Box::new(cursor.nested(|cursor| parse_idx(cursor, labels))?);
        cursor.expect(")")?;
        // A quotient in parentheses of its own, so that a factor does not seem to belong to what is divided.
        if !cursor.sees("/")
            && !cursor.sees("%")
            && let ([(term @ (Term::Div(..) | Term::Mod(..)), 1)], 0) = (inner.terms(), inner.offset())
        {
            return Ok(term.clone());
        }
        let is_division = cursor.eat("/");
        if !is_division {
            cursor.expect("%")?;
        }
        let start = cursor.place();
        let n: i64 = cursor.fitting()?;
        if n <= 0 {
            return Err(cursor.error_since(start, "indices are divided by positive numbers only"));
        }
        return Ok(if is_division { Term::Div(inner, n) } else { Term::Mod(inner, n) });
    }
    let start = cursor.place();
    let word = cursor.word("a variable")?;
    if word == "table" && cursor.sees("[") {
        let table = cursor.list("[", "]", |cursor| {
            let sign = if cursor.eat("-") { -1 } else { 1 };
            let start = cursor.place();
            let entry = cursor.integer()?.saturating_mul(sign);
            i64::try_from(entry).map_err(|_| cursor.error_since(start, "an entry is too large"))
        })?;
        cursor.expect("(")?;
        let inner = Box::new(cursor.nested(|cursor| parse_idx(cursor, labels))?);
        cursor.expect(")")?;
        return Ok(Term::Table(inner, table.into()));
    }
    match labels.iter().position(|label| label == word) {
        Some(k) => Ok(Term::Var(Var(k as u32))),
        None => Err(cursor.error_since(start, format_args!("there is no variable `{word}`"))),
    }
}

/// An edge rule with a space before it, or nothing for the rule that is assumed.
pub(super) fn print_edge(edge: Edge) -> String {
    if edge == Edge::Error { String::new() } else { format!(" edge {}", edge.name()) }
}

/// Reads what [`print_edge`] writes.
pub(super) fn parse_edge(cursor: &mut Cursor<'_>) -> Result<Edge> {
    if !cursor.eat("edge") {
        return Ok(Edge::Error);
    }
    let start = cursor.place();
    let word = cursor.word("an edge rule")?;
    let rules = [Edge::Error, Edge::Fill, Edge::Clamp, Edge::Wrap];
    let rule = rules.into_iter().find(|rule| rule.name() == word);
    rule.ok_or_else(|| cursor.error_since(start, "expected error, fill, clamp or wrap"))
}

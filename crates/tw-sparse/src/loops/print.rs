//! The text of a kernel: pseudo-code for readers that [`parse`](super::parse) reads back.

use std::fmt::{self, Display, Write};

use tw_ir::{BinaryOp, Scalar};

use super::{ArrayId, ArrayRole, ArrayType, LocalId, LoopExpr, LoopKernel, LoopStmt};
use crate::width::IndexWidth;

/// The name of an operation in text, where it is written as a function. `and` is the lazy one.
pub(super) fn function_name(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::And => "bitand",
        BinaryOp::Or => "bitor",
        other => other.name(),
    }
}

/// The symbol and precedence of operations that are written between their operands.
pub(super) fn infix(op: BinaryOp) -> Option<(&'static str, u8)> {
    Some(match op {
        BinaryOp::Eq => ("==", 2),
        BinaryOp::Ne => ("!=", 2),
        BinaryOp::Le => ("<=", 2),
        BinaryOp::Ge => (">=", 2),
        BinaryOp::Lt => ("<", 2),
        BinaryOp::Gt => (">", 2),
        BinaryOp::Add => ("+", 3),
        BinaryOp::Sub => ("-", 3),
        BinaryOp::Mul => ("*", 4),
        BinaryOp::Div => ("/", 4),
        _ => return None,
    })
}

/// The name of an array type.
pub(super) fn array_type(kind: ArrayType) -> String {
    match kind {
        ArrayType::Index(IndexWidth::U32) => "index32".to_string(),
        ArrayType::Index(IndexWidth::U64) => "index64".to_string(),
        ArrayType::Value(dtype) => dtype.to_string(),
    }
}

/// A constant: plain for i64, f64 and bool, otherwise with its type.
pub(super) fn constant(value: Scalar) -> String {
    match value {
        Scalar::I64(_) | Scalar::F64(_) | Scalar::Bool(_) => value.to_string(),
        Scalar::C64(v) => format!("c64'{}, {}'", Scalar::F32(v.re), Scalar::F32(v.im)),
        Scalar::C128(v) => format!("c128'{}, {}'", Scalar::F64(v.re), Scalar::F64(v.im)),
        other => format!("{}'{other}'", other.dtype()),
    }
}

impl Display for LoopKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let params: Vec<&str> = self.locals[..self.n_params].iter().map(|local| local.name.as_str()).collect();
        writeln!(f, "kernel {}({}) {{", self.name, params.join(", "))?;
        for array in &self.arrays {
            let role = match array.role {
                ArrayRole::Input => "input",
                ArrayRole::Output => "output",
                ArrayRole::Workspace => "workspace",
            };
            writeln!(f, "  {role} {}: {}", array.name, array_type(array.kind))?;
        }
        for local in &self.locals[self.n_params..] {
            writeln!(f, "  local {}: {}", local.name, local.dtype)?;
        }
        self.body(f, &self.body, 1)?;
        writeln!(f, "}}")
    }
}

impl LoopKernel {
    fn local(&self, local: LocalId) -> &str {
        &self.locals[local.0 as usize].name
    }
    fn array(&self, array: ArrayId) -> &str {
        &self.arrays[array.0 as usize].name
    }

    fn body(&self, f: &mut fmt::Formatter<'_>, body: &[LoopStmt], depth: usize) -> fmt::Result {
        let pad = "  ".repeat(depth);
        for stmt in body {
            f.write_str(&pad)?;
            match stmt {
                LoopStmt::Set(local, value) => writeln!(f, "{} = {}", self.local(*local), self.text(value))?,
                LoopStmt::Store(array, index, value) => {
                    writeln!(f, "{}[{}] = {}", self.array(*array), self.text(index), self.text(value))?;
                }
                LoopStmt::Push(array, value) => writeln!(f, "push {}, {}", self.array(*array), self.text(value))?,
                LoopStmt::Resize(array, length, fill) => {
                    writeln!(f, "resize {} to {} with {}", self.array(*array), self.text(length), constant(*fill))?;
                }
                LoopStmt::Sort(keys, None) => writeln!(f, "sort {}", self.array(*keys))?,
                LoopStmt::Sort(keys, Some(values)) => {
                    writeln!(f, "sort {} with {}", self.array(*keys), self.array(*values))?;
                }
                LoopStmt::For(local, from, to, inner) => {
                    writeln!(f, "for {} in {}..{} {{", self.local(*local), self.text(from), self.text(to))?;
                    self.body(f, inner, depth + 1)?;
                    writeln!(f, "{pad}}}")?;
                }
                LoopStmt::While(condition, inner) => {
                    writeln!(f, "while {} {{", self.text(condition))?;
                    self.body(f, inner, depth + 1)?;
                    writeln!(f, "{pad}}}")?;
                }
                LoopStmt::If(..) => self.chain(f, stmt, depth)?,
                LoopStmt::Comment(text) => writeln!(f, "# {text}")?,
            }
        }
        Ok(())
    }

    /// `if .. else if .. else`, without a level of indentation per branch.
    fn chain(&self, f: &mut fmt::Formatter<'_>, stmt: &LoopStmt, depth: usize) -> fmt::Result {
        let pad = "  ".repeat(depth);
        let mut stmt = stmt;
        while let LoopStmt::If(condition, yes, no) = stmt {
            writeln!(f, "if {} {{", self.text(condition))?;
            self.body(f, yes, depth + 1)?;
            match no.as_slice() {
                [] => return writeln!(f, "{pad}}}"),
                [next @ LoopStmt::If(..)] => {
                    write!(f, "{pad}}} else ")?;
                    stmt = next;
                }
                other => {
                    writeln!(f, "{pad}}} else {{")?;
                    self.body(f, other, depth + 1)?;
                    return writeln!(f, "{pad}}}");
                }
            }
        }
        Ok(())
    }

    /// An expression as text.
    pub fn text(&self, expr: &LoopExpr) -> String {
        let mut out = String::new();
        self.expr(&mut out, expr, 0);
        out
    }

    fn call(&self, out: &mut String, name: &str, args: &[&LoopExpr]) {
        let args: Vec<String> = args.iter().map(|arg| self.text(arg)).collect();
        let _ = write!(out, "{name}({})", args.join(", "));
    }

    fn expr(&self, out: &mut String, expr: &LoopExpr, outer: u8) {
        match expr {
            LoopExpr::Const(value) => out.push_str(&constant(*value)),
            LoopExpr::Local(local) => out.push_str(self.local(*local)),
            LoopExpr::Load(array, index) => {
                let _ = write!(out, "{}[{}]", self.array(*array), self.text(index));
            }
            LoopExpr::Len(array) => {
                let _ = write!(out, "len({})", self.array(*array));
            }
            LoopExpr::Unary(op, a) => self.call(out, op.name(), &[a]),
            LoopExpr::Cast(dtype, a) => self.call(out, dtype.name(), &[a]),
            LoopExpr::Select(c, a, b) => self.call(out, "select", &[c, a, b]),
            LoopExpr::Seek { array, from, to, target } => {
                let args = [from, to, target].map(|arg| self.text(arg));
                let _ = write!(out, "seek({}, {})", self.array(*array), args.join(", "));
            }
            LoopExpr::Both(a, b) => self.between(out, "and", 1, a, b, outer),
            LoopExpr::Binary(op, a, b) => match infix(*op) {
                Some((symbol, precedence)) => self.between(out, symbol, precedence, a, b, outer),
                None => self.call(out, function_name(*op), &[a, b]),
            },
        }
    }

    /// Operators group to the left; the right operand needs brackets at the same precedence, so that trees come back as they were.
    fn between(&self, out: &mut String, symbol: &str, precedence: u8, a: &LoopExpr, b: &LoopExpr, outer: u8) {
        let brackets = outer > precedence;
        if brackets {
            out.push('(');
        }
        // Comparisons do not chain.
        self.expr(out, a, if precedence == 2 { 3 } else { precedence });
        let _ = write!(out, " {symbol} ");
        self.expr(out, b, precedence + 1);
        if brackets {
            out.push(')');
        }
    }
}

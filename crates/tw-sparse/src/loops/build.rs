//! A builder of kernels: statements are emitted into the innermost open body.

use std::collections::HashSet;

use tw_ir::{BinaryOp, DType, Scalar, UnaryOp};

use super::{ArrayDecl, ArrayId, ArrayRole, ArrayType, LocalDecl, LocalId, LoopExpr, LoopKernel, LoopStmt};

/// A kernel that is being built.
#[derive(Clone, Debug)]
pub struct Code {
    kernel: LoopKernel,
    open: Vec<Vec<LoopStmt>>,
    names: HashSet<String>,
}

/// A name that text can hold.
fn identifier(name: &str) -> String {
    let letters: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if letters.starts_with(|c: char| c.is_ascii_alphabetic()) { letters } else { format!("x{letters}") }
}

impl Code {
    /// A kernel without parameters, arrays or statements.
    pub fn new(name: &str) -> Code {
        let kernel = LoopKernel {
            name: identifier(name),
            n_params: 0,
            locals: Vec::new(),
            arrays: Vec::new(),
            body: Vec::new(),
        };
        let words = [
            "and",
            "for",
            "in",
            "while",
            "if",
            "else",
            "push",
            "resize",
            "sort",
            "with",
            "to",
            "true",
            "false",
            "inf",
            "nan",
            "len",
            "seek",
            "select",
            "kernel",
            "input",
            "output",
            "workspace",
            "local",
            "bitand",
            "bitor",
        ];
        let functions = UnaryOp::ALL.iter().map(|op| op.name()).chain(BinaryOp::ALL.iter().map(|op| op.name()));
        let types = DType::PHYSICAL.iter().map(|dtype| dtype.name());
        let names = words.into_iter().chain(functions).chain(types).map(str::to_string).collect();
        Code { kernel, open: vec![Vec::new()], names }
    }

    fn fresh(&mut self, wanted: &str) -> String {
        let wanted = &identifier(wanted);
        let mut name = wanted.clone();
        let mut k = 2;
        while !self.names.insert(name.clone()) {
            name = format!("{wanted}_{k}");
            k += 1;
        }
        name
    }

    /// Adds a parameter; all of them come before any variable.
    pub fn parameter(&mut self, name: &str) -> LocalId {
        debug_assert_eq!(self.kernel.n_params, self.kernel.locals.len());
        self.kernel.n_params += 1;
        self.declare(name, DType::I64)
    }

    /// Adds an array.
    pub fn array(&mut self, name: &str, kind: ArrayType, role: ArrayRole) -> ArrayId {
        let name = self.fresh(name);
        self.kernel.arrays.push(ArrayDecl { name, kind, role });
        ArrayId(self.kernel.arrays.len() as u32 - 1)
    }

    /// Adds a variable without a value.
    pub fn declare(&mut self, name: &str, dtype: DType) -> LocalId {
        let name = self.fresh(name);
        self.kernel.locals.push(LocalDecl { name, dtype });
        LocalId(self.kernel.locals.len() as u32 - 1)
    }

    /// Adds a variable with a value.
    pub fn variable(&mut self, name: &str, value: LoopExpr) -> LocalId {
        let dtype = self.kernel.dtype(&value);
        let local = self.declare(name, dtype);
        self.set(local, value);
        local
    }

    /// Gives a value a name, unless it is a constant or has one.
    pub fn bind(&mut self, name: &str, value: LoopExpr) -> LoopExpr {
        match value {
            LoopExpr::Const(_) | LoopExpr::Local(_) => value,
            value => LoopExpr::Local(self.variable(name, value)),
        }
    }

    /// The type of an expression.
    pub fn dtype(&self, expr: &LoopExpr) -> DType {
        self.kernel.dtype(expr)
    }

    /// Emits a statement.
    pub fn emit(&mut self, stmt: LoopStmt) {
        if let Some(body) = self.open.last_mut() {
            body.push(stmt);
        }
    }

    /// Emits `local = value`.
    pub fn set(&mut self, local: LocalId, value: LoopExpr) {
        self.emit(LoopStmt::Set(local, value));
    }
    /// Emits `array[index] = value`.
    pub fn store(&mut self, array: ArrayId, index: LoopExpr, value: LoopExpr) {
        self.emit(LoopStmt::Store(array, index, value));
    }
    /// Emits `push array, value`.
    pub fn push(&mut self, array: ArrayId, value: LoopExpr) {
        self.emit(LoopStmt::Push(array, value));
    }
    /// Emits a change of length.
    pub fn resize(&mut self, array: ArrayId, length: LoopExpr, fill: Scalar) {
        self.emit(LoopStmt::Resize(array, length, fill));
    }
    /// Emits a remark.
    pub fn comment(&mut self, text: impl Into<String>) {
        self.emit(LoopStmt::Comment(text.into()));
    }

    /// The statements that a function emits.
    pub fn collect<R>(&mut self, body: impl FnOnce(&mut Code) -> R) -> (Vec<LoopStmt>, R) {
        self.begin();
        let result = body(self);
        (self.end(), result)
    }

    /// Starts a body; [`Code::end`] returns it.
    pub fn begin(&mut self) {
        self.open.push(Vec::new());
    }
    /// Ends the body that was started last.
    pub fn end(&mut self) -> Vec<LoopStmt> {
        self.open.pop().unwrap_or_default()
    }

    /// Emits a loop over integers.
    pub fn for_loop(&mut self, local: LocalId, from: LoopExpr, to: LoopExpr, body: impl FnOnce(&mut Code)) {
        let (body, ()) = self.collect(body);
        self.emit(LoopStmt::For(local, from, to, body));
    }
    /// Emits a loop with a condition.
    pub fn while_loop(&mut self, condition: LoopExpr, body: impl FnOnce(&mut Code)) {
        let (body, ()) = self.collect(body);
        self.emit(LoopStmt::While(condition, body));
    }
    /// Emits statements that run only if a condition holds; without statements, nothing.
    pub fn if_then(&mut self, condition: LoopExpr, body: impl FnOnce(&mut Code)) {
        let (body, ()) = self.collect(body);
        if !body.is_empty() {
            self.emit(LoopStmt::If(condition, body, Vec::new()));
        }
    }

    /// The finished kernel.
    pub fn finish(mut self) -> LoopKernel {
        self.kernel.body = self.end();
        self.kernel
    }
}

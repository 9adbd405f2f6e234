//! Reads the statements of the conformance cases: index notation as TACO prints it, with `forall`, `where`, `sequence` and `reduce`.
//! Temporaries of `where` are put in place of their uses; the loops come back from the lowering by themselves.

use std::collections::HashMap;

use tw_ir::{BinaryOp, DType, Scalar, UnaryOp};
use tw_sparse::expr::{Combiner, IndexExpr, IndexStatement, IndexVariable, Monoid, OperandType};

#[derive(Clone, Debug)]
enum Tree {
    Number(f64),
    Call(String, Vec<Tree>),
    Infix(char, Box<Tree>, Box<Tree>),
    Negative(Box<Tree>),
    Assign(Box<Tree>, bool, Box<Tree>),
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&mut self) -> u8 {
        while self.text.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
        self.text.get(self.at).copied().unwrap_or(0)
    }
    fn eat(&mut self, c: u8) -> bool {
        let found = self.peek() == c;
        self.at += found as usize;
        found
    }
    fn tree(&mut self) -> Tree {
        let left = self.sum();
        if self.peek() == b'+' && self.text.get(self.at + 1) == Some(&b'=') {
            self.at += 2;
            return Tree::Assign(Box::new(left), true, Box::new(self.sum()));
        }
        if self.eat(b'=') {
            return Tree::Assign(Box::new(left), false, Box::new(self.sum()));
        }
        left
    }
    fn sum(&mut self) -> Tree {
        let mut left = self.product();
        loop {
            let c = self.peek();
            if !b"+-".contains(&c) || self.text.get(self.at + 1) == Some(&b'=') {
                return left;
            }
            self.at += 1;
            left = Tree::Infix(c as char, Box::new(left), Box::new(self.product()));
        }
    }
    fn product(&mut self) -> Tree {
        let mut left = self.atom();
        while b"*/".contains(&self.peek()) {
            let c = self.text[self.at] as char;
            self.at += 1;
            left = Tree::Infix(c, Box::new(left), Box::new(self.atom()));
        }
        left
    }
    fn atom(&mut self) -> Tree {
        let c = self.peek();
        if self.eat(b'-') {
            return Tree::Negative(Box::new(self.atom()));
        }
        if self.eat(b'(') {
            let inner = self.tree();
            assert!(self.eat(b')'));
            return inner;
        }
        let start = self.at;
        while self.text.get(self.at).is_some_and(|c| c.is_ascii_alphanumeric() || b"._".contains(c)) {
            self.at += 1;
        }
        let word = std::str::from_utf8(&self.text[start..self.at]).unwrap().to_string();
        if c.is_ascii_digit() {
            return Tree::Number(word.parse().unwrap());
        }
        if !self.eat(b'(') {
            return Tree::Call(word, Vec::new());
        }
        let mut args = Vec::new();
        while !self.eat(b')') {
            args.push(self.tree());
            self.eat(b',');
        }
        Tree::Call(word, args)
    }
}

struct Meaning {
    operands: Vec<OperandType>,
    variables: Vec<String>,
    temporaries: HashMap<String, IndexExpr>,
}

const INDEX_TYPE: DType = DType::F64;

impl Meaning {
    fn var(&mut self, tree: &Tree) -> IndexVariable {
        let Tree::Call(name, _) = tree else { panic!("{tree:?} is no variable") };
        let k = self.variables.iter().position(|other| other == name).unwrap_or_else(|| {
            self.variables.push(name.clone());
            self.variables.len() - 1
        });
        IndexVariable(k)
    }

    fn expr(&mut self, tree: &Tree) -> IndexExpr {
        use BinaryOp::*;
        let constant = |value: f64| IndexExpr::Constant(Scalar::F64(value));
        match tree {
            Tree::Number(value) => constant(*value),
            Tree::Negative(a) => match &**a {
                Tree::Number(value) => constant(-value),
                a => IndexExpr::Unary(UnaryOp::Neg, Box::new(self.expr(a))),
            },
            Tree::Infix(c, a, b) => {
                let (a, b) = (self.expr(a), self.expr(b));
                let integers = matches!(a, IndexExpr::Cast(DType::I64, _));
                let op = match c {
                    '+' => Add,
                    '-' => Sub,
                    '*' => Mul,
                    _ if integers => FloorDiv,
                    _ => Div,
                };
                IndexExpr::binary(op, a, b)
            }
            Tree::Assign(..) => panic!("an assignment inside an expression"),
            Tree::Call(name, args) => self.call(name, args),
        }
    }

    fn call(&mut self, name: &str, args: &[Tree]) -> IndexExpr {
        use BinaryOp::*;
        if let Some(temporary) = self.temporaries.get(name) {
            return temporary.clone();
        }
        if let Some(tensor) = self.operands.iter().position(|operand| operand.name == name) {
            let vars: Vec<IndexVariable> = args.iter().map(|arg| self.var(arg)).collect();
            return IndexExpr::access(tensor, &vars);
        }
        if name == "sum" {
            let var = self.var(&args[0]);
            let body = self.expr(&args[1]);
            return IndexExpr::Reduce(Monoid::sum(INDEX_TYPE), vec![var], Box::new(body));
        }
        if name == "Cast" {
            let Tree::Call(dtype, _) = &args[1] else { panic!() };
            let dtype: DType = dtype.to_lowercase().replace("float", "f").replace("int", "i").parse().unwrap();
            return IndexExpr::Cast(dtype, Box::new(self.expr(&args[0])));
        }
        let args: Vec<IndexExpr> = args.iter().map(|arg| self.expr(arg)).collect();
        let zero = || IndexExpr::Constant(Scalar::F64(0.0));
        let one = || IndexExpr::Constant(Scalar::F64(1.0));
        let nonzero = |a: &IndexExpr| IndexExpr::binary(Ne, a.clone(), zero());
        let number = |a: IndexExpr| IndexExpr::Cast(INDEX_TYPE, Box::new(a));
        let select =
            |c: IndexExpr, a: IndexExpr, b: IndexExpr| IndexExpr::Select(Box::new(c), Box::new(a), Box::new(b));
        let binary = |op: BinaryOp| IndexExpr::binary(op, args[0].clone(), args[1].clone());
        match name {
            "gt" => binary(Gt),
            "lt" => binary(Lt),
            "gte" => binary(Ge),
            "lte" => binary(Le),
            "eq" => binary(Eq),
            "neq" => binary(Ne),
            "max" => binary(Max),
            "min" => binary(Min),
            "mod" => binary(Mod),
            "pow" => binary(Pow),
            "atan2" => binary(Atan2),
            "Plus" => binary(Add),
            "scAnd" => number(IndexExpr::binary(And, nonzero(&args[0]), nonzero(&args[1]))),
            "bfsMaskOp" => select(nonzero(&args[1]), zero(), args[0].clone()),
            "xorOp" => select(IndexExpr::binary(Ne, nonzero(&args[0]), nonzero(&args[1])), binary(Add), zero()),
            "Not" => IndexExpr::Unary(UnaryOp::Not, Box::new(args[0].clone())),
            "square" => IndexExpr::binary(Mul, args[0].clone(), args[0].clone()),
            "cube" => IndexExpr::binary(Mul, IndexExpr::binary(Mul, args[0].clone(), args[0].clone()), args[0].clone()),
            "heaviside" => {
                let half = args.get(1).cloned().unwrap_or_else(zero);
                let equal = IndexExpr::binary(Eq, args[0].clone(), zero());
                let above = IndexExpr::binary(Gt, args[0].clone(), zero());
                select(equal, half, select(above, one(), zero()))
            }
            name => IndexExpr::Unary(
                name.parse().unwrap_or_else(|()| panic!("`{name}` is not known")),
                Box::new(args[0].clone()),
            ),
        }
    }

    /// The assigned tensor, its indices and its value; `loops` are the variables of the loops around it.
    fn statement(&mut self, tree: &Tree, loops: &[IndexVariable]) -> (String, Vec<IndexVariable>, IndexExpr) {
        let target = |meaning: &mut Meaning, tree: &Tree| {
            let Tree::Call(name, vars) = tree else { panic!("{tree:?} is no target") };
            let vars: Vec<IndexVariable> = vars.iter().map(|var| meaning.var(var)).collect();
            (name.clone(), vars)
        };
        let reduced = |how: Monoid, indices: &[IndexVariable], value: IndexExpr| {
            let vars: Vec<IndexVariable> = loops.iter().copied().filter(|var| !indices.contains(var)).collect();
            match vars.is_empty() {
                true => value,
                false => IndexExpr::Reduce(how, vars, Box::new(value)),
            }
        };
        match tree {
            Tree::Assign(left, _, value) => {
                let (name, indices) = target(self, left);
                let value = self.expr(value);
                let value = reduced(Monoid::sum(INDEX_TYPE), &indices, value);
                (name, indices, value)
            }
            Tree::Call(name, args) => match name.as_str() {
                "forall" => {
                    let var = self.var(&args[0]);
                    let loops: Vec<IndexVariable> = loops.iter().copied().chain([var]).collect();
                    self.statement(&args[1], &loops)
                }
                "where" => {
                    let (temporary, _, value) = self.statement(&args[1], &[]);
                    self.temporaries.insert(temporary, value);
                    self.statement(&args[0], loops)
                }
                "sequence" => {
                    let (name, indices, first) = self.statement(&args[0], loops);
                    let (_, _, second) = self.statement(&args[1], loops);
                    (name, indices, IndexExpr::binary(BinaryOp::Add, first, second))
                }
                "reduce" => {
                    let (name, indices) = target(self, &args[0]);
                    let value = self.expr(&args[1]);
                    let Tree::Call(op, _) = &args[2] else { panic!() };
                    let how = match op.as_str() {
                        // Truth values are 0 and 1 here.
                        "scOr" => Monoid { combine: Combiner::Op(BinaryOp::Max), identity: Scalar::F64(0.0) },
                        "customMin" => Monoid::min(INDEX_TYPE),
                        op => panic!("reduction {op}"),
                    };
                    let value = reduced(how, &indices, value);
                    (name, indices, value)
                }
                other => panic!("statement {other}"),
            },
            other => panic!("{other:?} is no statement"),
        }
    }
}

/// Reads a statement; einsum sums where the text is a plain assignment.
pub fn read(text: &str, output: OperandType, operands: Vec<OperandType>) -> tw_ir::Result<IndexStatement> {
    let tree = Reader { text: text.as_bytes(), at: 0 }.tree();
    let mut meaning = Meaning { operands, variables: Vec::new(), temporaries: HashMap::new() };
    let (_, indices, value) = meaning.statement(&tree, &[]);
    IndexStatement::einsum(meaning.variables, output, indices, meaning.operands, value)
}

//! Sparse tensors: how they are stored, and loop nests that compute index statements over them.
//!
//! * [`level`], [`format`](mod@format), [`tensor`]: level formats behind one trait, tensors made of levels, the checks at their entry, conversions.
//! * [`expr`]: index notation over tensors in any formats. [`algebra`] and [`lattice`]: what absent operands mean.
//! * [`lower`](mod@lower): a statement as one fused loop nest with its assembly and workspaces. [`loops`]: the loop IR with printer, parser, verifier and
//!   interpreter. [`compile`]: both together, ready to run.
//!
//! ```
//! use tw_ir::{BinaryOp, Buffer, Scalar};
//! use tw_sparse::expr::{IndexExpr, IndexStatement, IndexVariable, OperandType};
//! use tw_sparse::{CompiledStatement, InterpretedLoops, SparseTensor, TensorFormat};
//!
//! // y(i) = sum(k, A(i, k) * x(k)), with A in CSR.
//! let zero = Scalar::F64(0.0);
//! let (csr, dense): (TensorFormat, _) = ("dense, compressed".parse()?, TensorFormat::dense(1));
//! let a = SparseTensor::from_dense(vec![2, 3], csr.clone(), zero, &Buffer::F64(vec![0.0, 2.0, 0.0, 3.0, 0.0, 4.0]))?;
//! let x = SparseTensor::from_dense(vec![3], dense.clone(), zero, &Buffer::F64(vec![1.0, 10.0, 100.0]))?;
//! let [i, k] = [IndexVariable(0), IndexVariable(1)];
//! let operand = |name: &str, format: &TensorFormat| OperandType { name: name.into(), format: format.clone(), fill: zero };
//! let product = IndexExpr::binary(BinaryOp::Mul, IndexExpr::access(0, &[i, k]), IndexExpr::access(1, &[k]));
//! let statement = IndexStatement::einsum(
//!     vec!["i".into(), "k".into()],
//!     operand("y", &dense),
//!     vec![i],
//!     vec![operand("A", &csr), operand("x", &dense)],
//!     product,
//! )?;
//! let compiled = CompiledStatement::new(statement)?;
//! println!("{}", compiled.lowered().kernel);
//! let y = compiled.run(&InterpretedLoops, &[&a, &x], &[])?;
//! assert_eq!(y.to_dense()?, Buffer::F64(vec![20.0, 403.0]));
//! # Ok::<(), tw_ir::Error>(())
//! ```
//!
//! # Why a crate of its own
//!
//! `tw-ir` is the contract that every crate compiles against: its levels name values, blocks and tasks, and a change there rebuilds all.
//! What is here is one kind of kernel with a compiler of its own, two thirds of which (lattices, loop orders, workspaces) no other level
//! needs. The planner, the blocks and compiled code all use it, none of them owns it, and `tw-jit` must depend on it without the planner.
//! So it lies between `tw-ir` and those, and depends on `tw-ir` for element types, scalar operations and errors only. It does no input or
//! output, starts no threads and contains no `unsafe`.
#![forbid(unsafe_code)]

pub mod algebra;
pub mod compile;
pub mod dense;
pub mod expr;
pub mod format;
pub mod lattice;
pub mod level;
pub mod loops;
pub mod lower;
pub mod tensor;
pub mod width;

pub use compile::{CompiledStatement, InterpretedLoops, KernelEngine, StatementCall};
pub use format::TensorFormat;
pub use tensor::{CoordinateList, Duplicates, SparseTensor};
pub use width::IndexWidth;

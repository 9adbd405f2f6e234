//! Every level as text that people can read and that parses back to the same thing.
//!
//! ```
//! use tw_ir::{program::FunctionTable, text};
//! let source = r#"
//! program {
//!     %0 "A": f64[4, 5] tile(2, (3 2)) = source input "A"
//!     %1: f64[4] = index(%0) {
//!         for i: 4, k: 5
//!         read %0[i, k]
//!         code (f64, i64, i64) { s0 = param 0 } -> (s0)
//!         accum sum f64
//!         out [i] of [4]
//!     } @10..23
//!     output "rows" = %1
//! }
//! "#;
//! let program = text::parse_program(source, &FunctionTable::default()).unwrap();
//! assert_eq!(text::print_program(&program), source.trim_start());
//! ```
//!
//! The parsers take any text: errors say where, nothing panics, nesting is limited, and no memory is reserved for what is only claimed. What
//! they return has passed the verifier of its level.

mod accum;
mod block_fn;
mod cursor;
mod decl;
mod head;
mod index;
mod kernel;
mod mask;
mod op;
mod plan;
mod printer;
mod program;
mod routine;
mod scalar;
mod schedule;
mod spec;
mod statement;
mod types;
mod workflow;

#[cfg(test)]
mod tests;

pub(crate) use head::{
    Constant, Head, SetBoxes, parse_bindings, parse_meaning, parse_names, print_bindings, print_meaning, print_names,
};
pub use plan::{parse_plan, print_plan};
pub use program::{parse_program, print_program};
pub use schedule::{parse_schedule, print_schedule};
pub use workflow::{parse_workflow, print_workflow};

//! Index statements.
//!
//! A statement is compiled once: an order of its loops is chosen, its code gets registers, its accesses are taken apart. A task then
//! runs over the rows of its box, strip by strip: load the operands of a strip (often just a slice of a block), evaluate the code, and write or
//! fold the results. Contractions that a matrix product can do go there instead.

mod access;
mod aggregate;
mod compile;
mod contract;
mod copy;
mod fold_rows;
mod frame;
mod general;
mod load;
mod run;
mod segment;
mod slide;
mod store;

pub(crate) use compile::CompiledStatement;

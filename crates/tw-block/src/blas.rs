//! Libraries of linear algebra in foreign code: found when the program runs, loaded, and called.
//!
//! ## Threads
//!
//! A task runs on one thread, so a library has to run its routines on the thread that calls them. OpenBLAS, which almost every NumPy brings, has
//! one number of threads for the whole process (`openblas_set_num_threads_local` changes it for all threads, too, in builds with POSIX threads, as
//! those of NumPy and SciPy are). Whoever sets it to one slows down all other users of the library. So Tilewright loads a [private
//! copy](copy::private): the file is copied under another name, so that the loader gives it data of its own, set to one thread, and deleted at
//! once. That takes tens of milliseconds, once per process and not before the first product or factorisation. What was rejected:
//!
//! - setting the number around each call: other threads of the process may be inside the library at that moment;
//! - `dlmopen`: it needs no copy of the file, but brings a second C library with its own heap, thread-local storage and fork handlers;
//! - an environment variable: it would have to be set before NumPy is imported, and would be NumPy's as well.
//!
//! MKL has a number of threads for each thread, which is set around each call. A library that no other code of the process has loaded needs no copy.

mod copy;
mod lapack;
mod library;

pub(crate) use lapack::Lapack;
pub(crate) use library::{Library, Symbols, Unusable};

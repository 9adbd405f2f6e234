//! The three binary interfaces of MPI libraries: their constants, which differ, under one set of names.
//!
//! Handles are `usize` everywhere here. MPICH's are `int`s, which the calling conventions of all supported machines pass in the low half of a
//! register; the others' are pointers. A handle that a function writes is read from memory that was zero before, so the low half suffices
//! (machines are little-endian). Arrays of handles are never passed, since their strides differ; nor is a status ever read, since
//! layouts differ: the protocol above knows sender, tag and size.

use std::ffi::c_int;

/// The interface that a library has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpiInterface {
    /// That of the MPI 5.0 standard: `libmpi_abi.so` of MPICH 5 and Intel MPI.
    Standard,
    /// That of MPICH, Intel MPI and their relatives: `libmpi.so.12`.
    Mpich,
    /// That of Open MPI 4 and 5: `libmpi.so.40`. Its handles are addresses of variables of the library.
    OpenMpi,
}

/// What calls need to know about an interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Constants {
    pub(crate) world: usize,
    pub(crate) null_comm: usize,
    pub(crate) byte: usize,
    pub(crate) errors_return: usize,
    pub(crate) any_source: c_int,
    pub(crate) tag_upper_bound: c_int,
    pub(crate) thread_serialized: c_int,
    pub(crate) thread_multiple: c_int,
    pub(crate) ignored_status: usize,
    /// Bytes of a handle.
    pub(crate) handle_bytes: usize,
}

const STANDARD: Constants = Constants {
    world: 0x101,
    null_comm: 0x100,
    byte: 0x247,
    errors_return: 0x143,
    any_source: -1,
    tag_upper_bound: 501,
    thread_serialized: 2048,
    thread_multiple: 4096,
    ignored_status: 0,
    handle_bytes: size_of::<usize>(),
};

const MPICH: Constants = Constants {
    world: 0x4400_0000,
    null_comm: 0x0400_0000,
    byte: 0x4c00_010d,
    errors_return: 0x5400_0001,
    any_source: -2,
    tag_upper_bound: 0x6440_0001,
    thread_serialized: 2,
    thread_multiple: 3,
    ignored_status: 1,
    handle_bytes: size_of::<c_int>(),
};

/// The names of the variables that are handles of Open MPI, as in [`Constants`].
const OPEN_MPI_HANDLES: [&str; 4] =
    ["ompi_mpi_comm_world", "ompi_mpi_comm_null", "ompi_mpi_byte", "ompi_mpi_errors_return"];

impl MpiInterface {
    /// The constants; `address` finds a variable of the library. None if one is missing.
    pub(crate) fn constants(self, address: impl Fn(&str) -> Option<usize>) -> Result<Constants, &'static str> {
        match self {
            MpiInterface::Standard => Ok(STANDARD),
            MpiInterface::Mpich => Ok(MPICH),
            MpiInterface::OpenMpi => {
                let mut handles = [0; 4];
                for (handle, name) in handles.iter_mut().zip(OPEN_MPI_HANDLES) {
                    *handle = address(name).ok_or(name)?;
                }
                let [world, null_comm, byte, errors_return] = handles;
                Ok(Constants {
                    world,
                    null_comm,
                    byte,
                    errors_return,
                    any_source: -1,
                    tag_upper_bound: 0,
                    thread_serialized: 2,
                    thread_multiple: 3,
                    ignored_status: 0,
                    handle_bytes: size_of::<usize>(),
                })
            }
        }
    }
}

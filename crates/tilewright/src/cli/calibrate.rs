//! `tw calibrate`: measures this machine and writes a file for `--machine`.

use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Instant;

use tw_ir::error::{Error, Result};
use tw_place::{Link, Machine};

use super::Failure;
use super::out::Out;
use crate::available::available_bytes;
use crate::explain::{self, read_machine};
use crate::session::Session;

/// Arguments of `tw calibrate`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Bandwidth between nodes, which one node cannot measure, for example 1.25GB/s.
    #[arg(long, value_name = "RATE")]
    across_bandwidth: Option<String>,
    /// Latency between nodes, which one node cannot measure, for example 5us.
    #[arg(long, value_name = "TIME")]
    across_latency: Option<String>,
}

/// Repeats of each measurement; the median counts.
const REPEATS: usize = 7;

/// Runs the command.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<(), Failure> {
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()) as u32;
    // The options are parsed like the entries of a file, before any measurement.
    let said = [("latency", &args.across_latency), ("bandwidth", &args.across_bandwidth)];
    let said: String =
        said.iter().filter_map(|(name, value)| Some(format!("across.{name} = {}\n", value.as_ref()?))).collect();
    let across = read_machine(Some(("", &said)), None, None)?.across;
    // Nobody wants to wait for measurements that cannot be written.
    let folder = args.out.as_ref().and_then(|path| path.parent()).filter(|folder| !folder.as_os_str().is_empty());
    if let (Some(path), Some(folder)) = (&args.out, folder)
        && !folder.is_dir()
    {
        let what = format!("{} cannot be written: {} is not a directory", path.display(), folder.display());
        return Err(Error::io(what).into());
    }
    let rates = explain::Speeds::measure()?;
    let machine = Machine {
        nodes: 1,
        workers,
        inside: Link { latency: latency()?, bandwidth: bandwidth()? },
        across,
        task: task_seconds()?,
        flops: flops()?,
        scalar: rates.scalar_work,
        stream: rates.bytes,
        memory: None,
    };
    machine.verify()?;
    let mut text = String::from("# Measured by `tw calibrate`: one worker for every core.\n");
    if args.across_latency.is_none() || args.across_bandwidth.is_none() {
        text.push_str(
            "# What is between nodes was not measured; say it with --across-latency and --across-bandwidth.\n",
        );
    }
    text.push_str(&machine.to_string());
    if let Some(bytes) = available_bytes() {
        text.push_str(&format!("# memory = {}B   # what is free now, for each\n", bytes / workers as u64));
    }
    match &args.out {
        None => out.line(format_args!("{}", text.trim_end())),
        Some(path) => {
            std::fs::write(path, &text)
                .map_err(|error| Error::io(format!("{} cannot be written: {error}", path.display())))?;
            out.line(format_args!(
                "{}: {} workers, {:.3e} operations a second each",
                path.display(),
                workers,
                machine.flops
            ));
        }
    }
    Ok(())
}

/// The median of what is measured, in seconds, after once for nothing.
fn median(mut measure: impl FnMut() -> Result<f64>) -> Result<f64> {
    measure()?;
    let mut seconds = (0..REPEATS).map(|_| measure()).collect::<Result<Vec<f64>>>()?;
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[REPEATS / 2])
}

/// Operations per second of one worker in a matrix product that takes long enough to be measured.
fn flops() -> Result<f64> {
    let mut n = 128;
    loop {
        let session = Session::builder().threads(1).tile(n).build();
        let (a, b) = (session.random_normal(&[n, n], 1)?, session.random_normal(&[n, n], 2)?);
        a.persist()?;
        b.persist()?;
        let product = || {
            let started = Instant::now();
            a.matmul(&b)?.persist()?;
            Ok(started.elapsed().as_secs_f64())
        };
        if n >= LARGEST || product()? > LONG_ENOUGH {
            return Ok(2.0 * (n as f64).powi(3) / median(product)?);
        }
        n *= 2;
    }
}

/// Rows of the largest product, and seconds that are long enough.
const LARGEST: u64 = 2048;
const LONG_ENOUGH: f64 = 0.02;

/// Seconds that a task costs before it computes anything: those of many that compute next to nothing.
fn task_seconds() -> Result<f64> {
    let (n, tile) = (1 << 14, 4);
    let session = Session::builder().threads(1).tile(tile).build();
    let x = session.arange(0.0, n as f64, 1.0)?;
    x.persist()?;
    let seconds = median(|| {
        let started = Instant::now();
        x.add_scalar(1.0)?.persist()?;
        Ok(started.elapsed().as_secs_f64())
    })?;
    Ok(seconds / (n as f64 / tile as f64))
}

/// Bytes per second of a copy from one buffer to another, too large for the caches.
fn bandwidth() -> Result<f64> {
    let from = vec![1u64; 1 << 23];
    let mut to = vec![0u64; from.len()];
    let seconds = median(|| {
        let started = Instant::now();
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&mut to);
        Ok(started.elapsed().as_secs_f64())
    })?;
    Ok((from.len() * 8) as f64 / seconds)
}

/// Seconds that a word takes from one thread to another: half of what it takes there and back.
fn latency() -> Result<f64> {
    const ROUNDS: u32 = 2000;
    let ((there, at_echo), (back, here)) = (mpsc::channel::<u32>(), mpsc::channel::<u32>());
    let echo = std::thread::spawn(move || at_echo.iter().try_for_each(|word| back.send(word)));
    let seconds = median(|| {
        let started = Instant::now();
        for round in 0..ROUNDS {
            let answered = there.send(round).is_ok() && here.recv().is_ok();
            if !answered {
                return Err(Error::internal("the other thread has ended"));
            }
        }
        Ok(started.elapsed().as_secs_f64())
    });
    drop(there);
    // It ends when the last sender is dropped.
    let _ = echo.join();
    Ok(seconds? / ROUNDS as f64 / 2.0)
}

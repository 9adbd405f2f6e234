//! Latency, bandwidth and CPU time of messages between two ranks through `Wire`.
//!
//! `wire_speed` alone measures two threads of one process; `mpirun -n 2 wire_speed mpi` measures MPI. `wire_speed ranks 64` lets many threads exchange the same
//! number of messages each, to show that nothing grows with pairs of ranks.

use std::time::{Duration, Instant};

use tw_ir::{Error, Result};
use tw_wire::{Collective, Completion, Message, Payload, Room, Tag, Wire, WireLimits, channels};

fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some("mpi") {
        let wire = tw_mpi::world(&tw_mpi::MpiOptions::default())?;
        measure(&wire)?;
        return tw_mpi::finish(&wire);
    }
    match std::env::args().nth(2).and_then(|number| number.parse().ok()) {
        Some(n) => {
            let start = Instant::now();
            on_threads(n, exchange)?;
            let memory = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            let peak = memory.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default().trim();
            println!(
                "{n} ranks: {:.1} us of wall time for each message, peak {peak}",
                start.elapsed().as_secs_f64() * 1e6 / f64::from(n * 4 * ROUNDS)
            );
            Ok(())
        }
        None => on_threads(2, measure),
    }
}

fn on_threads(n: u32, code: fn(&dyn Wire) -> Result<()>) -> Result<()> {
    let wires = channels(n, WireLimits::default());
    std::thread::scope(|scope| {
        let ranks: Vec<_> = wires.iter().map(|wire| scope.spawn(move || code(wire))).collect();
        ranks.into_iter().try_for_each(|rank| rank.join().map_err(|_| Error::internal("a rank panicked"))?)
    })
}

/// How many messages each rank sends to each of four others.
const ROUNDS: u32 = 500;

/// Each rank sends to the next four, every tenth message longer than a frame.
fn exchange(wire: &dyn Wire) -> Result<()> {
    let (rank, size) = (wire.rank(), wire.size());
    let lengths = |k: u32| if k % 10 == 9 { 50_000 } else { 64 };
    let mut completions = Vec::new();
    for round in 0..ROUNDS / 10 {
        let ids = round * 10..round * 10 + 10;
        for step in 1..=4 {
            for id in ids.clone() {
                let tag = Tag { run: 1, id };
                wire.receive((rank + size - step) % size, tag, Room::Bytes(lengths(id)))?;
                wire.send((rank + step) % size, tag, Message::of(vec![1; lengths(id) as usize]))?;
            }
        }
        let mut n_open = 2 * 4 * 10;
        while n_open > 0 {
            wire.poll(&mut completions);
            if completions.is_empty() {
                wire.wait(Duration::from_secs(1));
            }
            for completion in completions.drain(..) {
                match completion {
                    Completion::Sent { .. } | Completion::Received { .. } => n_open -= 1,
                    other => return Err(Error::internal(format!("{other:?}"))),
                }
            }
        }
    }
    Collective::barrier(wire, 2)?.finish(wire, &mut |_| Ok(()))?;
    Ok(())
}

fn measure(wire: &dyn Wire) -> Result<()> {
    if wire.size() != 2 {
        return Err(Error::source("two ranks are needed"));
    }
    let mut latency = round_trips(wire, 1, 8, 20_000)?;
    let mut transfer = round_trips(wire, 2, 64 << 20, 20)?;
    for times in [&mut latency, &mut transfer] {
        times.sort();
    }
    Collective::barrier(wire, 3)?.finish(wire, &mut |_| Ok(()))?;
    let small = stream(wire, 4, 64, 200_000)?;
    let medium = stream(wire, 5, 100_000, 2_000)?;
    let micro = |time: Duration| time.as_secs_f64() * 1e6;
    if wire.rank() == 0 {
        println!(
            "half a round trip: 8 B median {:.2} us, best {:.2} us; 64 MiB median {:.1} ms, best {:.1} ms",
            micro(latency[latency.len() / 2]) / 2.0,
            micro(latency[0]) / 2.0,
            micro(transfer[transfer.len() / 2]) / 2e3,
            micro(transfer[0]) / 2e3,
        );
    }
    let role = if wire.rank() == 0 { "sender" } else { "receiver, which polls without pause" };
    println!("CPU per message of 64 B {:.2} us, of 100 kB {:.1} us: {role}", micro(small), micro(medium));
    Collective::barrier(wire, 6)?.finish(wire, &mut |_| Ok(()))?;
    Ok(())
}

/// Polls until a message comes.
fn next(wire: &dyn Wire, completions: &mut Vec<Completion>) -> Result<Message> {
    loop {
        wire.poll(completions);
        let mut found = None;
        for completion in completions.drain(..) {
            match completion {
                Completion::Received { message, .. } => found = Some(message),
                Completion::Failed { error, .. } | Completion::Lost { error, .. } => return Err(error),
                _ => {}
            }
        }
        match found {
            Some(message) => return Ok(message),
            None => std::hint::spin_loop(),
        }
    }
}

/// There and back again, through memory that is used again, as blocks are. A rank sends back what it has received.
fn round_trips(wire: &dyn Wire, run: u64, length: usize, n: u32) -> Result<Vec<Duration>> {
    let (tag, other) = (Tag { run, id: 0 }, 1 - wire.rank());
    let mut completions = Vec::new();
    let mut times = Vec::new();
    let mut payload = Payload::from(vec![1; length]);
    let mut landing = vec![2; length];
    for _ in 0..n {
        wire.receive(other, tag, Room::Into(vec![Box::new(landing)]))?;
        let start = Instant::now();
        if wire.rank() == 0 {
            wire.send(other, tag, Message { header: vec![], buffers: vec![payload.clone()] })?;
        }
        let mut message = next(wire, &mut completions)?;
        times.push(start.elapsed());
        let used = std::mem::replace(&mut payload, message.buffers.remove(0));
        if wire.rank() == 1 {
            wire.send(other, tag, Message { header: vec![], buffers: vec![payload.clone()] })?;
        }
        // Rank 1's send goes on while it prepares the next receive; rank 0's was done before the answer came.
        landing = match used.downcast::<Vec<u8>>().map(std::sync::Arc::try_unwrap) {
            Ok(Ok(bytes)) => bytes,
            _ => return Err(Error::internal("a buffer is still shared")),
        };
    }
    Ok(times)
}

/// Rank 0 sends many messages, at most 100 ahead of the answers. The CPU time of this rank for each.
fn stream(wire: &dyn Wire, run: u64, length: usize, n: u32) -> Result<Duration> {
    let (tag, other) = (Tag { run, id: 0 }, 1 - wire.rank());
    let mut completions = Vec::new();
    let payload = Payload::from(vec![1; length]);
    let start = cpu_time();
    for k in 0..n {
        if wire.rank() == 0 {
            wire.send(other, tag, Message { header: vec![], buffers: vec![payload.clone()] })?;
            wire.poll(&mut completions);
            completions.clear();
        } else {
            wire.receive(other, tag, Room::Bytes(length as u64))?;
            next(wire, &mut completions)?;
        }
        if k % 100 == 99 {
            let answer = Tag { run, id: 1 };
            if wire.rank() == 0 {
                wire.receive(other, answer, Room::Bytes(0))?;
                // Sleeps as an engine would; the time of polling in vain is no time of messages.
                loop {
                    wire.poll(&mut completions);
                    let is_there =
                        completions.drain(..).any(|completion| matches!(completion, Completion::Received { .. }));
                    if is_there {
                        break;
                    }
                    wire.wait(Duration::from_millis(1));
                }
            } else {
                wire.send(other, answer, Message::default())?;
            }
        }
    }
    Ok(cpu_time().saturating_sub(start) / n)
}

/// The time that this thread has been running.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

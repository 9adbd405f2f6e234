//! Ranks under real launchers. Ignored unless asked for, since they need MPI:
//!
//! `TW_MPI=PREFIX[:PREFIX..] cargo test -p tw-mpi -- --ignored ranks` runs them with the `bin/mpirun` and the library of each prefix, such as a Python
//! environment with one of the wheels.
#![allow(unsafe_code, reason = "an address is handed over as a program would")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tw_wire::{Collective, Completion, Message, Payload, Room, Tag, Unfinished, Wire, WireLimits};

use crate::launcher::Launcher;
use crate::library::MpiLibrary;
use crate::{MpiOptions, MpiWire, abandon, adopt, disconnect, finish, world};

#[path = "../../tw-wire/tests/common/mod.rs"]
mod common;
use common::{Draw, Traffic, low_limits};

/// Set in processes that a launcher started for these tests.
const SCENARIO: &str = "TW_MPI_SCENARIO";

fn prefixes() -> Vec<PathBuf> {
    let named = std::env::var_os("TW_MPI").expect("TW_MPI names where MPI is installed");
    std::env::split_paths(&named).collect()
}

/// Runs the test `rank` of this program on some ranks.
fn launch(prefix: &Path, library: Option<&Path>, n: u32, scenario: &str) -> Output {
    let mut command = Command::new(prefix.join("bin/mpirun"));
    let path = std::env::join_paths(
        std::iter::once(prefix.join("bin")).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    command
        .env("PATH", path.unwrap())
        .env(SCENARIO, scenario)
        .env_remove(crate::LIBRARY_VARIABLE)
        .env_remove("VIRTUAL_ENV");
    // Open MPI: more ranks than cores, as any user.
    for name in [
        "OMPI_ALLOW_RUN_AS_ROOT",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
        "PRTE_ALLOW_RUN_AS_ROOT",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM",
    ] {
        command.env(name, "1");
    }
    command
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
    if let Some(library) = library {
        command.env(crate::LIBRARY_VARIABLE, library);
    }
    let program = std::env::current_exe().unwrap();
    command.args(["-n", &n.to_string()]).arg(program).args([
        "--exact",
        "tests::rank",
        "--ignored",
        "--nocapture",
        "--test-threads=1",
    ]);
    let child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("mpirun starts");
    let id = child.id();
    let (done, is_done) = std::sync::mpsc::channel();
    let watchdog = std::thread::spawn(move || {
        if is_done.recv_timeout(Duration::from_secs(120)).is_err() {
            let _ = Command::new("kill").arg(id.to_string()).status();
        }
    });
    let output = child.wait_with_output().unwrap();
    let _ = done.send(());
    watchdog.join().unwrap();
    output
}

fn texts(output: &Output) -> String {
    format!(
        "{}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
#[ignore = "needs MPI"]
fn ranks_exchange_messages() {
    for prefix in prefixes() {
        for n in [1, 2, 3, 4] {
            let output = launch(&prefix, None, n, "traffic");
            let text = texts(&output);
            assert!(output.status.success(), "{} with {n} ranks: {text}", prefix.display());
            for rank in 0..n {
                assert!(text.contains(&format!("rank {rank} of {n} is fine")), "{}: {text}", prefix.display());
            }
        }
    }
}

#[test]
#[ignore = "needs MPI"]
fn ranks_that_end_badly_end_all() {
    for prefix in prefixes() {
        let start = Instant::now();
        let output = launch(&prefix, None, 3, "abandon");
        assert!(
            !output.status.success() && start.elapsed() < Duration::from_secs(30),
            "{}: {}",
            prefix.display(),
            texts(&output)
        );
    }
}

/// Every launcher with the library of every other family.
#[test]
#[ignore = "needs MPI"]
fn ranks_name_a_library_of_another_launcher() {
    let prefixes = prefixes();
    let mut n_mixed = 0;
    for launcher in &prefixes {
        for other in prefixes.iter().filter(|other| *other != launcher) {
            let output = launch(launcher, Some(other), 2, "mixed");
            let text = texts(&output);
            // Two of one family understand each other.
            if text.contains("runs with 2 ranks") {
                continue;
            }
            n_mixed += 1;
            let expected = "launcher and library of MPI do not belong together";
            assert_eq!(text.matches(expected).count(), 2, "{} with {}: {text}", launcher.display(), other.display());
            assert!(text.contains("start the program with") && text.contains("TILEWRIGHT_MPI="), "{text}");
        }
    }
    assert!(prefixes.len() < 2 || n_mixed > 0, "no two families among {prefixes:?}");
}

/// What one rank does.
#[test]
#[ignore = "is run by a launcher"]
fn rank() {
    match std::env::var(SCENARIO).as_deref() {
        Ok("traffic") => exchange(),
        Ok("abandon") => {
            let wire = world(&MpiOptions::default()).unwrap();
            Collective::barrier(&wire, 1).unwrap().finish(&wire, &mut |_| Ok(())).unwrap();
            if wire.rank() == 1 {
                abandon(3);
            }
            // Waits for rank 1 for ever, unless the launcher ends it or MPI reports the loss.
            let _ = Collective::barrier(&wire, 2).unwrap().finish(&wire, &mut |_| Ok(()));
            abandon(4);
        }
        Ok("mixed") => match world(&MpiOptions::default()) {
            Ok(wire) => {
                println!("runs with {} ranks", wire.size());
                finish(&wire).unwrap();
            }
            Err(error) => println!("{error}"),
        },
        other => panic!("scenario {other:?}"),
    }
}

fn exchange() {
    let wire = world(&MpiOptions {
        limits: WireLimits { frame: 200, window: 500, piece: 50, lanes: 10 },
        ..Default::default()
    })
    .unwrap();
    random_traffic(&wire, 1);
    let library = MpiLibrary::get(&Launcher::detect(), &[]).unwrap();
    if wire.rank() == 0 {
        println!("{:?}: {library}, ULFM {}", library.interface(), library.has_ulfm());
    }
    // A second wire beside the first, over the communicator that a program may hand over.
    let handle = library.constants.world;
    // SAFETY: the handle of the world is valid; it is read with the width that handles have.
    let adopted = unsafe { adopt(&raw const handle as usize, &MpiOptions::default()) }.unwrap();
    assert_eq!((adopted.rank(), adopted.size()), (wire.rank(), wire.size()));
    random_traffic(&adopted, 1);
    random_traffic(&wire, 2);
    long_messages(&adopted);
    cancelled_runs(&adopted);
    let (rank, size) = (wire.rank(), wire.size());
    disconnect(&adopted).unwrap();
    finish(&wire).unwrap();
    println!("rank {rank} of {size} is fine");
}

fn random_traffic(wire: &MpiWire, run: u64) {
    let (rank, size) = (wire.rank(), wire.size());
    if size == 1 {
        return;
    }
    let mut draw = Draw::new(run);
    let _ = low_limits(&mut draw);
    let mut traffic = Traffic::new(&mut draw, size, run, 400);
    (0..size).filter(|&other| other != rank).for_each(|other| traffic.bury(other));
    let mut completions = Vec::new();
    let see = |traffic: &mut Traffic, completions: &mut Vec<Completion>| {
        completions.drain(..).for_each(|completion| assert!(traffic.see(rank, &completion), "{completion:?}"));
    };
    while !traffic.is_done() {
        traffic.act(&mut draw, rank, wire);
        wire.poll(&mut completions);
        if completions.is_empty() {
            wire.wait(Duration::from_millis(1));
        }
        see(&mut traffic, &mut completions);
    }
    Collective::barrier(wire, run).unwrap().finish(wire, &mut |other| panic!("{other:?}")).unwrap();
    assert_eq!(wire.cancel(run), Unfinished::default());
}

/// Each rank sends to the next at once, more than any eager limit.
fn long_messages(wire: &MpiWire) {
    let (rank, size) = (wire.rank(), wire.size());
    if size == 1 {
        return;
    }
    let tag = Tag { run: 50, id: 9 };
    let length = 30_000_001;
    let bytes = |rank: u32| (0..length).map(|k| (k as u32 ^ rank) as u8).collect::<Vec<u8>>();
    let before = (rank + size - 1) % size;
    wire.receive(before, tag, Room::Into(vec![Box::new(vec![0u8; length]), Box::new(vec![])])).unwrap();
    let buffers = vec![Payload::from(bytes(rank)), Payload::from(vec![])];
    wire.send((rank + 1) % size, tag, Message { header: vec![1], buffers }).unwrap();
    let (mut n_sent, mut n_received, mut completions) = (0, 0, Vec::new());
    while n_sent + n_received < 2 {
        wire.poll(&mut completions);
        for completion in completions.drain(..) {
            match completion {
                Completion::Sent { .. } => n_sent += 1,
                Completion::Received { message, .. } => {
                    assert!(message.buffers[0].bytes() == bytes(before) && message.buffers[1].is_empty());
                    n_received += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// A run ends on some ranks while messages are on their way, and the next run is not disturbed.
fn cancelled_runs(wire: &MpiWire) {
    let (rank, size) = (wire.rank(), wire.size());
    for run in 100..110u64 {
        for other in (0..size).filter(|&other| other != rank) {
            for id in 0..5 {
                let length = [10, 100_000][id as usize % 2];
                wire.send(other, Tag { run, id }, Message::of(vec![1; length])).unwrap();
                if (run + u64::from(id)) % 3 != 0 {
                    wire.receive(other, Tag { run, id }, Room::Bytes(length as u64)).unwrap();
                }
            }
        }
        let mut completions = Vec::new();
        (0..rank * 20).for_each(|_| wire.poll(&mut completions));
        wire.cancel(run);
        random_traffic(wire, run + 1000);
    }
}

//! Every message arrives once, in order for its tag, whole; and nothing stays behind.

mod common;

use common::{Draw, Traffic, assert_empty, low_limits};
use tw_wire::{Completion, Notice, SimulatedNetwork, SimulatedWire, Unfinished, Wire, channels};

/// How many seeds a test runs; `TW_FULL=1` runs a hundred times as many.
fn n_seeds(usual: u64) -> u64 {
    if std::env::var_os("TW_FULL").is_some() { 100 * usual } else { usual }
}

fn poll(rank: u32, wire: &impl Wire, traffics: &mut [&mut Traffic]) {
    let mut completions = Vec::new();
    wire.poll(&mut completions);
    for completion in completions {
        match &completion {
            Completion::Lost { rank: Some(lost), .. } => {
                traffics.iter_mut().for_each(|traffic| traffic.lose(rank, *lost))
            }
            Completion::Lost { rank: None, .. } => traffics.iter_mut().for_each(|traffic| traffic.bury(rank)),
            other => assert!(traffics.iter_mut().any(|traffic| traffic.see(rank, other)), "{other:?}"),
        }
    }
}

/// Polls until the network is quiet.
fn drain(network: &SimulatedNetwork, wires: &[SimulatedWire], traffics: &mut [&mut Traffic]) {
    loop {
        let stepped = network.step();
        (0..).zip(wires).for_each(|(rank, wire)| poll(rank, wire, traffics));
        if !stepped && !network.step() {
            return;
        }
    }
}

#[test]
fn simulated_traffic_arrives_once_and_in_order() {
    for seed in 0..n_seeds(1500) {
        let mut draw = Draw::new(seed);
        let size = 2 + draw.below(5) as u32;
        let n_messages = draw.below(60);
        let (network, wires) = SimulatedNetwork::new(size, seed, 1 + draw.below(500) as u64, low_limits(&mut draw));
        let mut traffic = Traffic::new(&mut draw, size, 1, n_messages);
        let mut turns = 0;
        while !traffic.is_done() {
            let rank = draw.below(size as usize) as u32;
            match draw.below(3) {
                0 => traffic.act(&mut draw, rank, &wires[rank as usize]),
                1 => poll(rank, &wires[rank as usize], &mut [&mut traffic]),
                _ => _ = network.step(),
            }
            turns += 1;
            assert!(turns < 200_000, "seed {seed} is stuck");
        }
        assert_eq!(traffic.n_received, n_messages);
        drain(&network, &wires, &mut [&mut traffic]);
        assert_empty(&wires);
        for wire in &wires {
            assert_eq!(wire.cancel(1), Unfinished::default(), "seed {seed}");
        }
    }
}

/// Ranks give up one run at different times, while another goes on.
#[test]
fn a_cancelled_run_leaves_nothing_and_disturbs_nobody() {
    let mut n_cancelled_in_the_middle = 0;
    for seed in 0..n_seeds(1000) {
        let mut draw = Draw::new(seed);
        let size = 2 + draw.below(4) as u32;
        let (network, wires) = SimulatedNetwork::new(size, seed, 1 + draw.below(100) as u64, low_limits(&mut draw));
        let mut bad = Traffic::new(&mut draw, size, 1, 30);
        let mut good = Traffic::new(&mut draw, size, 2, 20);
        let mut turns = 0;
        let begin = draw.below(200);
        while !(good.is_done() && bad.cancelled.iter().all(|&cancelled| cancelled)) {
            let rank = draw.below(size as usize) as u32;
            let wire = &wires[rank as usize];
            match draw.below(5) {
                0 => bad.act(&mut draw, rank, wire),
                1 => good.act(&mut draw, rank, wire),
                2 => poll(rank, wire, &mut [&mut bad, &mut good]),
                3 if turns > begin && draw.one_in(20) && !bad.cancelled[rank as usize] => {
                    n_cancelled_in_the_middle += usize::from(!bad.is_done());
                    bad.cancel(rank, wire);
                }
                _ => _ = network.step(),
            }
            turns += 1;
            assert!(turns < 200_000, "seed {seed} is stuck");
        }
        assert_eq!(good.n_received, 20);
        drain(&network, &wires, &mut [&mut bad, &mut good]);
        assert_empty(&wires);
    }
    assert!(n_cancelled_in_the_middle > 1000);
}

/// Killed ranks and broken connections: the others finish what concerns them.
#[test]
fn losses_leave_the_traffic_of_others_intact() {
    for seed in 0..n_seeds(1000) {
        let mut draw = Draw::new(seed);
        let size = 3 + draw.below(4) as u32;
        let (network, wires) = SimulatedNetwork::new(size, seed, 1 + draw.below(100) as u64, low_limits(&mut draw));
        let mut traffic = Traffic::new(&mut draw, size, 1, 50);
        let mut silent = None;
        let mut dead = Vec::new();
        let mut turns = 0;
        let faults: Vec<usize> = (0..1 + draw.below(2)).map(|_| draw.below(300)).collect();
        loop {
            if faults.contains(&turns) {
                let victim = draw.below(size as usize) as u32;
                match draw.below(3) {
                    0 => {
                        network.kill(victim, Notice::Within(50));
                        dead.push(victim);
                    }
                    1 if silent.is_none() => {
                        network.kill(victim, Notice::Never);
                        dead.push(victim);
                        silent = Some(victim);
                    }
                    _ => network.drop_connection(victim, (victim + 1) % size, 50),
                }
            }
            let rank = draw.below(size as usize) as u32;
            match draw.below(3) {
                0 if !dead.contains(&rank) => traffic.act(&mut draw, rank, &wires[rank as usize]),
                1 => poll(rank, &wires[rank as usize], &mut [&mut traffic]),
                _ => {
                    // Nothing moves any more: whoever counts heartbeats gives up the silent rank.
                    if !network.step() && turns > 500 {
                        let quiet = silent.take();
                        for (rank, wire) in
                            (0..).zip(&wires).filter(|(rank, _)| quiet.is_some() && !dead.contains(rank))
                        {
                            if !traffic.lost[rank as usize].contains(&quiet.unwrap()) {
                                wire.give_up(quiet.unwrap(), tw_ir::Error::resource("no heartbeat"));
                                poll(rank, wire, &mut [&mut traffic]);
                            }
                        }
                    }
                }
            }
            turns += 1;
            assert!(turns < 200_000, "seed {seed} is stuck");
            if turns > 600 && silent.is_none() && traffic.is_done() {
                break;
            }
        }
        drain(&network, &wires, &mut [&mut traffic]);
        assert_empty(&wires);
    }
}

/// Equal seeds give equal runs, to the tick.
#[test]
fn a_seed_determines_the_simulation() {
    let run = |seed: u64| {
        let mut draw = Draw::new(seed);
        let (network, wires) = SimulatedNetwork::new(4, seed, 300, low_limits(&mut draw));
        let mut traffic = Traffic::new(&mut draw, 4, 1, 40);
        let mut history = String::new();
        while !traffic.is_done() {
            let rank = draw.below(4) as u32;
            traffic.act(&mut draw, rank, &wires[rank as usize]);
            let mut completions = Vec::new();
            wires[rank as usize].poll(&mut completions);
            for completion in &completions {
                assert!(traffic.see(rank, completion));
                history += &format!("{} {rank} {completion:?}\n", network.now());
            }
            network.step();
        }
        history
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn traffic_between_threads_arrives_once_and_in_order() {
    for seed in 0..n_seeds(40) {
        let mut draw = Draw::new(seed);
        let size = 2 + draw.below(6) as u32;
        let wires = channels(size, low_limits(&mut draw));
        // Every thread does its own part of the same traffic.
        std::thread::scope(|scope| {
            for rank in 0..size {
                let (wires, seed) = (&wires, seed);
                scope.spawn(move || {
                    let wire = &wires[rank as usize];
                    let mut draw = Draw::new(seed);
                    let mut traffic = Traffic::new(&mut draw, size, 1, 80);
                    (0..size).filter(|&other| other != rank).for_each(|other| traffic.bury(other));
                    let mut idle = 0;
                    while !traffic.is_done() {
                        traffic.act(&mut draw, rank, wire);
                        poll(rank, wire, &mut [&mut traffic]);
                        wire.wait(std::time::Duration::from_micros(100));
                        idle += 1;
                        assert!(idle < 1_000_000, "seed {seed} is stuck");
                    }
                });
            }
        });
        // Frames that give windows back may still wait.
        for (rank, wire) in (0..).zip(&wires) {
            poll(rank, wire, &mut []);
        }
        assert_empty(&wires);
    }
}

//! Everyday programs, whose plans should be near the bound without a hand that writes distributions.

use super::*;
use crate::reductions::{meetings, patient_meetings};

fn rivals_of(text: &str, (nodes, workers): (u32, u32)) -> Rivals {
    let unit = parse_program(text, &Default::default(), &NoFiles, &Default::default()).unwrap();
    let machine = Machine::of(nodes, workers).unwrap();
    Rivals::of(&unit.program, &PlanOptions::default(), &machine, DEFAULT_LIMIT).unwrap()
}

/// Bytes of the busiest worker under `algebraic`, and the operations of its busiest worker over the mean.
fn algebraic(rivals: &Rivals) -> (u64, f64) {
    let simulation = &rivals.by_grids().unwrap().simulation;
    (simulation.wire_bytes_max(), simulation.flops_max().1)
}

/// Means and deviations alone want columns, and the product wants rows: all have to follow what is largest.
#[test]
fn statements_follow_the_largest_value() {
    let text =
        "x = random.normal(2000000, 200, seed=1)\nz = (x - mean(x, axis=0)) / std(x, axis=0)\ng = z.T @ z\noutput g\n";
    for machine in [(2, 1), (4, 2), (16, 4)] {
        let rivals = rivals_of(text, machine);
        let (bytes, work) = algebraic(&rivals);
        assert!(bytes as f64 <= 1.3 * rivals.bound_bytes, "{machine:?}: {bytes}, at least {}", rivals.bound_bytes);
        assert!(work < 1.05, "{machine:?}: {work}");
    }
}

/// 23 chunks of rows on 8 workers: whole chunks make the work a little uneven, parts of chunks would be sent.
#[test]
fn parts_consist_of_whole_chunks() {
    let text = "input x: f64[2000000, 200] tile(90000, -1)\nz = x - mean(x, axis=0)\ng = z.T @ z\noutput g\n";
    let rivals = rivals_of(text, (4, 2));
    let (bytes, work) = algebraic(&rivals);
    assert!(bytes as f64 <= 1.5 * rivals.bound_bytes, "{bytes}, at least {}", rivals.bound_bytes);
    assert!(work < 1.1, "{work}");
}

/// A scan needs the state before each part, not the part of anybody else.
#[test]
fn scans_send_states() {
    let (bytes, work) = algebraic(&rivals_of("input v: f64[100000000]\ny = cumsum(v)\noutput y\n", (4, 2)));
    assert!(bytes <= 64 && work < 1.1, "{bytes} bytes, work {work}");
}

/// What is joined stays where it is, but for what crosses a border between workers.
#[test]
fn joined_parts_stay_where_they_are() {
    let text = "input v: f64[80000000]\na = v[:1] * 2\nb = v[1:] - v[:-1]\ny = concat(a, b)\noutput y\n";
    let (bytes, work) = algebraic(&rivals_of(text, (4, 2)));
    assert!(bytes <= 4096 && work < 1.1, "{bytes} bytes, work {work}");
}

/// An axis that a reduction keeps does not make it work for one worker.
#[test]
fn kept_axes_do_not_matter() {
    let text = "input x: f64[400, 500000]\nz = x - mean(x, axis=1, keepdims=true)\ng = z @ z.T\noutput g\n";
    let rivals = rivals_of(text, (4, 2));
    let (bytes, work) = algebraic(&rivals);
    assert!(bytes as f64 <= 1.5 * rivals.bound_bytes && work < 1.05, "{bytes}, at least {}", rivals.bound_bytes);
}

/// A system of equations is solved on one worker. Its matrix is summed up there, and arrives once.
#[test]
fn sums_for_one_reader_arrive_once() {
    let text = "input x: f64[2000000, 200]\ninput y: f64[2000000]\nw = linalg.solve(x.T @ x, x.T @ y)\noutput w\n";
    for machine in [(2, 1), (4, 2)] {
        let rivals = rivals_of(text, machine);
        let bytes = algebraic(&rivals).0 as f64;
        assert!(bytes <= 1.25 * rivals.bound_bytes.max(201.0 * 200.0 * 8.0), "{machine:?}: {bytes}");
    }
}

#[test]
fn everyone_receives_one_part_if_there_is_time() {
    let machine = Machine::of(4, 3).unwrap();
    let workers: Vec<u32> = (0..12).collect();
    for home in 0..12 {
        let received = |found: &[(u32, u32)], worker: u32| found.iter().filter(|(to, _)| *to == worker).count();
        for (patience, most) in [(1.0, 1), (0.0, 4)] {
            let found = patient_meetings(home, &workers, 1000, patience, &machine);
            // Everyone but the home passes on what it has, after it has received all.
            let mut gone = std::collections::HashSet::new();
            for &(to, from) in &found {
                assert!(!gone.contains(&to) && from != home && gone.insert(from), "{found:?}");
            }
            assert_eq!(gone.len(), 11);
            assert_eq!((0..12).map(|worker| received(&found, worker)).max(), Some(most), "{home}: {found:?}");
        }
        let crossing = |found: Vec<(u32, u32)>| {
            found.iter().filter(|(to, from)| machine.node_of(*to) != machine.node_of(*from)).count()
        };
        assert_eq!(crossing(patient_meetings(home, &workers, 1000, 1.0, &machine)), 3);
        assert_eq!(crossing(meetings(home, &workers, &machine)), 3);
    }
}

//! All benches.

use super::declare::{BENCH, Bench, Ours, Rival, beside};
use super::planning::{self, placing};

mod elementwise;
mod movement;
mod products;
mod reductions;

/// Every bench, in the order in which they run.
pub(super) fn all() -> impl Iterator<Item = &'static Bench> {
    [PLANNING, products::BENCHES, elementwise::BENCHES, reductions::BENCHES, movement::BENCHES].into_iter().flatten()
}

static PLANNING: &[Bench] = &[
    Bench {
        name: "overhead",
        about: "trivial tasks that depend on each other; time per task",
        // The rival's times per task hardly depend on the number of tasks, and a million would take minutes.
        ours: Ours::Special { start: planning::overhead, rival_size: [40_000, 10_000] },
        rival_program: "timed_overhead",
        versus: &[beside(Rival::Dask)],
        ..BENCH
    },
    Bench {
        name: "plan",
        about: "planning a matrix product of a million tasks; time per task",
        ours: Ours::Special { start: planning::plan, rival_size: [40, 20] },
        rival_program: "timed_plan",
        versus: &[beside(Rival::Dask)],
        ..BENCH
    },
    Bench {
        name: "segment",
        about: "sum(x + 1) of 1000 elements, over and over; time per run",
        ours: Ours::Special { start: planning::segment, rival_size: [200, 50] },
        rival_program: "timed_segment",
        versus: &[beside(Rival::Dask)],
        ..BENCH
    },
    Bench {
        name: "place",
        about: "placing a matrix product of a million tasks on 64 workers, by every scheduler",
        ours: Ours::Alone(placing::place),
        ..BENCH
    },
    Bench {
        name: "statements",
        about: "planning a program of 1000 statements, for one machine and for 64 workers; time for one machine",
        ours: Ours::Alone(placing::statements),
        ..BENCH
    },
    Bench {
        name: "workers",
        // The other schedulers place the hundred tasks that one machine would have.
        about: "placing a matrix product of 4000 x 4000 on 10,000 workers; only `algebraic` cuts it for them",
        ours: Ours::Alone(placing::workers),
        ..BENCH
    },
];

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use super::super::subject::parse;
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut seen = HashSet::new();
        assert!(all().all(|bench| seen.insert(bench.name)));
    }

    #[test]
    fn programs_are_valid_and_rivals_know_them() {
        let programs = include_str!("rivals/programs.py");
        for bench in all() {
            if bench.versus.is_empty() {
                assert_eq!(bench.rival_program, "", "{}", bench.name);
            } else {
                let defined = format!("def {}(", bench.rival_program);
                assert!(programs.contains(&defined), "{}: {defined}", bench.name);
            }
            assert_eq!(matches!(bench.ours, Ours::Alone(_)), bench.versus.is_empty(), "{}", bench.name);
            let Ours::Text(text) = bench.ours else { continue };
            let unit = parse(text, &BTreeMap::new()).unwrap_or_else(|error| panic!("{}: {error}", bench.name));
            assert_eq!(unit.program.outputs.len(), 1, "{}", bench.name);
            for (name, _) in bench.quick {
                assert!(unit.params.contains_key(*name), "{}: {name}", bench.name);
            }
            for (name, _) in bench.data {
                assert!(unit.inputs.iter().any(|input| input.name == *name), "{}: {name}", bench.name);
            }
        }
    }
}

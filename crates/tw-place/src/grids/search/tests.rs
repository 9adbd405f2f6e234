//! The search beside all combinations of grids and places of sources, for programs that are small enough to try them all.

use super::*;
use tw_lang::{NoFiles, parse_program};

struct Draws(u64);

impl Draws {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

/// Three statements over square and thin matrices that read each other's results.
fn random_program(draws: &mut Draws) -> String {
    let sides = [240, 960, 4800];
    let (n, k) = (sides[draws.below(3)], sides[draws.below(2)]);
    let mut text = format!("input x0: f64[{n}, {k}]\ninput w: f64[{k}, {k}]\n");
    let mut tall = vec!["x0".to_string()];
    let mut square = vec!["w".to_string()];
    for number in 0..3 {
        let name = format!("v{number}");
        let one = tall[draws.below(tall.len())].clone();
        let two = tall[draws.below(tall.len())].clone();
        let matrix = square[draws.below(square.len())].clone();
        let made = match draws.below(6) {
            0 | 1 => format!("{one} @ {matrix}"),
            2 => format!("{one} * {two}"),
            3 => format!("{one} + sum({two}, axis=0)"),
            4 => format!("{one}.T @ {two}"),
            _ => format!("{matrix} @ {matrix}"),
        };
        let is_square = made.contains(".T") || made.starts_with(&format!("{matrix} @"));
        if is_square {
            square.push(name.clone())
        } else {
            tall.push(name.clone())
        }
        text.push_str(&format!("{name} = {made}\n"));
    }
    let outputs = tall.iter().chain(&square).filter(|name| name.starts_with('v'));
    outputs.for_each(|name| text.push_str(&format!("output {name}\n")));
    text
}

/// The best of all combinations, if there are not too many.
fn best_of_all(program: &Program, machine: &Machine) -> Option<u128> {
    let mut search = Search::beside(program, machine, &Before::default(), Aim::Bytes, &[]);
    search.start(0);
    let sources: Vec<usize> = (0..search.values.len()).filter(|&v| search.values[v].anchor.is_some()).collect();
    let grids = search.statements.iter().map(|statement| search.forms[statement.form].1.len());
    let places = sources.iter().map(|&v| search.values[v].readers.len());
    let sides: Vec<usize> = grids.chain(places).collect();
    if sides.iter().fold(1usize, |all, n| all.saturating_mul(*n)) > 100_000 {
        return None;
    }
    let mut best = u128::MAX;
    let mut choice = vec![0; sides.len()];
    loop {
        let (chosen, anchors) = choice.split_at(search.statements.len());
        for (&value, &reader) in sources.iter().zip(anchors) {
            let reader = search.values[value].readers[reader].0;
            search.values[value].anchor = Some(reader);
        }
        chosen.iter().enumerate().for_each(|(k, &candidate)| search.choose(&[k], candidate));
        search.undo.clear();
        best = best.min(score(&search.total));
        let Some(next) = (0..sides.len()).find(|&k| choice[k] + 1 < sides[k]) else { return Some(best) };
        choice[next] += 1;
        choice[..next].fill(0);
    }
}

#[test]
fn nothing_is_better_than_what_is_found() {
    let mut draws = Draws(5);
    let (mut compared, mut missed) = (0, Vec::new());
    while compared < 60 {
        let text = random_program(&mut draws);
        let machine = Machine::of([2, 3, 4, 6][draws.below(4)], 1 + draws.below(2) as u32).unwrap();
        let unit = parse_program(&text, &Default::default(), &NoFiles, &Default::default()).unwrap();
        let Some(best) = best_of_all(&unit.program, &machine) else { continue };
        compared += 1;
        let found = Search::beside(&unit.program, &machine, &Before::default(), Aim::Bytes, &[]).run(100_000);
        let found = score(&found.received);
        assert!(found >= best, "{text}");
        if found > best {
            missed.push((found as f64 / best.max(1) as f64, text));
        }
    }
    assert!(missed.is_empty(), "{} of {compared}: {missed:#?}", missed.len());
}

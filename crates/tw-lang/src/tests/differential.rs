//! Random statements against loops written by hand.

use tw_ir::random::integer;

use super::run;

/// Numbers of one random case, drawn one after the other.
struct Draw {
    seed: u64,
    count: i64,
}

impl Draw {
    fn new(seed: u64) -> Draw {
        Draw { seed, count: 0 }
    }
    fn int(&mut self, low: i64, high: i64) -> i64 {
        self.count += 1;
        integer(self.seed, self.count, low, high)
    }
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.int(0, from.len() as i64) as usize]
    }
}

fn edge(rule: &str, at: i64, n: i64) -> Option<i64> {
    match rule {
        "clamp" => Some(at.clamp(0, n - 1)),
        "wrap" => Some(at.rem_euclid(n)),
        _ => (0..n).contains(&at).then_some(at),
    }
}

#[test]
fn reads_with_edge_rules() {
    for seed in 0..300 {
        let mut draw = Draw::new(seed);
        let (n, start, length) = (draw.int(1, 8), draw.int(0, 4), draw.int(0, 6));
        let (factor, offset, divisor) = (draw.int(-3, 4), draw.int(-9, 10), draw.int(1, 4));
        let rule = draw.pick(&["clamp", "wrap", "fill"]);
        let text = format!(
            "x = arange(1, {n} + 1)\ny[i] = x[{rule}(({factor} * i + {offset}) / {divisor})] * 10 + i for i in {start}..{}",
            start + length
        );
        let mut expected = vec![0.0; if length == 0 { 0 } else { (start + length) as usize }];
        for i in start..start + length {
            let at = (factor * i + offset).div_euclid(divisor);
            expected[i as usize] = edge(rule, at, n).map_or(0, |at| at + 1) as f64 * 10.0 + i as f64;
        }
        assert_eq!(run(&text), expected, "{text}");
    }
}

#[test]
fn writes_to_parts() {
    for seed in 0..300 {
        let mut draw = Draw::new(seed);
        let (start, length) = (draw.int(0, 4), draw.int(0, 6));
        let (factor, offset) = (draw.int(1, 4), draw.int(0, 5));
        let n = factor * (start + length) + offset + draw.int(0, 3) + 1;
        let guard = draw.int(0, 2) == 1;
        let clause = if guard { "where i % 2 == 0 " } else { "" };
        let text = format!(
            "y = -arange({n})\ny[{factor} * i + {offset}] = y[i] + 100 * i {clause}for i in {start}..{}",
            start + length
        );
        let old: Vec<i64> = (0..n).map(|k| -k).collect();
        let mut expected = old.clone();
        for i in (start..start + length).filter(|i| !guard || i % 2 == 0) {
            expected[(factor * i + offset) as usize] = old[i as usize] + 100 * i;
        }
        assert_eq!(run(&text), expected.iter().map(|&v| v as f64).collect::<Vec<_>>(), "{text}");
    }
}

#[test]
fn accumulation() {
    for seed in 0..300 {
        let mut draw = Draw::new(seed);
        let (rows, columns) = (draw.int(1, 6), draw.int(1, 6));
        let (a, b, divisor, modulus) = (draw.int(0, 4), draw.int(0, 4), draw.int(1, 4), draw.int(1, 7));
        let computed = draw.int(0, 2) == 1;
        let index = format!("({a} * i + {b} * j) // {divisor} % {modulus}");
        let op = draw.pick(&["+=", "max=", "-="]);
        let left = if computed { format!("at[({index}) * 2 // 2]") } else { index };
        let text = format!(
            "x = reshape(arange({rows} * {columns}), {rows}, {columns})\nat = arange({modulus})\ny = zeros({modulus}, dtype=i64) - 1\n\
             y[{left}] {op} x[i,j] where i != j"
        );
        let mut expected = vec![-1; modulus as usize];
        for i in 0..rows {
            for j in (0..columns).filter(|&j| i != j) {
                let element = &mut expected[((a * i + b * j) / divisor % modulus) as usize];
                let x = i * columns + j;
                *element = match op {
                    "+=" => *element + x,
                    "-=" => *element - x,
                    _ => x.max(*element),
                };
            }
        }
        assert_eq!(run(&text), expected.iter().map(|&v| v as f64).collect::<Vec<_>>(), "{text}");
    }
}

#[test]
fn slices_on_both_sides() {
    let bound = |draw: &mut Draw| match draw.int(0, 3) {
        0 => String::new(),
        _ => draw.int(-9, 10).to_string(),
    };
    for seed in 0..400 {
        let mut draw = Draw::new(seed);
        let n = draw.int(0, 8);
        let (start, stop) = (bound(&mut draw), bound(&mut draw));
        let step = [-3, -2, -1, 1, 2, 3][draw.int(0, 6) as usize];
        let slice = format!("{start}:{stop}:{step}");
        let parts = |text: &str, default: i64| text.parse::<i64>().map_or(default, |v| if v < 0 { v + n } else { v });
        let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
        let first = parts(&start, if step > 0 { low } else { high }).clamp(low, high);
        let end = parts(&stop, if step > 0 { high } else { low }).clamp(low, high);
        let mut selected = Vec::new();
        let mut at = first;
        while if step > 0 { at < end } else { at > end } {
            selected.push(at);
            at += step;
        }
        let read: Vec<f64> = selected.iter().map(|&at| at as f64).collect();
        assert_eq!(run(&format!("x = arange({n})\ny = x[{slice}]")), read, "{slice} of {n}");
        let mut written: Vec<f64> = (0..n).map(|k| k as f64).collect();
        selected.iter().enumerate().for_each(|(k, &at)| written[at as usize] = 100.0 + k as f64);
        let count = selected.len();
        let text = format!("y = arange({n})\ny[{slice}] = 100 + arange({count})");
        assert_eq!(run(&text), written, "{text}");
    }
}

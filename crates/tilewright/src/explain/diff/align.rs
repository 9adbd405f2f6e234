//! Alignment of the lines of two programs.

/// The limit of comparisons; lines beyond it stay unmatched.
const MOST_COMPARISONS: usize = 4_000_000;

/// Pairs of lines in the order of both texts: equal lines first, then lines between them that assign the same name. Unmatched lines stand alone.
pub(super) fn align(a: &[String], b: &[String]) -> Vec<(Option<usize>, Option<usize>)> {
    let equal = longest_common(a, b);
    let mut pairs = Vec::new();
    let (mut i, mut j) = (0, 0);
    for (x, y) in equal.into_iter().chain([(a.len(), b.len())]) {
        gap(a, b, i..x, j..y, &mut pairs);
        if x < a.len() {
            pairs.push((Some(x), Some(y)));
        }
        (i, j) = (x + 1, y + 1);
    }
    pairs
}

/// Lines between two pairs of equal ones.
fn gap(
    a: &[String],
    b: &[String],
    left: std::ops::Range<usize>,
    right: std::ops::Range<usize>,
    pairs: &mut Vec<(Option<usize>, Option<usize>)>,
) {
    let mut next = right.start;
    for i in left {
        let name = assigned(&a[i]);
        let partner = (next..right.end).find(|&j| name.is_some() && assigned(&b[j]) == name);
        if let Some(j) = partner {
            pairs.extend((next..j).map(|j| (None, Some(j))));
            next = j + 1;
        }
        pairs.push((Some(i), partner));
    }
    pairs.extend((next..right.end).map(|j| (None, Some(j))));
}

/// The name that a line gives a value, as `y` in `y[i] = x[i] + 1`.
fn assigned(line: &str) -> Option<&str> {
    let (left, _) = line.split_once('=')?;
    let name = left.split(['[', '+', '-', '*', '/']).next()?.trim();
    (!name.is_empty()).then_some(name)
}

/// The longest list of equal lines that is in order in both.
fn longest_common(a: &[String], b: &[String]) -> Vec<(usize, usize)> {
    let start = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let end = a[start..].iter().rev().zip(b[start..].iter().rev()).take_while(|(x, y)| x == y).count();
    let (x, y) = (&a[start..a.len() - end], &b[start..b.len() - end]);
    let mut pairs: Vec<(usize, usize)> = (0..start).map(|k| (k, k)).collect();
    if x.len().saturating_mul(y.len()) <= MOST_COMPARISONS {
        pairs.extend(middle(x, y).into_iter().map(|(i, j)| (start + i, start + j)));
    }
    pairs.extend((0..end).map(|k| (a.len() - end + k, b.len() - end + k)));
    pairs
}

fn middle(x: &[String], y: &[String]) -> Vec<(usize, usize)> {
    // Lengths of what is common to all that follows.
    let mut lengths = vec![vec![0u32; y.len() + 1]; x.len() + 1];
    for i in (0..x.len()).rev() {
        for j in (0..y.len()).rev() {
            lengths[i][j] = match x[i] == y[j] {
                true => lengths[i + 1][j + 1] + 1,
                false => lengths[i + 1][j].max(lengths[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < x.len() && j < y.len() {
        if x[i] == y[j] {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if lengths[i + 1][j] >= lengths[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aligned(a: &[&str], b: &[&str]) -> Vec<(Option<usize>, Option<usize>)> {
        let strings = |lines: &[&str]| lines.iter().map(|line| line.to_string()).collect::<Vec<_>>();
        align(&strings(a), &strings(b))
    }

    #[test]
    fn equal_lines_then_equal_names() {
        let both = |i, j| (Some(i), Some(j));
        assert_eq!(aligned(&["x = 1", "y = x"], &["x = 1", "y = x"]), [both(0, 0), both(1, 1)]);
        assert_eq!(
            aligned(&["x = 1", "y = x", "z = y"], &["x = 1", "t = x", "y[i] = t[i]", "z = y"]),
            [both(0, 0), (None, Some(1)), both(1, 2), both(2, 3)]
        );
        assert_eq!(aligned(&["a = 1", "b = 2"], &["c = 3"]), [(Some(0), None), (Some(1), None), (None, Some(0))]);
        assert_eq!(aligned(&["s += 1"], &["s = s + 2"]), [both(0, 0)]);
        assert_eq!(aligned(&[], &["x"]), [(None, Some(0))]);
        assert_eq!(aligned(&[], &[]), []);
    }

    #[test]
    fn every_line_is_told_once_and_in_order() {
        let a: Vec<String> = (0..60).map(|k| format!("v{} = {}", k * 7 % 11, k % 5)).collect();
        let b: Vec<String> = (0..50).map(|k| format!("v{} = {}", k * 5 % 11, k % 4)).collect();
        let pairs = align(&a, &b);
        assert_eq!(pairs.iter().filter_map(|pair| pair.0).collect::<Vec<_>>(), (0..60).collect::<Vec<_>>());
        assert_eq!(pairs.iter().filter_map(|pair| pair.1).collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
    }
}

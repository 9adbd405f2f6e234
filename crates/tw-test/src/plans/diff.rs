//! What differs between two texts, line by line.

/// Lines around a change that are shown as well.
const CONTEXT: usize = 2;

/// The lines that differ, with `-` before those that were expected and `+` before those that came, and some lines around them. `None` if all are equal.
pub fn difference(expected: &str, found: &str) -> Option<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    if old == new {
        return None;
    }
    let lines = aligned(&old, &new);
    let is_near = |k: usize| {
        let around = k.saturating_sub(CONTEXT)..(k + CONTEXT + 1).min(lines.len());
        lines[around].iter().any(|(mark, _)| *mark != ' ')
    };
    let mut text = String::new();
    let mut skipped = false;
    for (k, (mark, line)) in lines.iter().enumerate() {
        if is_near(k) {
            text.push_str(&format!("  {mark} {line}\n"));
        } else if !skipped {
            text.push_str("    ..\n");
        }
        skipped = !is_near(k);
    }
    Some(text)
}

/// Both texts as one, along a longest common subsequence.
fn aligned<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(char, &'a str)> {
    // longest[i][j]: of what begins at line i of the old text and line j of the new one.
    let mut longest = vec![vec![0u32; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            longest[i][j] = match old[i] == new[j] {
                true => longest[i + 1][j + 1] + 1,
                false => longest[i + 1][j].max(longest[i][j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && longest[i + 1][j] >= longest[i][j + 1]) {
            lines.push(('-', old[i]));
            i += 1;
        } else {
            lines.push(('+', new[j]));
            j += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_are_shown_with_their_neighbours() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let old = "1\n2\n3\n4\n5\n6\n7\n";
        let shown = difference(old, "1\n2\n3\n4\nfive\n6\n7\n8\n");
        assert_eq!(shown.as_deref(), Some("    ..\n    3\n    4\n  - 5\n  + five\n    6\n    7\n  + 8\n"));
    }
}

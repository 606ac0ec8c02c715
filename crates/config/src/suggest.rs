//! "Did you mean": the nearest known word by edit distance.

/// The candidate nearest to `word`, if it is near enough to be a slip.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Long words cost quadratic time and are no slips of anything we know.
    const WORD_MAX: usize = 64;
    if word.len() > WORD_MAX {
        return None;
    }
    let limit = word.chars().count() / 3 + 1;
    candidates
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(d, _)| *d <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edits (insert, remove, replace, swap neighbours) between two words.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_slips_and_leaves_strangers_alone() {
        let known = ["headers", "listen", "limits"];
        assert_eq!(nearest("header", known.into_iter()), Some("headers"));
        assert_eq!(nearest("lisetn", known.into_iter()), Some("listen"));
        assert_eq!(nearest("telemetry", known.into_iter()), None);
    }
}

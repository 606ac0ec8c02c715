//! "Did you mean": which known names are close to an unknown one, ranked and worded as clients of the reference
//! implementation know it.
//!
//! Distance is Damerau–Levenshtein restricted to adjacent swaps, case ignored (a name that differs in case only
//! has distance 1). A name is close if its distance is at most 0.4 × the input's length, rounded down, plus 1.

use std::cmp::Ordering;

/// Most names in one hint.
pub const SUGGESTIONS_MAX: usize = 5;
/// Longer names get no suggestions: the distance is quadratic in their length.
pub const NAME_LEN_MAX: usize = 256;

/// The options close to `input`, nearest first, equally near ones in natural order (`a2` before `a10`).
pub fn suggestions<'a>(input: &str, options: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    // Asked first: lower case of a name of a megabyte costs more than everything else that is done with it. A character
    // has four bytes at most.
    if input.len() > 4 * NAME_LEN_MAX {
        return Vec::new();
    }
    let lower: Vec<char> = input.chars().flat_map(char::to_lowercase).collect();
    if lower.len() > NAME_LEN_MAX {
        return Vec::new();
    }
    let threshold = input.chars().count() * 2 / 5 + 1;
    let mut rows = [Vec::new(), Vec::new(), Vec::new()];
    let mut found: Vec<(usize, &str)> = options
        .into_iter()
        .filter_map(|option| {
            Some((
                distance(input, &lower, option, threshold, &mut rows)?,
                option,
            ))
        })
        .collect();
    found.sort_by(|(da, a), (db, b)| da.cmp(db).then_with(|| natural(a, b)));
    found.into_iter().map(|(_, option)| option).collect()
}

/// The hint to append to a message: ` Did you mean the enum value "A", "B", or "C"?`, or nothing.
/// `kind` names what the suggestions are (`the enum value`).
pub fn did_you_mean(kind: Option<&str>, suggestions: &[impl AsRef<str>]) -> String {
    let shown = &suggestions[..suggestions.len().min(SUGGESTIONS_MAX)];
    let Some((last, first)) = shown.split_last() else {
        return String::new();
    };
    let mut out = String::from(" Did you mean ");
    if let Some(kind) = kind {
        out.push_str(kind);
        out.push(' ');
    }
    for (i, name) in first.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        out.push('"');
        out.push_str(name.as_ref());
        out.push('"');
    }
    match first.len() {
        0 => {}
        1 => out.push_str(" or "),
        _ => out.push_str(", or "),
    }
    out.push('"');
    out.push_str(last.as_ref());
    out.push_str("\"?");
    out
}

fn distance(
    input: &str,
    lower: &[char],
    option: &str,
    threshold: usize,
    rows: &mut [Vec<usize>; 3],
) -> Option<usize> {
    if input == option {
        return Some(0);
    }
    let option: Vec<char> = option.chars().flat_map(char::to_lowercase).collect();
    if lower == option {
        return Some(1);
    }
    let (a, b) = if option.len() < lower.len() {
        (lower, option.as_slice())
    } else {
        (option.as_slice(), lower)
    };
    if a.len() - b.len() > threshold {
        return None;
    }
    for row in rows.iter_mut() {
        row.clear();
        row.extend(0..=b.len());
    }
    for i in 1..=a.len() {
        rows.rotate_left(1);
        let [two_up, up, current] = rows;
        current[0] = i;
        let mut smallest = i;
        for j in 1..=b.len() {
            let cost = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (up[j] + 1).min(current[j - 1] + 1).min(up[j - 1] + cost);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(two_up[j - 2] + 1);
            }
            smallest = smallest.min(best);
            current[j] = best;
        }
        if smallest > threshold {
            return None;
        }
    }
    Some(rows[2][b.len()]).filter(|d| *d <= threshold)
}

/// Compares texts with runs of digits as numbers.
pub fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        match (a.first(), b.first()) {
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let (run_a, rest_a) = digits(a);
                let (run_b, rest_b) = digits(b);
                let order = run_a.len().cmp(&run_b.len()).then_with(|| run_a.cmp(run_b));
                if order != Ordering::Equal {
                    return order;
                }
                (a, b) = (rest_a, rest_b);
            }
            (Some(x), Some(y)) if x == y => (a, b) = (&a[1..], &b[1..]),
            (x, y) => return x.cmp(&y),
        }
    }
}

/// A leading run of digits without leading zeros, and the rest.
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text
        .iter()
        .position(|c| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (run, rest) = text.split_at(end);
    let zeros = run.iter().take_while(|c| **c == b'0').count();
    (&run[zeros..], rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_by_distance_then_naturally() {
        assert_eq!(suggestions("", ["a"]), ["a"]);
        assert_eq!(suggestions("input", [] as [&str; 0]), [] as [&str; 0]);
        assert_eq!(
            suggestions("greenish", ["green", "greenisH", "blue"]),
            ["greenisH", "green"]
        );
        assert_eq!(suggestions("abc", ["a", "ab", "abc"]), ["abc", "ab", "a"]);
        assert_eq!(
            suggestions("verylongstring", ["VERYLONGSTRING"]),
            ["VERYLONGSTRING"]
        );
        assert_eq!(suggestions("a", ["az", "ax", "ay"]), ["ax", "ay", "az"]);
        assert_eq!(
            suggestions("field", ["field10", "field2"]),
            ["field2", "field10"]
        );
        assert_eq!(suggestions("agr", ["arg"]), ["arg"]);
        assert_eq!(suggestions("214365879", ["123456789"]), ["123456789"]);
    }

    #[test]
    fn words_hints_for_every_number_of_names() {
        assert_eq!(did_you_mean(None, &[] as &[&str]), "");
        assert_eq!(did_you_mean(None, &["A"]), " Did you mean \"A\"?");
        assert_eq!(
            did_you_mean(None, &["A", "B"]),
            " Did you mean \"A\" or \"B\"?"
        );
        assert_eq!(
            did_you_mean(Some("the letter"), &["A", "B", "C", "D", "E", "F"]),
            " Did you mean the letter \"A\", \"B\", \"C\", \"D\", or \"E\"?"
        );
    }

    #[test]
    fn natural_order_reads_numbers() {
        let mut names = ["a10", "a2", "a02b", "A1", "a"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["A1", "a", "a2", "a02b", "a10"]);
    }
}

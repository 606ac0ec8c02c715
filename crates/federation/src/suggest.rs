//! "did you mean …?": the closest known name, if one is close enough to be a slip of the hand.

/// A help text naming the candidate closest to `name`; ties go to the first.
pub(crate) fn did_you_mean<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let limit = 1 + name.chars().count() / 3;
    candidates
        .map(|c| (distance(name, c, limit), c))
        .filter(|(d, _)| *d <= limit)
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| format!("did you mean `{c}`?"))
}

/// Edits (insert, delete, replace) from `a` to `b`, ignoring case; anything above `limit` when the lengths alone say so.
fn distance(a: &str, b: &str, limit: usize) -> usize {
    let lower = |s: &str| s.chars().flat_map(char::to_lowercase).collect::<Vec<_>>();
    let (a, b) = (lower(a), lower(b));
    if a.len().abs_diff(b.len()) > limit {
        return limit + 1;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_names_are_suggested() {
        let names = ["ACCOUNTS", "PRODUCTS", "REVIEWS"];
        let suggest = |name| did_you_mean(name, names.into_iter());
        assert_eq!(
            suggest("PRODUCT").as_deref(),
            Some("did you mean `PRODUCTS`?")
        );
        assert_eq!(
            suggest("acounts").as_deref(),
            Some("did you mean `ACCOUNTS`?")
        );
        assert_eq!(suggest("SHIPPING"), None);
        assert_eq!(distance("kitten", "sitting", 9), 3);
    }
}

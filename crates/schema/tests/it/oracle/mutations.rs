//! Small damage to SDL: tokens deleted, repeated, swapped, replaced.

use ogive_testbase::Rng;

/// `sdl` with one to three changes.
pub(super) fn mutate(sdl: &str, random: &mut Rng) -> String {
    let mut tokens = tokens(sdl);
    let all = tokens.clone();
    let is_name = |t: &str| t.starts_with(|c: char| c.is_ascii_alphabetic());
    let names: Vec<&str> = all.iter().copied().filter(|t| is_name(t)).collect();
    for _ in 0..random.below(3) + 1 {
        let n = tokens.len();
        if n < 2 {
            break;
        }
        let (i, j) = (random.below(n), random.below(n));
        match random.below(8) {
            0 => drop(tokens.remove(i)),
            1 => tokens.insert(i, tokens[i]),
            2 => tokens.swap(i, j),
            3 => tokens[i] = random.pick::<&str>(&all),
            // Most changes keep the syntax whole.
            _ if is_name(tokens[i]) => {
                tokens[i] = random.pick::<&str>(&names);
            }
            _ => {}
        }
    }
    tokens.join(" ")
}

fn tokens(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '"' => rest[1..].find('"').map_or(rest.len(), |i| i + 2),
            c if c.is_ascii_alphanumeric() || c == '_' => rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))
                .unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        out.push(&rest[..len]);
        rest = rest[len..].trim_start();
    }
    out
}

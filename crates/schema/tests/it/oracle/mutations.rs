//! Small damage to SDL: tokens deleted, repeated, swapped, replaced.

/// Repeatable random numbers (xorshift).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    /// Less than `n`.
    pub(super) fn below(&mut self, n: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) as u32) % n
    }
}

/// `sdl` with one to three changes.
pub(super) fn mutate(sdl: &str, random: &mut Random) -> String {
    let mut tokens = tokens(sdl);
    let all = tokens.clone();
    let is_name = |t: &str| t.starts_with(|c: char| c.is_ascii_alphabetic());
    let names: Vec<&str> = all.iter().copied().filter(|t| is_name(t)).collect();
    for _ in 0..random.below(3) + 1 {
        let n = tokens.len() as u32;
        if n < 2 {
            break;
        }
        let (i, j) = (random.below(n) as usize, random.below(n) as usize);
        match random.below(8) {
            0 => drop(tokens.remove(i)),
            1 => tokens.insert(i, tokens[i]),
            2 => tokens.swap(i, j),
            3 => tokens[i] = all[random.below(all.len() as u32) as usize],
            // Most changes keep the syntax whole.
            _ if is_name(tokens[i]) => {
                tokens[i] = names[random.below(names.len() as u32) as usize];
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

//! Subgraph SDL in words of Federation 1, for gateways that know no other.
//!
//! In Federation 1 one subgraph owns an entity and all others extend it. The lab's schemas do not say who owns what, so
//! the owner is who has the most fields. Works on lines, because the lab writes its schemas one field a line.

use std::collections::BTreeMap;

/// Converts the subgraphs of one graph, given and returned as names and SDL.
pub fn federation_1(subgraphs: &[(String, String)]) -> Vec<(String, String)> {
    // Who owns an entity, and with how many fields.
    let mut owners: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for (name, sdl) in subgraphs {
        for (entity, _) in sdl.lines().filter_map(entity) {
            // Where the number is the same: who offers a way in, then who leads to it from elsewhere.
            let leads = [format!(": {entity}"), format!("[{entity}")];
            let leads = sdl
                .lines()
                .any(|line| leads.iter().any(|l| line.contains(l)));
            let score = 4 * n_fields(sdl, entity)
                + 2 * usize::from(sdl.contains("type Query {"))
                + usize::from(leads);
            let owner = owners.entry(entity).or_insert((0, name));
            if score > owner.0 {
                *owner = (score, name);
            }
        }
    }
    let convert = |(name, sdl): &(String, String)| {
        let mut out = String::new();
        let mut key: Option<String> = None;
        for line in sdl
            .lines()
            .filter(|line| !line.starts_with("extend schema @link"))
        {
            let mut line = line
                .replace(" @shareable", "")
                .replace(", resolvable: false", "");
            if let Some((entity, fields)) = entity(&line) {
                let owned = owners.get(entity).is_some_and(|(_, owner)| owner == name);
                key = (!owned).then(|| fields.to_owned());
                if !owned {
                    line = format!("extend {line}");
                }
            } else if line == "type Query {" {
                line = "extend type Query {".into();
            } else if line == "}" {
                key = None;
            } else if let Some(key) = &key
                && line.trim_start().starts_with(&format!("{key}:"))
            {
                line.push_str(" @external");
            }
            out.push_str(&line);
            out.push('\n');
        }
        (name.clone(), out)
    };
    subgraphs.iter().map(convert).collect()
}

/// Name and key of the entity whose definition begins on a line.
fn entity(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.strip_prefix("type ")?.split_once(" @key(fields: \"")?;
    Some((name, rest.split_once('"')?.0))
}

/// Fields of its own that a type has.
fn n_fields(sdl: &str, ty: &str) -> usize {
    let start = format!("type {ty} ");
    let inside = sdl
        .lines()
        .skip_while(|line| !line.starts_with(&start))
        .skip(1);
    inside
        .take_while(|line| *line != "}")
        .filter(|line| !line.contains("@external"))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_most_owns_and_others_extend() {
        let link = "extend schema @link(url: \"u\", import: [\"@key\"])\n";
        let users = format!(
            "{link}type Query {{\n  me: User\n}}\n\ntype User @key(fields: \"id\") {{\n  id: ID!\n  name: String\n}}\n"
        );
        let reviews =
            format!("{link}type User @key(fields: \"id\", resolvable: false) {{\n  id: ID!\n}}\n");
        let converted = federation_1(&[("reviews".into(), reviews), ("users".into(), users)]);
        assert_eq!(
            converted[0].1,
            "extend type User @key(fields: \"id\") {\n  id: ID! @external\n}\n"
        );
        assert_eq!(
            converted[1].1,
            "extend type Query {\n  me: User\n}\n\ntype User @key(fields: \"id\") {\n  id: ID!\n  name: String\n}\n"
        );
    }
}

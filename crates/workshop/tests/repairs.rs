//! Repairs of subgraphs that are damaged at random: they come to an end, repairing again changes nothing, nothing gets
//! worse, and no field is taken away that a field set names.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../compose/examples/generate/mutants.rs"]
mod mutants;
#[path = "../../compose/examples/generate/sets.rs"]
mod sets;

use ogive_compose::{ComposeOptions, Composed, Composer};
use ogive_workshop::{
    fix::{FixOptions, Fixed, fix},
    load::{Loaded, compose},
};

fn loaded(set: &[(String, String)]) -> Vec<Loaded> {
    let one = |(name, sdl): &(String, String)| Loaded {
        name: name.clone(),
        url: format!("http://{name}"),
        sdl: sdl.as_str().into(),
        called: format!("{name}.graphql"),
        file: None,
    };
    set.iter().map(one).collect()
}

fn composed(loaded: &[Loaded]) -> Composed {
    compose(&mut Composer::new(), loaded, &ComposeOptions::default())
}

/// Damage that people do: directives forgotten, fields renamed on one side only.
fn damaged(i: usize) -> Vec<(String, String)> {
    const DAMAGES: [(&str, &str); 8] = [
        (" @shareable", ""),
        (" @external", ""),
        ("\"@shareable\", ", ""),
        ("\"@external\", ", ""),
        ("fields: \"own\"", "fields: \"own owm\""),
        ("own: Int @external ", ""),
        ("own: Int }", "owner: Int }"),
        ("fields: \"nick\"", "fields: \"nick nck\""),
    ];
    let mut set = sets::set(5, 3 * i);
    for turn in 0..2 {
        let (from, to) = DAMAGES[(i / (1 + 7 * turn) + turn) % DAMAGES.len()];
        let n = set.len();
        let broken = (0..n)
            .map(|k| (i + k) % n)
            .find(|k| set[*k].1.contains(from));
        if let Some(k) = broken {
            set[k].1 = set[k].1.replacen(from, to, 1);
        }
    }
    set
}

fn check(what: &str, set: &[(String, String)], options: &FixOptions) -> Fixed {
    let mut before = loaded(set);
    before.sort_by(|a, b| a.name.cmp(&b.name));
    let fixed = fix(&before, options);
    let (old, new) = (composed(&before), composed(&fixed.loaded));
    assert!(
        (new.stages_passed, std::cmp::Reverse(new.errors.len()))
            >= (old.stages_passed, std::cmp::Reverse(old.errors.len())),
        "{what}: worse: {:?} after {:?}",
        new.errors,
        fixed.repairs
    );
    let again = fix(&fixed.loaded, options);
    assert!(
        again.repairs.is_empty(),
        "{what}: repaired again: {:?}",
        again.repairs
    );
    let removed = fixed
        .repairs
        .iter()
        .filter_map(|r| r.what.strip_prefix("remove `"));
    for coordinate in removed.filter_map(|r| r.split_once('`')).map(|(c, _)| c) {
        let declared = format!("declare `{coordinate}:");
        assert!(
            !fixed.repairs.iter().any(|r| r.what.starts_with(&declared)),
            "{what}: declared and removed: {:?}",
            fixed.repairs
        );
        let lost = format!(
            "has no field `{}`",
            coordinate.split('.').nth(1).unwrap_or("-")
        );
        assert!(
            !new.errors.iter().any(|e| e.message.contains(&lost)),
            "{what}: removed although it is used: {:?}",
            fixed.repairs
        );
    }
    // What is left of the lines stays in order.
    for (a, b) in before.iter().zip(&fixed.loaded) {
        let names = |sdl: &str| -> Vec<String> {
            let lines = sdl
                .lines()
                .filter(|l| l.contains('{') && !l.starts_with("extend schema"));
            lines
                .filter_map(|l| {
                    let mut words = l.split_whitespace().filter(|w| *w != "extend");
                    Some(words.nth(1)?.to_owned())
                })
                .collect()
        };
        assert_eq!(names(&a.sdl), names(&b.sdl), "{what}: order");
    }
    fixed
}

#[test]
fn repairs_of_damaged_subgraphs_end_and_make_nothing_worse() {
    let (mut repaired, mut whole) = (0, 0);
    for i in 0..160 {
        let options = FixOptions {
            suggested: i % 2 == 1,
        };
        let fixed = check(&format!("damaged {i}"), &damaged(i), &options);
        repaired += usize::from(!fixed.repairs.is_empty());
        whole += usize::from(!fixed.repairs.is_empty() && fixed.errors.is_empty());
    }
    assert!(
        repaired > 40 && whole > 25,
        "{repaired} repaired, {whole} whole"
    );
}

#[test]
fn repairs_of_mutants_end_and_make_nothing_worse() {
    for i in 0..160 {
        let options = FixOptions {
            suggested: i % 2 == 1,
        };
        let set = mutants::mutant(9, i);
        check(&format!("mutant {i}"), &set, &options);
    }
}

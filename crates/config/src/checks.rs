//! `checks.yaml`: what `ogive check` and `ogive lint` forgive, look for and look through.
//!
//! ```yaml
//! waivers:
//!   - { change: FIELD_REMOVED, coordinate: Product.weight, until: 2027-01-31, reason: nobody used it }
//! contracts:
//!   partners: { include: [public], exclude: [internal], hide_unreachable: true }
//! lint:
//!   rules: { FIELD_NAMES_CAMEL_CASE: error, TYPE_DESCRIPTION: off }
//!   ignore:
//!     - { rule: FIELD_NAMES_CAMEL_CASE, coordinate: Legacy.* }
//! ```

use ogive_base::{Diagnostic, SourceId, Span};
use ogive_yaml::{Node, Value};

use crate::{Expansion, decode::Errors, expand, subgraphs::texts, yaml};

/// Most entries of each list.
pub const ENTRIES_MAX: usize = 10_000;

/// What a file of checks says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Changes that are accepted for a while.
    pub waivers: Vec<Waiver>,
    /// Variants that are checked too.
    pub contracts: Vec<ContractChecks>,
    /// How loud lint rules are, by id.
    pub lint_rules: Vec<(String, LintLevel, Span)>,
    /// What lint rules do not look at.
    pub lint_ignore: Vec<LintIgnore>,
}

/// One accepted change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiver {
    /// Code of the change; none means any.
    pub change: Option<String>,
    /// What changed; a trailing `*` stands for anything.
    pub coordinate: String,
    /// Last day it is accepted, as `YYYY-MM-DD`.
    pub until: Date,
    /// Why.
    pub reason: String,
    /// Where it stands in the file.
    pub span: Span,
}

/// A day.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Date {
    /// Year.
    pub year: u16,
    /// Month, 1 to 12.
    pub month: u8,
    /// Day of the month, 1 to 31.
    pub day: u8,
}

impl Date {
    /// Reads `YYYY-MM-DD`.
    pub fn parse(text: &str) -> Option<Date> {
        let mut parts = text.split('-');
        let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || year.len() != 4 || month.len() != 2 || day.len() != 2 {
            return None;
        }
        let date = Date {
            year: year.parse().ok()?,
            month: month.parse().ok()?,
            day: day.parse().ok()?,
        };
        ((1..=12).contains(&date.month) && (1..=31).contains(&date.day)).then_some(date)
    }
    /// The day that holds a moment, in UTC (days since 1970-01-01 to the civil calendar).
    pub fn of_unix_seconds(seconds: u64) -> Date {
        let days = (seconds / 86_400) as i64 + 719_468;
        let era = days / 146_097;
        let day_of_era = days % 146_097;
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * day_of_year + 2) / 153;
        let month = if shifted < 10 {
            shifted + 3
        } else {
            shifted - 9
        };
        Date {
            year: (year_of_era + era * 400 + i64::from(month <= 2)) as u16,
            month: month as u8,
            day: (day_of_year - (153 * shifted + 2) / 5 + 1) as u8,
        }
    }
}

impl std::fmt::Display for Date {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// One variant by tags.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ContractChecks {
    /// Its name.
    pub name: String,
    /// Tags of which one must be there.
    pub include: Vec<String>,
    /// Tags of which none may be there.
    pub exclude: Vec<String>,
    /// Whether types that roots do not reach go too.
    pub hide_unreachable: bool,
}

/// How loud a lint rule is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LintLevel {
    /// Not looked for.
    Off,
    /// Worth knowing.
    Hint,
    /// Probably not what was meant.
    Warning,
    /// Fails the run.
    Error,
}

/// What a lint rule does not look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintIgnore {
    /// The rule; none means every rule.
    pub rule: Option<String>,
    /// Where; a trailing `*` stands for anything.
    pub coordinate: String,
}

/// Whether `pattern` names `coordinate`; a trailing `*` stands for anything.
pub fn matches(pattern: &str, coordinate: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => coordinate.starts_with(start),
        None => pattern == coordinate,
    }
}

/// Reads a file of checks. Diagnostics point into `source_id`, whose text must be `text`; every mistake is reported, up to 50.
pub fn load(
    source_id: SourceId,
    text: &str,
    from: Expansion<'_>,
) -> Result<Checks, Vec<Diagnostic>> {
    let mut errors = Errors::new(source_id);
    let mut checks = Checks::default();
    if let Some(mut root) = yaml::parse(text, &mut errors) {
        expand::expand(&mut root, from, &mut errors);
        read(&root, &mut checks, &mut errors);
    }
    errors.finish(checks)
}

fn read(root: &Node, checks: &mut Checks, errors: &mut Errors) {
    let Some(entries) = errors.entries(root) else {
        return;
    };
    for (key, node) in entries {
        match &*key.text {
            "waivers" => {
                for node in items(node, errors) {
                    checks.waivers.extend(waiver(node, errors));
                }
            }
            "contracts" => {
                for (name, node) in errors.entries(node).unwrap_or_default() {
                    checks.contracts.extend(contract(&name.text, node, errors));
                }
            }
            "lint" => lint(node, checks, errors),
            _ => errors.unknown_key(key, ["waivers", "contracts", "lint"].into_iter()),
        }
    }
}

fn items<'n>(node: &'n Node, errors: &mut Errors) -> &'n [Node] {
    match &node.value {
        Value::List(items) if items.len() <= ENTRIES_MAX => items,
        _ if node.is_null() => &[],
        Value::List(_) => {
            errors.invalid(node.span, format!("more than {ENTRIES_MAX} entries"), "");
            &[]
        }
        _ => {
            errors.invalid(
                node.span,
                format!("expected a list, found {}", node.kind()),
                "start each entry with `- `",
            );
            &[]
        }
    }
}

fn waiver(node: &Node, errors: &mut Errors) -> Option<Waiver> {
    let (mut change, mut coordinate, mut until, mut reason) = (None, None, None, None);
    for (key, node) in errors.entries(node)? {
        let text = errors.scalar(node, "text");
        match &*key.text {
            "change" => change = text.map(str::to_owned),
            "coordinate" => coordinate = text.map(str::to_owned),
            "reason" => reason = text.map(str::to_owned),
            "until" => {
                until = text.and_then(Date::parse);
                if until.is_none() {
                    errors.invalid(node.span, "this is no day", "write it as 2027-01-31");
                    return None;
                }
            }
            _ => errors.unknown_key(key, ["change", "coordinate", "until", "reason"].into_iter()),
        }
    }
    let (Some(coordinate), Some(until), Some(reason)) = (coordinate, until, reason) else {
        errors.invalid(
            node.span,
            "a waiver needs `coordinate`, `until` and `reason`",
            "for example `{ coordinate: Product.weight, until: 2027-01-31, reason: nobody used it }`",
        );
        return None;
    };
    Some(Waiver {
        change,
        coordinate,
        until,
        reason,
        span: node.span,
    })
}

fn contract(name: &str, node: &Node, errors: &mut Errors) -> Option<ContractChecks> {
    let mut contract = ContractChecks {
        name: name.to_owned(),
        ..ContractChecks::default()
    };
    for (key, node) in errors.entries(node)? {
        match &*key.text {
            "include" => contract.include = texts(node, errors),
            "exclude" => contract.exclude = texts(node, errors),
            "hide_unreachable" => match errors.scalar(node, "`true` or `false`")? {
                "true" => contract.hide_unreachable = true,
                "false" => {}
                other => errors.invalid(
                    node.span,
                    format!("expected `true` or `false`, found `{other}`"),
                    "",
                ),
            },
            _ => errors.unknown_key(key, ["include", "exclude", "hide_unreachable"].into_iter()),
        }
    }
    Some(contract)
}

fn lint(node: &Node, checks: &mut Checks, errors: &mut Errors) {
    for (key, node) in errors.entries(node).unwrap_or_default() {
        match &*key.text {
            "rules" => {
                for (rule, node) in errors.entries(node).unwrap_or_default() {
                    let level = match errors.scalar(node, "a level") {
                        Some("off") => LintLevel::Off,
                        Some("hint") => LintLevel::Hint,
                        Some("warning") => LintLevel::Warning,
                        Some("error") => LintLevel::Error,
                        Some(other) => {
                            errors.invalid(
                                node.span,
                                format!("`{other}` is no level"),
                                "levels are off, hint, warning and error",
                            );
                            continue;
                        }
                        None => continue,
                    };
                    checks
                        .lint_rules
                        .push((rule.text.clone(), level, rule.span));
                }
            }
            "ignore" => {
                for node in items(node, errors) {
                    let (mut rule, mut coordinate) = (None, None);
                    for (key, node) in errors.entries(node).unwrap_or_default() {
                        let text = errors.scalar(node, "text").map(str::to_owned);
                        match &*key.text {
                            "rule" => rule = text,
                            "coordinate" => coordinate = text,
                            _ => errors.unknown_key(key, ["rule", "coordinate"].into_iter()),
                        }
                    }
                    match coordinate {
                        Some(coordinate) => {
                            checks.lint_ignore.push(LintIgnore { rule, coordinate })
                        }
                        None => errors.invalid(
                            node.span,
                            "an entry of `ignore` needs `coordinate`",
                            "for example `{ rule: FIELD_NAMES_CAMEL_CASE, coordinate: Legacy.* }`",
                        ),
                    }
                }
            }
            _ => errors.unknown_key(key, ["rules", "ignore"].into_iter()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_civil_days() {
        assert_eq!(Date::of_unix_seconds(0).to_string(), "1970-01-01");
        assert_eq!(Date::of_unix_seconds(951_782_400).to_string(), "2000-02-29");
        assert_eq!(
            Date::of_unix_seconds(1_798_761_599).to_string(),
            "2026-12-31"
        );
        assert_eq!(Date::parse("2026-13-01"), None);
        assert_eq!(Date::parse("2026-1-01"), None);
        assert!(Date::parse("2026-12-31") > Date::parse("2026-09-30"));
    }

    #[test]
    fn a_whole_file_and_its_mistakes() {
        let from = Expansion {
            env: &|_| None,
            file: &|_| Err("none".into()),
        };
        let checks = load(
            SourceId(0),
            "waivers:\n- { change: FIELD_REMOVED, coordinate: A.b, until: 2026-12-31, reason: r }\n\
             contracts: { p: { include: [x], exclude: y, hide_unreachable: true } }\n\
             lint: { rules: { R: off }, ignore: [{ coordinate: 'A.*' }] }\n",
            from,
        )
        .unwrap();
        assert_eq!(checks.waivers[0].coordinate, "A.b");
        assert_eq!(checks.contracts[0].exclude, ["y"]);
        assert_eq!(checks.lint_rules[0].1, LintLevel::Off);
        assert!(matches(&checks.lint_ignore[0].coordinate, "A.c"));
        for (text, message) in [
            (
                "waivers: [{ coordinate: A }]",
                "a waiver needs `coordinate`, `until` and `reason`",
            ),
            ("waivers: [{ until: soon }]", "this is no day"),
            ("waivers: 3", "expected a list, found a single value"),
            ("lint: { rules: { R: loud } }", "`loud` is no level"),
            ("wavers: []", "unknown key `wavers`"),
        ] {
            let errors = load(SourceId(0), text, from).unwrap_err();
            assert_eq!(errors[0].message, message, "{text}");
        }
    }
}

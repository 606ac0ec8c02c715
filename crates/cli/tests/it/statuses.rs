//! Exit statuses: a command that did not do its work never ends with 0, whatever it was given.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    os::unix::fs::symlink,
    process::Stdio,
};

use crate::{
    composing::fresh,
    process::{demo, ogive, run},
};

/// Commands with what they cannot work with, and how they end. In braces are the files of [`Inputs`].
const TABLE: &[(&str, i32)] = &[
    // Nothing there, nothing in it, not a text, not what it should be.
    ("serve", 1),
    ("serve -s {absent}", 1),
    ("serve -s {nothing}", 1),
    ("serve -s {latin}", 1),
    ("serve -s {supergraph} -c {absent}", 1),
    ("serve -s {supergraph} -c {broken.yaml}", 1),
    ("serve -s {supergraph} --listen nowhere", 1),
    ("serve -s {supergraph} --plans {nothing}", 1),
    ("serve --subgraphs {empty}", 3),
    ("dev {empty}", 3),
    ("dev {demo} --listen nowhere", 1),
    ("demo --listen nowhere", 1),
    ("new {query-folder}", 1),
    ("new {unwritable}", 1),
    ("health --url http://127.0.0.1:1", 1),
    ("health --url nowhere", 1),
    ("mock", 1),
    ("mock a={absent}", 1),
    ("mock a={broken.graphql}", 1),
    ("mock -s {nothing}", 1),
    ("mock a={schema} --listen nowhere", 1),
    ("introspect http://127.0.0.1:1/", 3),
    ("introspect nowhere", 3),
    ("compose {absent}", 3),
    ("compose {empty}", 3),
    ("compose {latin}", 3),
    ("compose {broken.graphql}", 1),
    ("compose {linked-schemas}", 3),
    ("compose {nothing}", 1),
    ("compose {schema} --output {unwritable}", 1),
    ("compose --url a=b {schema}", 3),
    ("diff {absent} {schema}", 3),
    ("diff {schema} {empty}", 3),
    ("diff {schema} {broken.graphql}", 1),
    ("check {schema} --baseline {absent}", 3),
    ("check {empty} --baseline {schema}", 3),
    ("check {broken.graphql} --baseline {schema}", 1),
    (
        "check {schema} --baseline {schema} --operations {absent}",
        3,
    ),
    ("check {schema} --baseline {schema} --operations {empty}", 3),
    (
        "check {schema} --baseline {schema} --operations {nothing}",
        3,
    ),
    ("check {schema} --baseline {schema} --operations {latin}", 3),
    (
        "check {schema} --baseline {schema} --operations {broken.graphql}",
        3,
    ),
    (
        "check {schema} --baseline {schema} --operations {broken.json}",
        3,
    ),
    (
        "check {schema} --baseline {schema} --operations {fragment}",
        3,
    ),
    (
        "check {schema} --baseline {schema} --operations {unknown-field}",
        1,
    ),
    ("check {schema} --baseline {schema} --usage {nothing}", 3),
    (
        "check {schema} --baseline {schema} --usage {broken.json}",
        3,
    ),
    ("check {schema} --baseline {schema} --checks {absent}", 3),
    (
        "check {schema} --baseline {schema} --checks {broken.yaml}",
        1,
    ),
    (
        "check {schema} --baseline {schema} --operations {linked}",
        3,
    ),
    ("lint {absent}", 3),
    ("lint {linked-schemas}", 3),
    ("lint {empty}", 3),
    ("lint {broken.graphql}", 1),
    ("lint {schema} --checks {absent}", 3),
    ("fix {absent}", 3),
    ("fix {empty}", 3),
    ("fix {broken.graphql}", 1),
    ("graph why Query.hello {absent}", 3),
    ("graph why Query.hello {empty}", 3),
    ("graph why Query.nothing {schema}", 1),
    ("graph why nonsense {schema}", 1),
    ("config validate {absent}", 1),
    ("config validate {latin}", 1),
    ("config validate {broken.yaml}", 1),
    ("config validate {unusable.yaml}", 1),
    ("config pipeline {absent}", 1),
    ("config migrate {absent}", 1),
    ("config migrate {schema}", 1),
    ("config migrate {latin} --from apollo", 1),
    ("config migrate {list.yaml} --from hive", 1),
    (
        "config migrate {router.yaml} --from apollo --output {unwritable}",
        1,
    ),
    (
        "config migrate {router.yaml} --from apollo --output {router.yaml}",
        1,
    ),
    ("rhai check {absent}", 1),
    ("rhai check {empty}", 1),
    ("rhai check {schema}", 1),
    ("plan -s {absent} {query}", 1),
    ("plan -s {supergraph} {absent}", 1),
    ("plan -s {supergraph} {nothing}", 1),
    ("plan -s {supergraph} {latin}", 1),
    ("plan -s {supergraph} {fragment}", 1),
    ("plan -s {supergraph} {unknown-field}", 1),
    ("plan -s {supergraph} {query} --operation Other", 1),
    ("plan -s {supergraph} {query} --label none", 1),
    (
        "plan build -s {supergraph} --operations {absent} --output {output}",
        1,
    ),
    (
        "plan build -s {supergraph} --operations {empty} --output {output}",
        1,
    ),
    (
        "plan build -s {supergraph} --operations {latin-folder} --output {output}",
        1,
    ),
    (
        "plan build -s {supergraph} --operations {fragment-folder} --output {output}",
        1,
    ),
    (
        "plan build -s {supergraph} --operations {broken-folder} --output {output}",
        1,
    ),
    (
        "plan build -s {supergraph} --operations {query-folder} --output {unwritable}",
        1,
    ),
    (
        "plan build -s {supergraph} --from {nothing} --output {output}",
        1,
    ),
    (
        "plan build -s {supergraph} --from {broken.json} --output {output}",
        1,
    ),
    ("operations extract {absent}", 1),
    ("operations extract {empty}", 1),
    ("operations extract {nothing}", 1),
    ("operations extract {latin-folder}", 1),
    ("operations extract {broken-folder}", 1),
    ("operations extract {broken.json}", 1),
    ("operations extract {linked}", 1),
    ("operations extract {query-folder} --output {unwritable}", 1),
    ("operations check -s {supergraph} {empty}", 1),
    ("operations check -s {absent} {query-folder}", 1),
    ("operations check -s {supergraph} {latin-folder}", 1),
    ("operations check -s {supergraph} {linked}", 1),
    ("operations check -s {supergraph} {unknown-field}", 1),
    (
        "operations publish -s {supergraph} {empty} --manifest {output}",
        1,
    ),
    (
        "operations publish -s {supergraph} {latin-folder} --manifest {output}",
        1,
    ),
    (
        "operations publish -s {supergraph} {unknown-field} --manifest {output}",
        1,
    ),
    (
        "operations publish -s {supergraph} {query-folder} --manifest {unwritable}",
        1,
    ),
    (
        "operations publish -s {supergraph} {query-folder} --manifest {output} --plans {unwritable}",
        1,
    ),
    ("cost -s {supergraph} {absent}", 1),
    ("cost -s {supergraph} {nothing}", 1),
    ("cost -s {supergraph} {unknown-field}", 1),
    ("cost -s {supergraph} {query} --variables nonsense", 1),
    ("explain NO_SUCH_CODE", 1),
    ("explain -s {supergraph} {absent}", 1),
    ("explain -s {supergraph} {nothing}", 1),
    ("explain -s {supergraph} {unknown-field}", 1),
    ("explain -s {supergraph} -c {hook.yaml} {query}", 1),
    ("explain -s {supergraph} --token nonsense", 1),
    ("bench --lab {empty} list", 1),
    ("bench --lab {empty} install ogive", 1),
    ("bench --lab {empty} check", 1),
    ("bench --lab {empty} run", 1),
    (
        "bench --lab {lab} --cache {bench-cache} check -g apollo-router -s query",
        1,
    ),
    ("bench report {empty}", 1),
    ("bench report {absent}", 1),
    ("bench chart {empty}", 1),
    ("bench compare {empty} {empty}", 1),
    ("completions nonsense", 2),
    ("man nonsense", 1),
    ("man --output {unwritable}", 1),
    ("config schema --nonsense", 2),
    ("config defaults --nonsense", 2),
    ("version --nonsense", 2),
];

/// Commands that write to standard output, which cannot be written.
const WRITING: &[&str] = &[
    "compose {schema}",
    "diff {schema} {schema}",
    "check {schema} --baseline {schema}",
    "lint {schema}",
    "graph why Query.hello {schema}",
    "config validate {fine.yaml}",
    "config schema",
    "config defaults",
    "config pipeline {fine.yaml}",
    "config migrate {router.yaml} --from apollo",
    "rhai check {scripts}",
    "plan -s {supergraph} {query}",
    "plan build -s {supergraph} --operations {query-folder} --output {output}",
    "operations extract {query-folder}",
    "operations check -s {supergraph} {query-folder}",
    "operations publish -s {supergraph} {query-folder} --manifest {output}",
    "cost -s {supergraph} {query}",
    "explain -s {supergraph} {query}",
    "explain codes",
    "completions bash",
    "man",
    "version",
];

/// Files that the tables name.
struct Inputs(std::path::PathBuf);

impl Inputs {
    fn new(name: &str) -> Inputs {
        let folder = fresh(name);
        let write = |name: &str, text: &[u8]| {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let latin = b"query L { me { id } } # \xff";
        fs::create_dir_all(folder.join("empty")).unwrap();
        write("nothing", b"");
        write("latin", latin);
        write("latin-folder/latin.graphql", latin);
        write("latin-folder/query.graphql", b"query Q { me { id } }");
        write("schema", b"type Query { hello: String }");
        write("query", b"query Q { me { id } }");
        write("query-folder/query.graphql", b"query Q { me { id } }");
        write("linked/query.graphql", b"query Q { me { id } }");
        write("linked-schemas/a.graphql", b"type Query { hello: String }");
        for link in ["linked/other.graphql", "linked-schemas/b.graphql"] {
            symlink("/no/such/file", folder.join(link)).unwrap();
        }
        write("fragment", b"query Q { me { ...Nowhere } }");
        write(
            "fragment-folder/query.graphql",
            b"query Q { me { ...Nowhere } }",
        );
        write("unknown-field", b"query Q { noSuchField }");
        write("broken.graphql", b"type Query {");
        write("broken-folder/query.graphql", b"query Q {");
        write("broken.json", b"{\"operations\": [");
        write("broken.yaml", b"listen: [\nno_such_key: 1\n");
        write("unusable.yaml", b"rhai: { scripts: /nowhere/at/all }\n");
        write("fine.yaml", b"listen: 127.0.0.1:0\n");
        write(
            "hook.yaml",
            b"coprocessor: { url: 'http://127.0.0.1:1', router: { request: { headers: true } } }\n",
        );
        write("list.yaml", b"- a\n");
        write("router.yaml", b"supergraph: { listen: '127.0.0.1:4000' }\n");
        write("scripts/main.rhai", b"fn supergraph_service(service) { }\n");
        Inputs(folder)
    }

    /// The words of a row.
    fn words(&self, row: &str) -> Vec<String> {
        let path = |word: &str| match word {
            "supergraph" => demo("supergraph.graphql"),
            "demo" => demo("accounts.graphql"),
            "lab" => concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench").to_owned(),
            "unwritable" => "/proc/no-such-folder/file".to_owned(),
            name => self.0.join(name).to_string_lossy().into_owned(),
        };
        let word = |word: &str| {
            let Some((before, rest)) = word.split_once('{') else {
                return word.to_owned();
            };
            let (name, _) = rest.split_once('}').unwrap();
            format!("{before}{}", path(name))
        };
        row.split(' ').map(word).collect()
    }
}

#[test]
fn no_command_ends_with_success_where_it_did_nothing() {
    let inputs = Inputs::new("statuses");
    let mut wrong = Vec::new();
    for (row, expected) in TABLE {
        let (code, out, err) = run(&inputs.words(row));
        if code != Some(*expected) {
            wrong.push(format!(
                "{row}: {code:?} in place of {expected}\n{out}{err}"
            ));
        }
        // Each says why.
        if err.trim().is_empty() && out.trim().is_empty() {
            wrong.push(format!("{row}: says nothing"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An empty configuration is valid: it can be served. `config validate` warns that it sets nothing.
#[test]
fn a_configuration_that_sets_nothing_is_reported() {
    let inputs = Inputs::new("statuses-nothing");
    let (code, _, err) = run(&inputs.words("config validate {nothing}"));
    assert_eq!(code, Some(0));
    assert!(err.contains("sets no option"), "{err}");
    let (_, _, err) = run(&inputs.words("config validate {fine.yaml}"));
    assert!(!err.contains("sets no option"), "{err}");
}

/// The last part of a path is not lost in the message.
#[test]
fn a_benchmark_run_that_is_not_there_is_named() {
    let (code, _, err) = run(&["bench", "report", "/no/such/run"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("/no/such/run/campaign.json"), "{err}");
}

#[test]
fn a_result_that_cannot_be_written_is_no_success() {
    let inputs = Inputs::new("statuses-full");
    let mut wrong = Vec::new();
    for row in WRITING {
        let words = inputs.words(row);
        let ended = run(&words);
        if ended.0 != Some(0) {
            wrong.push(format!("{row}: {ended:?} where it can be written"));
        }
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = ogive(&words).stdout(Stdio::from(full)).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() != Some(1) || !err.contains("cannot write to standard output") {
            wrong.push(format!("{row}: {:?}\n{err}", output.status));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Names of the commands below one, of those that have none below them.
fn leaves(of: &[String]) -> Vec<String> {
    let help: Vec<String> = [&["help".to_owned()], of].concat();
    let (_, text, _) = run(&help);
    let Some((_, commands)) = text.split_once("\nCommands:\n") else {
        return vec![of.join(" ")];
    };
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let names = commands.filter_map(|line| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        (!name.is_empty() && name != "help").then(|| name.to_owned())
    });
    let below = names.flat_map(|name| leaves(&[of, &[name]].concat()));
    below.collect()
}

#[test]
fn every_command_has_a_row() {
    let commands = leaves(&[]);
    assert!(commands.len() > 20, "{commands:?}");
    let is_of = |row: &str, command: &str| {
        let mut words = row.split(' ').filter(|word| !word.starts_with(['-', '{']));
        command
            .split(' ')
            .all(|wanted| words.next() == Some(wanted))
    };
    let rows: BTreeSet<&str> = TABLE.iter().map(|(row, _)| *row).collect();
    let without: Vec<&String> = commands
        .iter()
        .filter(|command| !rows.iter().any(|row| is_of(row, command)))
        .collect();
    assert!(without.is_empty(), "{without:?}");
}

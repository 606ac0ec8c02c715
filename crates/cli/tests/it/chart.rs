//! The Helm chart: its values contain a configuration, checked by the schema of the configuration. `deploy/chart/check.sh`
//! renders it, for which it needs helm; what it rendered is read here.

use std::{fs, path::Path};

use ogive_base::SourceId;
use ogive_config::Config;
use ogive_testbase::assert_recorded;
use serde_json::Value;

fn path(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../deploy/chart")
        .join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A block of YAML below a line, without its indentation.
fn block(text: &str, line: &str) -> String {
    let (_, rest) = text.split_once(&format!("{line}\n")).unwrap();
    let depth = rest.len() - rest.trim_start_matches(' ').len();
    let indentation = " ".repeat(depth);
    let inside = rest
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with(&indentation));
    inside
        .map(|line| line.get(depth..).unwrap_or_default().to_owned() + "\n")
        .collect()
}

fn load(text: &str) -> Config {
    ogive_config::load(SourceId(0), text, &|_| None)
        .unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

#[test]
fn the_values_are_a_configuration_of_this_version() {
    let values = read("values.yaml");
    let config = load(&block(&values, "config:"));
    assert_eq!(config.notes(), [""; 0]);
    let (_, grace) = values
        .split_once("terminationGracePeriodSeconds: ")
        .unwrap();
    let grace: u64 = grace.lines().next().unwrap().parse().unwrap();
    let needed = config.http.drain_delay.0 + config.http.connection_shutdown_timeout.0;
    assert!(grace > needed.as_secs());
    let chart = read("Chart.yaml");
    for line in ["version: ", "appVersion: "] {
        let version = chart.lines().find_map(|l| l.strip_prefix(line)).unwrap();
        assert_eq!(version, env!("CARGO_PKG_VERSION"), "Chart.yaml: {line}");
    }
}

#[test]
fn the_schema_of_the_values_contains_that_of_the_configuration() {
    let mut schema: Value = serde_json::from_str(&read("values.schema.json")).unwrap();
    let mut config: Value = serde_json::from_str(&ogive_config::schema::schema()).unwrap();
    let fields = config.as_object_mut().unwrap();
    fields.shift_remove("$schema");
    fields.shift_remove("title");
    schema["properties"]["config"] = config;
    assert_recorded(path("values.schema.json"), &format!("{schema:#}\n"));
    // Every value has a type.
    for line in read("values.yaml").lines() {
        if let Some((name, _)) = line
            .split_once(':')
            .filter(|_| line.starts_with(|c: char| c.is_ascii_lowercase()))
        {
            assert!(
                schema["properties"][name].is_object(),
                "values.schema.json has no `{name}`"
            );
        }
    }
}

/// Templates that drop what is zero, false or empty would change these.
#[test]
fn zero_false_and_empty_texts_reach_the_gateway() {
    let config = load(&block(&read("ci/expected/zeros.yaml"), "  ogive.yaml: |"));
    assert!(config.http.drain_delay.0.is_zero());
    assert!(!config.http.compression.enabled);
    assert!(!config.hot_reload.enabled && !config.telemetry.exporters.metrics.prometheus.enabled);
    let rendered = read("ci/expected/zeros.yaml");
    for line in ["sampler: 0", "value: \"\"", "replicas: 0"] {
        assert!(rendered.contains(line), "{line}");
    }
    assert!(
        !rendered.contains("kind: PodDisruptionBudget")
            && !rendered.contains("kind: ServiceAccount")
    );
}

#[test]
fn probes_ask_where_the_gateway_answers() {
    for name in ["default", "everything", "zeros"] {
        let rendered = read(&format!("ci/expected/{name}.yaml"));
        let config = load(&block(&rendered, "  ogive.yaml: |"));
        let health = &config.health_check;
        let port = health
            .listen
            .as_ref()
            .unwrap()
            .0
            .rsplit(':')
            .next()
            .unwrap()
            .to_owned();
        for (path, count) in [(&health.path.0, 1), (&health.readiness_path.0, 2)] {
            let probe = format!("httpGet: {{ path: {path}, port: {port} }}");
            assert_eq!(rendered.matches(&probe).count(), count, "{name}: {probe}");
        }
        assert!(
            rendered.contains("readOnlyRootFilesystem: true")
                && rendered.contains("runAsNonRoot: true")
        );
    }
}

//! What is beside the program and names its parts: files for deployment, the README, the table of features. Neither
//! Docker nor a cluster is needed to see that their paths, ports, flags and times are the program's.

use std::{fs, path::Path, time::Duration};

use ogive_base::SourceId;
use ogive_config::{Config, reference};

use crate::process::{file, ogive, run};

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The arguments of a command are arguments of the program.
fn check_arguments<'a>(mut words: impl Iterator<Item = &'a str>) {
    let command = words.next().unwrap();
    let help = run(&["help", command]).1;
    for flag in words.filter(|word| word.starts_with("--")) {
        let flag = flag.split('=').next().unwrap();
        assert!(
            help.contains(&format!("{flag} ")),
            "`ogive {command}` has no {flag}\n{help}"
        );
    }
}

/// The number of seconds in the first line that begins with this word.
fn seconds(text: &str, word: &str) -> Duration {
    let mut lines = text.lines().map(str::trim);
    let line = lines.find_map(|line| line.strip_prefix(word)).unwrap();
    let digits: String = line.chars().filter(char::is_ascii_digit).collect();
    Duration::from_secs(digits.parse().unwrap())
}

fn check_end(config: &Config, patience: Duration) {
    let needed = config.http.drain_delay.0 + config.http.connection_shutdown_timeout.0;
    assert!(
        patience > needed,
        "{patience:?} is no longer than {needed:?}"
    );
}

#[test]
fn the_kubernetes_manifest_fits_the_program() {
    let manifest = read("deploy/kubernetes/ogive.yaml");
    let (_, block) = manifest.split_once("  ogive.yaml: |\n").unwrap();
    let (block, rest) = block.split_once("\n---\n").unwrap();
    let lines: Vec<&str> = block
        .lines()
        .map(|line| line.strip_prefix("    ").unwrap())
        .collect();
    let text = lines.join("\n");
    let (code, _, err) = run(&["config", "validate", &file("of-kubernetes.yaml", &text)]);
    assert_eq!(code, Some(0), "{err}");
    let config = ogive_config::load(SourceId(0), &text, &|_| None).unwrap();
    assert_eq!(config.notes(), [""; 0]);

    let probe = |name: &str| {
        let (_, after) = rest.split_once(&format!("{name}:\n")).unwrap();
        after.lines().next().unwrap().trim().to_owned()
    };
    let health = &config.health_check;
    let asks = |path: &str| format!("httpGet: {{ path: {path}, port: health }}");
    assert_eq!(probe("livenessProbe"), asks(&health.path.0));
    assert_eq!(probe("readinessProbe"), asks(&health.readiness_path.0));
    assert_eq!(probe("startupProbe"), asks(&health.readiness_path.0));
    let metrics = &config.telemetry.exporters.metrics.prometheus;
    for (name, listen) in [
        ("graphql", &config.listen.0),
        ("health", &health.listen.as_ref().unwrap().0),
        ("metrics", &metrics.listen.0),
    ] {
        let port = listen.strip_prefix("0.0.0.0:").unwrap();
        let wanted = format!("{{ name: {name}, containerPort: {port} }}");
        assert!(rest.contains(&wanted), "{wanted}");
    }
    assert!(rest.contains("prometheus.io/port: \"9090\"") && metrics.path.0 == "/metrics");
    check_end(&config, seconds(rest, "terminationGracePeriodSeconds:"));

    let (_, arguments) = rest.split_once("args: [").unwrap();
    let arguments = arguments.split(']').next().unwrap();
    check_arguments(arguments.split(", ").map(|word| word.trim_matches('"')));
    // What is mounted is where the arguments and the configuration look.
    let mount = |name: &str, path: &str| {
        assert!(rest.contains(&format!(
            "{{ name: {name}, mountPath: {path}, readOnly: true }}"
        )));
    };
    mount("config", "/etc/ogive/config");
    mount("supergraph", "/etc/ogive/supergraph");
    assert!(arguments.contains("/etc/ogive/config/ogive.yaml"));
    // What is written is in a volume that can be.
    assert!(rest.contains("readOnlyRootFilesystem: true"));
    assert!(rest.contains("{ name: state, mountPath: /var/lib/ogive }"));
    for kept in [
        config.supergraph.last_known_good.as_deref().unwrap(),
        &config.authentication.router.jwt.last_known_good,
    ] {
        assert!(kept.starts_with("/var/lib/ogive/"), "{kept}");
    }
    assert!(
        config
            .supergraph
            .path
            .unwrap()
            .starts_with("/etc/ogive/supergraph/")
    );
}

#[test]
fn the_systemd_unit_fits_the_program() {
    let unit = read("deploy/systemd/ogive.service");
    let commands = unit
        .lines()
        .filter_map(|line| line.split_once("=/usr/local/bin/ogive "));
    let commands: Vec<&str> = commands.map(|(_, words)| words).collect();
    assert_eq!(commands.len(), 2);
    commands
        .iter()
        .for_each(|words| check_arguments(words.split(' ')));
    check_end(&Config::default(), seconds(&unit, "TimeoutStopSec="));
    assert!(unit.contains("ExecReload=/bin/kill -HUP $MAINPID"));
    // What is written is where the unit lets it be.
    assert!(unit.contains("ProtectSystem=strict") && unit.contains("LogsDirectory=ogive"));
    let kept = unit
        .lines()
        .filter_map(|line| line.strip_prefix("Environment=OGIVE__"));
    let kept: Vec<(String, &str)> = kept
        .map(|line| line.split_once('=').unwrap())
        .map(|(key, path)| (key.replace("__", "."), path))
        .collect();
    // The unit says so whether there are key sets or not.
    let empty = file("of-unit.yaml", "listen: 127.0.0.1:0\n");
    let mut validate = ogive(&["config", "validate", &empty]);
    for (key, path) in &kept {
        validate.env(format!("OGIVE__{}", key.replace('.', "__")), path);
    }
    let validated = validate.output().unwrap();
    let err = String::from_utf8_lossy(&validated.stderr).into_owned();
    assert!(validated.status.success(), "{err}");
    let options = reference::options();
    // Keys of a list cannot be set alone; what they name is kept only if they say so.
    let written = options
        .iter()
        .filter(|row| row.path.ends_with("last_known_good") && !row.path.contains("[]"));
    for row in written {
        let (_, path) = kept.iter().find(|(key, _)| *key == row.path).unwrap();
        assert!(path.starts_with("/var/lib/ogive/"), "{path}");
    }
    let most = Config::default().http.connections_max.get() as u64;
    assert!(seconds(&unit, "LimitNOFILE=").as_secs() > 2 * most);
}

/// Components need executable memory, so only the drop-in for gateways without them denies it.
#[test]
fn the_systemd_unit_lets_components_be_compiled() {
    let settings = |name: &str| -> Vec<String> {
        let text = read(name);
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(str::to_owned).collect()
    };
    let switch = "MemoryDenyWriteExecute";
    let unit = settings("deploy/systemd/ogive.service");
    assert!(!unit.iter().any(|line| line.starts_with(switch)));
    // Filters of system calls could deny the same.
    assert!(!unit.iter().any(|line| line.starts_with("SystemCallFilter")));
    let drop_in = settings("deploy/systemd/deny-executable-memory.conf");
    assert_eq!(drop_in, ["[Service]", "MemoryDenyWriteExecute=yes"]);
}

#[test]
fn the_image_is_built_from_what_there_is() {
    let (image, manifest) = (read("deploy/Dockerfile"), read("Cargo.toml"));
    let (_, version) = manifest.split_once("rust-version = \"").unwrap();
    let version = version.split('"').next().unwrap();
    assert!(
        image.contains(&format!("FROM rust:{version}-")),
        "{version}"
    );
    assert!(
        manifest.contains("[profile.dist]") && image.contains("--profile dist --package ogive-cli")
    );
    assert!(read("crates/cli/Cargo.toml").contains("name = \"ogive-cli\""));
    assert!(image.contains("COPY --from=build /src/target/dist/ogive /usr/local/bin/ogive"));
    assert!(image.contains("ENTRYPOINT [\"/usr/local/bin/ogive\"]"));
    check_arguments(["serve"].into_iter());
    assert!(run(&["help", "serve"]).1.contains("OGIVE_LISTEN"));
    assert!(read("crates/cli/build.rs").contains("OGIVE_COMMIT"));
    // What is not sent to the builder is not needed by it.
    let ignored = read(".dockerignore");
    assert!(
        ignored
            .lines()
            .all(|line| !line.starts_with("crates") && !line.starts_with("examples"))
    );
}

#[test]
fn the_index_of_the_documentation_names_every_page() {
    let index = read("docs/README.md");
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for entry in fs::read_dir(&docs).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") && name != "README.md" {
            assert!(
                index.contains(&format!("({name})")),
                "docs/README.md does not name {name}"
            );
        }
    }
    for link in index
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
    {
        assert!(docs.join(link).exists(), "docs/README.md: {link}");
    }
}

/// A row of the table in reports says `no` where no option of this kind is there, and does not where one is.
#[test]
fn the_table_of_features_is_true_of_this_gateway() {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    let features = ogive_bench::model::Lab::read(&lab).unwrap().features;
    let options: Vec<String> = reference::options()
        .into_iter()
        .map(|row| row.path)
        .collect();
    for (title, option) in [
        ("Retries of subgraph requests", "traffic_shaping.all.retry."),
        ("Circuit breaker", "traffic_shaping.all.circuit_breaker."),
        (
            "Prometheus metrics",
            "telemetry.exporters.metrics.prometheus.",
        ),
        ("OpenTelemetry traces", "telemetry.exporters.tracing.otlp."),
        ("Header rules", "headers.all."),
        ("Limits on operations", "limits.max_depth"),
        (
            "Limits on rates of clients",
            "traffic_shaping.router.rate_limit.",
        ),
        ("New supergraph without restart", "hot_reload."),
        ("Explains its plan", "query_planning.expose."),
        ("Custom error answers", "include_subgraph_errors."),
        ("Structured logs", "log.format"),
        ("Authentication (JWT)", "authentication.router."),
        ("Subscriptions", "subscription"),
        ("`@defer`, answered in parts", "supergraph.defer_support"),
        ("Caching of answers", "response_cache"),
        ("Limits by cost of fields", "demand_control"),
        ("Programs of one's own in the request path", "coprocessor"),
        (
            "Signing of subgraph requests",
            "authentication.subgraph.all.message_signature.",
        ),
    ] {
        let row = features.row.iter().find(|row| row.title == title);
        let cell = &row.unwrap_or_else(|| panic!("no row {title}")).cells["ogive"];
        let is_there = options.iter().any(|path| path.starts_with(option));
        assert_eq!(!cell.starts_with("no"), is_there, "{title}: {cell}");
    }
    for row in &features.row {
        for gateway in &features.gateways {
            let cell = row.cells.get(gateway);
            assert!(
                cell.is_some_and(|cell| !cell.is_empty()),
                "{}: {gateway}",
                row.title
            );
        }
    }
}

/// The first lines that a newcomer types.
#[test]
fn the_readme_says_how_it_is_installed() {
    let readme = read("README.md");
    let line = readme
        .lines()
        .find(|line| line.starts_with("cargo install "))
        .unwrap();
    assert!(
        line.contains("--profile dist") && line.contains("--path crates/cli"),
        "{line}"
    );
    for line in readme
        .lines()
        .filter_map(|line| line.strip_prefix("ogive "))
    {
        let words = line.split('#').next().unwrap().split_whitespace();
        let words: Vec<&str> = words.take_while(|word| *word != ">").collect();
        if !words.contains(&"--help") {
            check_arguments(words.into_iter());
        }
    }
}

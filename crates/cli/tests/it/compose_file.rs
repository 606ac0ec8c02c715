//! The compose file of `deploy/compose`: its processes are started with its arguments, without Docker.

use std::{fs, path::Path, process::Command};

use crate::process::{Running, address, answer, ask, ogive};

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/compose")
}

/// The arguments of a service: `command: [mock, a=b, "c"]` below its name.
fn arguments(compose: &str, service: &str) -> Vec<String> {
    let (_, rest) = compose.split_once(&format!("\n  {service}:")).unwrap();
    let (_, rest) = rest.split_once("command: [").unwrap();
    let list = rest.split(']').next().unwrap();
    list.split(", ")
        .map(|word| word.trim_matches('"').to_owned())
        .collect()
}

/// A service that plays subgraphs, on a port of its own.
fn start_mock(compose: &str, service: &str) -> Running {
    let mut arguments = arguments(compose, service);
    let listen = arguments.last_mut().unwrap();
    assert_eq!(listen, "0.0.0.0:4200");
    *listen = "127.0.0.1:0".to_owned();
    let mut command = ogive(&arguments);
    command.current_dir(folder().join("../../examples/demo"));
    Running::of(command)
}

#[test]
fn the_services_answer_together() {
    let compose = fs::read_to_string(folder().join("compose.yaml")).unwrap();
    let mut products = start_mock(&compose, "products");
    let mut accounts = start_mock(&compose, "accounts");
    let mut reviews = start_mock(&compose, "reviews");
    let reviews_address = address(&reviews.printed("reviews "));
    let mut arguments = arguments(&compose, "gateway");
    let config = arguments
        .iter_mut()
        .find(|word| word.ends_with("ogive.yaml"))
        .unwrap();
    *config = folder().join("ogive.yaml").to_string_lossy().into_owned();
    arguments.extend(["--listen".to_owned(), "127.0.0.1:0".to_owned()]);
    let mut command: Command = ogive(&arguments);
    let examples = folder()
        .join("../../examples")
        .to_string_lossy()
        .into_owned();
    command
        .current_dir(folder())
        .env(
            "PRODUCTS",
            format!(
                "http://{}/graphql/products",
                address(&products.printed("products "))
            ),
        )
        .env(
            "ACCOUNTS",
            format!(
                "http://{}/graphql/accounts",
                address(&accounts.printed("accounts "))
            ),
        )
        .env(
            "REVIEWS",
            format!("http://{reviews_address}/graphql/reviews"),
        )
        .env(
            "INVENTORY",
            format!("http://{reviews_address}/graphql/inventory"),
        )
        .env("GRAPH", format!("{examples}/demo"))
        .env("EVENTS", format!("{examples}/events"))
        // Neither is there: rates are counted by this process alone, and events do not come.
        .env("REDIS", "redis://127.0.0.1:1")
        .env("NATS", "nats://127.0.0.1:1")
        .env("COLLECTOR", "http://127.0.0.1:1")
        .env("OGIVE__health_check__listen", "127.0.0.1:0")
        .env(
            "OGIVE__telemetry__exporters__metrics__prometheus__listen",
            "127.0.0.1:0",
        );
    let mut gateway = Running::of(command);
    let address = address(&gateway.logged("serving http://"));
    let query = r#"{"query":"{ me { name } topProducts(first: 1) { name inStock reviews(first: 1) { stars } } }"}"#;
    let (status, body) = answer(ask(&address, "POST", "/graphql", query));
    assert_eq!(status, 200);
    assert!(
        body.contains("Ida Lindqvist")
            && body.contains("\"inStock\":true")
            && !body.contains("errors"),
        "{body}"
    );
}

/// What the files around the gateway name is what the others offer.
#[test]
fn the_files_fit_each_other() {
    let read = |name: &str| fs::read_to_string(folder().join(name)).unwrap();
    let (compose, config) = (read("compose.yaml"), read("ogive.yaml"));
    assert!(compose.contains(&format!("ogive:{}", env!("CARGO_PKG_VERSION"))));
    assert!(config.contains("listen: \"0.0.0.0:9090\", path: /metrics"));
    assert!(
        read("prometheus.yaml").contains("metrics_path: /metrics")
            && read("prometheus.yaml").contains("gateway:9090")
    );
    assert!(read("grafana/datasources.yaml").contains("http://prometheus:9090"));
    assert!(
        config.contains("http://collector:4318") && read("collector.yaml").contains("0.0.0.0:4318")
    );
    assert!(
        config.contains("listen: \"0.0.0.0:8088\"") && compose.contains("http://127.0.0.1:8088")
    );
    // Every file that is mounted is there.
    for line in compose
        .lines()
        .filter(|line| line.contains("./") && line.contains(":ro"))
    {
        let start = line.find("./").unwrap();
        let start = line[..start]
            .rfind(|c: char| c != '.' && c != '/')
            .map_or(0, |at| at + 1);
        let file = line[start..].split(':').next().unwrap();
        assert!(folder().join(file).exists(), "{line}");
    }
}

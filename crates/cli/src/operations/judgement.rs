//! Whether a supergraph answers operations, under the limits of a configuration, and what they cost.

use anyhow::Result;
use clap::ValueEnum;
use ogive_base::FastMap;
use ogive_config::Config;
use ogive_cost::{Scratch, Settings, compile};
use ogive_gateway::{RequestError, SchemaState, prepare::prepare_operation};
use ogive_operation::Variables;
use serde_json::{Value, json};

use super::gather::{Gathered, Operation};
use crate::{serving, supergraph_input::SupergraphArguments, terminal};

/// By what operations are judged.
#[derive(clap::Args)]
pub(super) struct JudgementArguments {
    #[command(flatten)]
    graph: SupergraphArguments,
    /// How the outcome is written
    #[arg(long, value_enum, default_value_t = Report::Text)]
    report: Report,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Report {
    /// For people
    Text,
    /// One JSON object
    Json,
    /// Workflow commands of GitHub Actions
    Github,
}

/// One operation, judged.
struct Row {
    cost: Option<u64>,
    /// What is wrong: code, message, place.
    errors: Vec<(String, String, String)>,
}

/// All of them.
pub(super) struct Judged {
    pub(super) state: SchemaState,
    rows: Vec<Row>,
    report: Report,
    /// Most that an operation may cost, and whether that is enforced.
    limit: Option<(u64, bool)>,
}

/// Judges operations, in their order.
pub(super) fn judge(gathered: &Gathered, arguments: &JudgementArguments) -> Result<Judged> {
    let (config, supergraph) = arguments.graph.read(&serving::runtime()?, false)?;
    let (state, _) = SchemaState::new(supergraph, &config);
    let (limit, settings) = costs(&config);
    let mut judged = Judged {
        state,
        rows: Vec::new(),
        report: arguments.report,
        limit,
    };
    for operation in &gathered.operations {
        let row = judged.judge(gathered, operation, &settings);
        judged.rows.push(row);
    }
    Ok(judged)
}

fn costs(config: &Config) -> (Option<(u64, bool)>, Settings<'static>) {
    let demand = &config.demand_control;
    let estimated = &demand.strategy.static_estimated;
    let enforced = demand.is_enforced();
    let limit = demand
        .enabled
        .then(|| (estimated.max.get() as u64, enforced));
    let settings = Settings {
        list_size: u32::try_from(estimated.list_size.get()).unwrap_or(u32::MAX),
        ..Settings::default()
    };
    (limit, settings)
}

impl Judged {
    fn judge(&self, gathered: &Gathered, operation: &Operation, settings: &Settings<'_>) -> Row {
        let name = operation.entry.name.as_deref();
        // As it is written, so that messages point to where it is.
        let written = gathered.written(operation);
        let sent = &operation.entry.text;
        let prepared = prepare_operation(&self.state, written, name).and_then(|prepared| {
            if *written == **sent {
                return Ok(prepared);
            }
            prepare_operation(&self.state, sent, name)
        });
        let mut row = Row {
            cost: None,
            errors: Vec::new(),
        };
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                row.errors = errors(&error, gathered, operation);
                return row;
            }
        };
        let graph = &self.state.supergraph;
        let (schema, costs) = (&graph.schema, &graph.graph.costs);
        let program = compile(schema, costs, &prepared.operation, settings);
        let mut scratch = Scratch::default();
        let estimate = program.evaluate(schema, costs, &Variables::default(), &mut scratch);
        row.cost = Some(estimate.cost);
        if let Some((max, true)) = self.limit.filter(|(max, _)| estimate.cost > *max) {
            let message = format!("it costs {}, more than {max}", estimate.cost);
            let code = "COST_ESTIMATED_TOO_EXPENSIVE".to_owned();
            row.errors.push((code, message, operation.place.clone()));
        }
        row
    }

    /// Whether there is anything wrong with an operation.
    pub(super) fn passes(&self, at: usize) -> bool {
        self.rows.get(at).is_some_and(|row| row.errors.is_empty())
    }

    fn failed(&self) -> usize {
        self.rows
            .iter()
            .filter(|row| !row.errors.is_empty())
            .count()
    }

    /// An error if any operation fails; what is wrong was written already.
    pub(super) fn into_result(self) -> Result<()> {
        match self.failed() {
            0 => Ok(()),
            _ => Err(terminal::Found.into()),
        }
    }

    /// What was found out.
    pub(super) fn report(&self, gathered: &Gathered) -> String {
        match self.report {
            Report::Text => self.text(gathered),
            Report::Json => self.json(gathered),
            Report::Github => self.github(gathered),
        }
    }

    fn text(&self, gathered: &Gathered) -> String {
        let mut out = String::new();
        for (operation, row) in gathered.operations.iter().zip(&self.rows) {
            let name = operation.entry.name.as_deref().unwrap_or("(unnamed)");
            let cost = row.cost.map_or("-".to_owned(), |cost| cost.to_string());
            let verdict = if row.errors.is_empty() { "ok" } else { "fails" };
            out.push_str(&format!(
                "{verdict:<5}  {cost:>7}  {name}  {}\n",
                operation.place
            ));
            for (code, message, place) in &row.errors {
                out.push_str(&format!("error[{code}]: {message}\n  --> {place}\n"));
            }
            if let (Some((max, false)), Some(cost)) = (self.limit, row.cost)
                && cost > max
            {
                out.push_str(&format!(
                    "       costs more than {max}, which is only measured\n"
                ));
            }
        }
        let dearest = self.rows.iter().filter_map(|row| row.cost).max();
        out.push_str(&format!(
            "{}, {} of them fail{}",
            gathered.summary(),
            self.failed(),
            dearest.map_or(String::new(), |cost| format!("; the dearest costs {cost}"))
        ));
        out
    }

    fn json(&self, gathered: &Gathered) -> String {
        let rows = gathered.operations.iter().zip(&self.rows);
        let rows: Vec<Value> = rows
            .map(|(operation, row)| {
                let entry = &operation.entry;
                let errors: Vec<Value> = row
                    .errors
                    .iter()
                    .map(|(code, message, place)| {
                        json!({ "code": code, "message": message, "place": place })
                    })
                    .collect();
                json!({
                    "id": entry.id, "name": entry.name, "client": entry.client, "place": operation.place,
                    "cost": row.cost, "errors": errors,
                })
            })
            .collect();
        json!({ "passes": self.failed() == 0, "operations": rows }).to_string()
    }

    fn github(&self, gathered: &Gathered) -> String {
        let mut out = String::new();
        let rows = gathered.operations.iter().zip(&self.rows);
        let errors = rows.flat_map(|(_, row)| &row.errors);
        for (code, message, place) in errors {
            let mut parts = place.rsplitn(3, ':');
            let (column, line) = (parts.next(), parts.next());
            let file = parts.next().unwrap_or_default();
            let at = match (line, column) {
                (Some(line), Some(column)) => format!("file={file},line={line},col={column},"),
                _ => String::new(),
            };
            let message = message.replace('\n', "%0A");
            out.push_str(&format!("::error {at}title={code}::{message}\n"));
        }
        out.push_str(&format!(
            "{}, {} of them fail",
            gathered.summary(),
            self.failed()
        ));
        out
    }
}

fn errors(
    error: &RequestError,
    gathered: &Gathered,
    operation: &Operation,
) -> Vec<(String, String, String)> {
    let mut seen: FastMap<(String, String), ()> = FastMap::default();
    let all = error.errors.iter().map(|error| {
        let place = match error.locations.first() {
            Some(at) => gathered.place_of(operation, *at),
            None => operation.place.clone(),
        };
        (error.code.to_string(), error.message.clone(), place)
    });
    all.filter(|(_, message, place)| {
        let key = (message.clone(), place.clone());
        seen.insert(key, ()).is_none()
    })
    .collect()
}

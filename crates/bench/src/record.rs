//! What is kept of a campaign: `campaign.json` (machine, versions, settings) and `results.jsonl` (a line per run,
//! written and flushed as soon as it is known, so that a crash loses nothing).

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{Error, Result, load::LoadResult, machine::Machine, units, usage::Measured};

/// File of [`Campaign`].
pub const CAMPAIGN: &str = "campaign.json";
/// File of [`Run`]s.
pub const RESULTS: &str = "results.jsonl";

/// What holds for all runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    /// When it began.
    pub started: String,
    /// Its command.
    pub command: Vec<String>,
    /// Version of the lab.
    pub lab: String,
    /// Where it ran.
    pub machine: Machine,
    /// Who took part.
    pub gateways: BTreeMap<String, GatewayInfo>,
    /// What was asked.
    pub scenarios: BTreeMap<String, ScenarioInfo>,
    /// Most rounds of any pair.
    pub rounds: u32,
    /// The longest load, in milliseconds, where loads were cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_ms: Option<u64>,
    /// When it was continued after an interruption, and how busy the machine was then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<String>,
    /// Remarks about the whole.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Campaign {
    /// What keeps runs of another campaign from standing beside those of this one, if anything.
    pub fn difference(&self, other: &Campaign) -> Option<String> {
        let names = |campaign: &Campaign| campaign.scenarios.keys().cloned().collect::<Vec<_>>();
        if names(self) != names(other) {
            return Some("other scenarios".into());
        }
        let changed = self
            .scenarios
            .iter()
            .find(|(name, info)| other.scenarios.get(*name) != Some(info));
        if let Some((name, _)) = changed {
            return Some(format!("scenario `{name}` is another now"));
        }
        if self.rounds != other.rounds || self.lab != other.lab {
            return Some("other rounds, or another generator".into());
        }
        let machine = |campaign: &Campaign| (campaign.machine.cpu.clone(), campaign.machine.cpus);
        if machine(self) != machine(other) {
            return Some("another machine".into());
        }
        if !self.gateways.keys().eq(other.gateways.keys()) {
            return Some("other gateways".into());
        }
        let same = |a: &GatewayInfo, b: &GatewayInfo| {
            (&a.version, a.binary_bytes, a.missing.is_some())
                == (&b.version, b.binary_bytes, b.missing.is_some())
        };
        self.gateways
            .iter()
            .zip(other.gateways.values())
            .find(|((_, a), b)| !same(a, b))
            .map(|((name, _), _)| format!("`{name}` is another program now"))
    }
}

/// A gateway that takes part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewayInfo {
    /// Its name for people.
    pub title: String,
    /// What it is written in.
    pub language: String,
    /// Its licence.
    pub licence: String,
    /// Its version.
    pub version: String,
    /// Bytes of its program, where it is one.
    pub binary_bytes: Option<u64>,
    /// Why it does not take part, if so.
    pub missing: Option<String>,
    /// What readers should know.
    pub notes: Vec<String>,
}

/// A scenario as it was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioInfo {
    /// Its name for people.
    pub title: String,
    /// The question.
    pub goal: String,
    /// The number that answers it.
    pub key: crate::model::Goal,
    /// Rows of the map of published scenarios.
    pub seeds: Vec<String>,
    /// What its numbers do not say.
    pub caveats: Vec<String>,
    /// The load, in words.
    pub load: String,
    /// What the load was cut from, in words; nothing: it is as its file says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortened: Option<String>,
    /// Everything else that is set, in words.
    pub settings: Vec<String>,
}

/// What is to be thought of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", content = "reason", rename_all = "kebab-case")]
pub enum Verdict {
    /// Its numbers count.
    Ok,
    /// It answered wrongly: its numbers do not count.
    Disqualified(String),
    /// It did not start, or not to the end.
    Failed(String),
    /// It was not tried.
    NotRun(String),
}

impl Verdict {
    /// The reason, unless all is well.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Verdict::Ok => None,
            Verdict::Disqualified(reason) | Verdict::Failed(reason) | Verdict::NotRun(reason) => {
                Some(reason)
            }
        }
    }
    /// One word.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Disqualified(_) => "wrong",
            Verdict::Failed(_) => "failed",
            Verdict::NotRun(_) => "not run",
        }
    }
}

/// One run of one gateway in one scenario. Round 0 is the check before the first round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The scenario.
    pub scenario: String,
    /// The gateway.
    pub gateway: String,
    /// The round.
    pub round: u32,
    /// When it began.
    pub started: String,
    /// What is to be thought of it.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// What the gateway did that it should not have done, short of a wrong answer.
    #[serde(default)]
    pub flags: Vec<String>,
    /// How it was set.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The gateway's command.
    #[serde(default)]
    pub command: Vec<String>,
    /// CPUs of the gateway.
    #[serde(default)]
    pub cpus: Vec<usize>,
    /// How memory was limited.
    #[serde(default)]
    pub memory_limit: Option<String>,
    /// Start to ready, in milliseconds.
    #[serde(default)]
    pub ready_ms: Option<f64>,
    /// Start to the first right answer, in milliseconds, of each start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts_ms: Vec<f64>,
    /// Proportional bytes before the first request.
    #[serde(default)]
    pub idle_pss: Option<u64>,
    /// The load's numbers.
    #[serde(default)]
    pub load: Option<LoadResult>,
    /// What the gateway used meanwhile.
    #[serde(default)]
    pub usage: Option<Measured>,
    /// What the gateway asked of subgraphs meanwhile.
    #[serde(default)]
    pub subgraphs: Option<Subgraphs>,
    /// For rising rates: each by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// What subscribers got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// Median time to the last part of answers in parts, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_ms: Option<f64>,
    /// How answers were checked.
    #[serde(default)]
    pub checked: Checked,
}

impl Run {
    /// One that begins now and of which nothing is known yet.
    pub fn blank(scenario: &str, gateway: &str, round: u32, cpus: Vec<usize>) -> Run {
        Run {
            scenario: scenario.to_owned(),
            gateway: gateway.to_owned(),
            round,
            started: units::timestamp(units::now()),
            verdict: Verdict::Ok,
            flags: Vec::new(),
            notes: Vec::new(),
            command: Vec::new(),
            cpus,
            memory_limit: None,
            ready_ms: None,
            starts_ms: Vec::new(),
            idle_pss: None,
            load: None,
            usage: None,
            subgraphs: None,
            steps: Vec::new(),
            delivery: None,
            whole_ms: None,
            checked: Checked::default(),
        }
    }
}

/// What a gateway asked of subgraphs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Subgraphs {
    /// Requests.
    pub requests: u64,
    /// Requests by requests of clients.
    pub per_request: f64,
    /// Bytes of answers.
    pub bytes: u64,
}

/// What subscribers got of the events that were meant for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// Subscribers.
    pub subscribers: u64,
    /// Subscriptions that the gateway had at the source.
    pub upstreams: u64,
    /// Events that the source was told to send.
    pub events: u64,
    /// Deliveries there should have been.
    pub wanted: u64,
    /// Deliveries that came.
    pub delivered: u64,
    /// Of those that did not come, how many were to subscribers who were not told of any loss.
    pub silent: u64,
    /// Subscribers who were told: an error, an end, or a number of dropped events.
    pub told: u64,
    /// Events that came behind a later one, or twice.
    pub disordered: u64,
    /// Resident bytes of the gateway by subscription, beyond those without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_each: Option<f64>,
}

impl Delivery {
    /// The part of deliveries that did not come.
    pub fn lost_share(&self) -> f64 {
        self.wanted.saturating_sub(self.delivered) as f64 / self.wanted.max(1) as f64
    }
    /// The part of deliveries that did not come and of which nobody was told.
    pub fn silent_share(&self) -> f64 {
        self.silent as f64 / self.wanted.max(1) as f64
    }
}

/// One rate of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Requests per second.
    pub rate: f64,
    /// The load's numbers.
    pub load: LoadResult,
    /// What the gateway used meanwhile.
    pub usage: Measured,
}

/// How answers were checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// Before the load.
    pub before: u32,
    /// Taken during the load, compared after it.
    pub during: u32,
    /// With a length no right answer has, compared after the load.
    pub odd: u32,
    /// After the load.
    pub after: u32,
    /// How many were wrong.
    pub wrong: u32,
    /// Bytes of a right answer.
    pub bytes: Option<usize>,
}

/// A campaign's folder, open for writing.
#[derive(Debug)]
pub struct Journal {
    /// The folder.
    pub folder: PathBuf,
    results: File,
}

impl Journal {
    /// Makes a folder for a campaign; an existing one is continued, without a last line that was never finished.
    pub fn open(folder: &Path, campaign: &Campaign) -> Result<Journal> {
        fs::create_dir_all(folder).map_err(Error::file(folder))?;
        write_json(&folder.join(CAMPAIGN), campaign)?;
        let path = folder.join(RESULTS);
        if let Ok(text) = fs::read(&path) {
            let whole = text
                .iter()
                .rposition(|b| *b == b'\n')
                .map_or(0, |at| at + 1);
            if whole < text.len() {
                fs::write(&path, &text[..whole]).map_err(Error::file(&path))?;
            }
        }
        let results = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(Error::file(&path))?;
        Ok(Journal {
            folder: folder.to_path_buf(),
            results,
        })
    }

    /// Keeps a run; it is on disk when this returns.
    pub fn keep(&mut self, run: &Run) -> Result<()> {
        let path = self.folder.join(RESULTS);
        let mut line = serde_json::to_string(run).map_err(|e| Error::Answer(e.to_string()))?;
        line.push('\n');
        self.results
            .write_all(line.as_bytes())
            .map_err(Error::file(&path))?;
        self.results.sync_data().map_err(Error::file(&path))
    }
}

/// What a folder holds of an earlier campaign; `None`: nothing yet.
pub fn earlier(folder: &Path) -> Result<Option<(Campaign, Vec<Run>)>> {
    if folder.join(CAMPAIGN).is_file() && folder.join(RESULTS).is_file() {
        read(folder).map(Some)
    } else {
        Ok(None)
    }
}

/// Reads a campaign from its folder, or from a file in it. A torn last line is left out.
pub fn read(place: &Path) -> Result<(Campaign, Vec<Run>)> {
    let folder = if place.is_file() {
        place.parent().unwrap_or(Path::new("."))
    } else {
        place
    };
    let path = folder.join(CAMPAIGN);
    let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
    let wrong = |path: &Path, error: serde_json::Error| Error::Model {
        path: path.to_path_buf(),
        message: error.to_string(),
    };
    let campaign = serde_json::from_str(&text).map_err(|e| wrong(&path, e))?;
    let path = folder.join(RESULTS);
    let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
    let mut runs = Vec::new();
    for line in text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
    {
        runs.push(serde_json::from_str(line).map_err(|e| wrong(&path, e))?);
    }
    Ok((campaign, runs))
}

/// Writes a value for people and programs.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value).map_err(|e| Error::Answer(e.to_string()))?;
    text.push('\n');
    fs::write(path, text).map_err(Error::file(path))
}

//! Selections: which gateways run in which scenarios over how many rounds, so that one command repeats a campaign that
//! fits into a given time (`bench/full.toml`).

use std::{collections::BTreeMap, path::Path};

use serde::Deserialize;

use super::{Lab, Quick};
use crate::{Error, Result, units::Time};

/// A file such as `bench/full.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// Its name: the file's.
    #[serde(skip)]
    pub name: String,
    /// Seconds of all of it, unless the command line says otherwise.
    pub budget: Option<Time>,
    /// Whether gateways keep running from round to round of a scenario: no time for starts and warm-ups.
    #[serde(default)]
    pub keep: bool,
    /// Who runs where; of several that name a pair the most rounds count.
    pub tier: Vec<Tier>,
    /// Loads that differ from those of the scenario's own file.
    #[serde(default)]
    pub scenarios: BTreeMap<String, Change>,
}

/// Gateways in scenarios.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// Names of gateways; empty means all.
    #[serde(default)]
    pub gateways: Vec<String>,
    /// Names of scenarios; empty means all.
    #[serde(default)]
    pub scenarios: Vec<String>,
    /// Scenarios that are not meant.
    #[serde(default)]
    pub except: Vec<String>,
    /// Whether only scenarios that stand for published ones are meant.
    #[serde(default)]
    pub published: bool,
    /// Rounds.
    pub rounds: u32,
}

/// What a selection changes in a scenario.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Numbers of its load.
    #[serde(default)]
    pub load: Quick,
    /// The longest load, above what the budget leaves for others.
    pub cap: Option<Time>,
    /// Most rounds.
    pub rounds: Option<u32>,
}

impl Selection {
    /// Reads a file and checks that it names what there is.
    pub fn read(path: &Path, lab: &Lab) -> Result<Selection> {
        let mut selection: Selection = super::read_toml(path)?;
        selection.name = super::file_name(path);
        for tier in &selection.tier {
            tier.gateways
                .iter()
                .try_for_each(|name| lab.gateway(name).map(drop))?;
            tier.scenarios
                .iter()
                .chain(&tier.except)
                .try_for_each(|name| lab.scenario(name).map(drop))?;
            if tier.rounds == 0 {
                return Err(Error::Model {
                    path: path.to_path_buf(),
                    message: "a tier of 0 rounds measures nothing: leave it out".into(),
                });
            }
        }
        for name in selection.scenarios.keys() {
            lab.scenario(name)?;
        }
        Ok(selection)
    }

    /// The same without its budget, for what has its durations already.
    pub fn without_budget(mut self) -> Selection {
        self.budget = None;
        self
    }

    /// Rounds of a gateway in a scenario; 0 means that it is left out.
    pub fn rounds(&self, gateway: &str, scenario: &str, is_published: bool) -> u32 {
        let names = |list: &[String], name: &str| list.is_empty() || list.iter().any(|n| n == name);
        let rounds = self
            .tier
            .iter()
            .filter(|tier| names(&tier.gateways, gateway) && names(&tier.scenarios, scenario))
            .filter(|tier| is_published || !tier.published)
            .filter(|tier| !tier.except.iter().any(|name| name == scenario))
            .map(|tier| tier.rounds)
            .max()
            .unwrap_or(0);
        match self.scenarios.get(scenario).and_then(|c| c.rounds) {
            Some(most) => rounds.min(most),
            None => rounds,
        }
    }
}

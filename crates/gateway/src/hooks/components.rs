//! The WebAssembly components of a configuration, read and compiled; they are called in [`call`](super::call).

use std::{
    collections::BTreeSet,
    num::NonZeroUsize,
    sync::{Arc, Mutex, PoisonError},
};

use ogive_config::{Config, OnErrorWord, PluginHost, PluginSection};
use ogive_hooks::components::{
    Component, ComponentOptions, Decision, Ejection, Limits, Permissions, hook_name, hook_of,
    options::Name, outgoing::Host,
};
use ogive_hooks::{Stage, scripts::Program};
use ogive_selectors::Selector;
use ogive_telemetry::Hook;

use tokio::sync::Semaphore;

use super::{condition::StageCondition, outgoing};
use crate::shared::hook_threads::HookThreads;

/// The scripts of a configuration, and the components that it has at stages, as they were read. Who passed them counts as let in
/// for as long as they stay the same, whatever the configuration says of them. A component that only decides is none of them: it
/// is asked again about everybody whom it knew.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LoadedHooks {
    pub(crate) program: Option<Program>,
    pub(crate) components: Vec<LoadedComponent>,
}

/// What is judged again has one of so many threads of a component.
const JUDGED_SHARE: usize = 4;

/// A component, when it is called, and what it is called in metrics.
#[derive(Clone, Debug)]
pub(crate) struct LoadedComponent {
    pub(crate) component: Arc<Component>,
    pub(crate) hook: Hook,
    /// Where its calls run that take long, or may wait for other hosts: of one that asks any as many threads as it may have
    /// instances.
    pub(crate) threads: Arc<HookThreads>,
    /// Places on them for what is judged again behind its request: few, so that requests find theirs while many are judged.
    pub(crate) judged: Arc<Semaphore>,
    /// By stage.
    when: Arc<[StageCondition]>,
}

impl LoadedComponent {
    /// Whether another call would have to wait for one that waits for another host.
    pub(crate) fn is_busy(&self) -> bool {
        self.component.sends_requests() && self.threads.is_full()
    }
}

impl PartialEq for LoadedComponent {
    fn eq(&self, other: &Self) -> bool {
        self.component == other.component && self.when == other.when
    }
}

impl LoadedComponent {
    /// For which requests it is called at a stage.
    pub(crate) fn when(&self, stage: Stage) -> &StageCondition {
        &self.when[stage as usize]
    }
    /// Whether it may read or write the context, or is called by what is in it.
    pub(crate) fn uses_context(&self) -> bool {
        let permissions = &self.component.options().permissions;
        !permissions.read_context.is_empty()
            || !permissions.write_context.is_empty()
            || self.when.iter().any(StageCondition::looks_at_context)
    }
    /// Whether it is called at any stage; else it only decides something.
    pub(crate) fn has_stages(&self) -> bool {
        !self.component.options().stages.is_empty()
    }
    /// What it is called in the configuration.
    pub(crate) fn name(&self) -> &str {
        &self.component.options().name
    }
}

/// Reads and compiles the components of a configuration. The error is for the operator.
pub(crate) fn load(config: &Config) -> Result<Vec<LoadedComponent>, String> {
    let load = |section: &PluginSection| {
        let told = |error: &dyn std::fmt::Display| format!("`plugins`: {error}");
        let options = ComponentOptions {
            decides: decides(config, &section.name),
            ..options(section)
        };
        let sender = outgoing::sender(&options).map_err(|why| told(&why))?;
        let component = Component::load(options, sender).map_err(|error| told(&error))?;
        if let Some(why) = unjudged(section, &component) {
            return Err(told(&format!("`{}`: {why}", section.name)));
        }
        let most = NonZeroUsize::new(component.options().limits.instances);
        let threads = match most.filter(|_| component.sends_requests()) {
            Some(most) => HookThreads::unshared(most),
            None => HookThreads::default(),
        };
        Ok(LoadedComponent {
            judged: Arc::new(Semaphore::new(
                (component.options().limits.instances / JUDGED_SHARE).max(1),
            )),
            component: Arc::new(component),
            threads: Arc::new(threads),
            hook: Hook::Component(shown(&section.name)),
            when: conditions(section),
        })
    };
    config.plugins.iter().map(load).collect()
}

/// What a configuration has a component decide.
fn decides(config: &Config, name: &str) -> Vec<Decision> {
    let authenticates = &config.authentication.router.components;
    let policies = config.authorization.policies.component.as_deref();
    let rates = config.traffic_shaping.router.rate_limits.iter();
    let mut keys = rates.flat_map(|rate| &rate.key);
    let is_key = |one: &Selector| matches!(one, Selector::Component(named) if named == name);
    let all = Decision::ALL.into_iter();
    all.filter(|decision| match decision {
        Decision::Authenticate => authenticates.iter().any(|named| named == name),
        Decision::Policies => policies == Some(name),
        Decision::RateKey => keys.any(is_key),
    })
    .collect()
}

/// A condition that would never be judged, because there is no call of which it says whether that is made.
fn unjudged(section: &PluginSection, component: &Component) -> Option<String> {
    if section.condition.is_some() && component.options().stages.is_empty() {
        let why = "it has a `condition` and is called at no stage: where it decides something, no condition counts";
        return Some(why.to_owned());
    }
    let words = Stage::ALL.map(|stage| (stage, hook_name(stage).replace('-', "_")));
    let mut never = words.iter().filter(|(stage, _)| !component.is_at(*stage));
    let (_, word) = never.find(|(_, word)| section.has_own_condition(word))?;
    Some(format!(
        "`{word}` is in `conditions`, and it exports no hook for that"
    ))
}

/// For which requests a component is called, by stage.
fn conditions(section: &PluginSection) -> Arc<[StageCondition]> {
    let mut all = Stage::ALL.map(|_| StageCondition::of(None));
    for stage in Stage::ALL {
        let word = hook_name(stage).replace('-', "_");
        all[stage as usize] = StageCondition::of(section.condition_at(&word).cloned());
    }
    Arc::new(all)
}

/// What a component is called in metrics, spans and traces. There are as many names as configurations have had; they are never
/// given back, because what is counted keeps them.
fn shown(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let text = format!("component {name}");
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(text.as_str()) {
        return known;
    }
    let text: &'static str = text.leak();
    names.insert(text);
    text
}

fn options(section: &PluginSection) -> ComponentOptions {
    let stages = |names: &[String]| names.iter().filter_map(|name| hook_of(name)).collect();
    let headers = |names: &[String]| names.iter().filter_map(|name| Name::read(name)).collect();
    let texts = |names: &[String]| names.iter().cloned().collect();
    // The configuration was checked: what is none is not among them.
    let hosts = |names: &[String]| {
        let read = names.iter().filter_map(|name| PluginHost::read(name).ok());
        let host = |of: PluginHost| Host {
            https: of.https,
            name: of.name.into(),
            port: of.port,
        };
        read.map(host).collect()
    };
    let (permissions, limits) = (&section.permissions, &section.limits);
    ComponentOptions {
        sha256: section.sha256.clone(),
        stages: stages(&section.stages),
        bodies: stages(&section.bodies),
        permissions: Permissions {
            read_headers: headers(&permissions.read_headers),
            write_headers: headers(&permissions.write_headers),
            read_context: texts(&permissions.read_context),
            write_context: texts(&permissions.write_context),
            environment: texts(&permissions.environment),
            hosts: hosts(&permissions.hosts),
        },
        limits: Limits {
            memory: limits.memory.0,
            fuel: limits.fuel.get() as u64,
            time: limits.timeout.0,
            instances: limits.instances.get(),
            requests: limits.max_requests.get(),
            response_bytes: limits.max_response_size.0,
        },
        ejection: Ejection {
            faults: section.ejection.faults.get(),
            window: section.ejection.window.0,
            time: section.ejection.time.0,
        },
        goes_on: section.on_error == OnErrorWord::Continue,
        configuration: section.configuration.clone(),
        ..ComponentOptions::new(&section.name, &section.path)
    }
}

//! The stages of one configuration and one schema, as values: composed when either changes, called by name in
//! [`crate::pipeline`]. Each owns what it needs; one that is off is not there.

use std::sync::Arc;

use ogive_base::MemoryBudget;
use ogive_cache::ResponseCache;
use ogive_edge::client_shares::ClientShares;
use ogive_server::offload::Offload;

use crate::{
    admit::{Admit, operation::AdmitOperation, overload::Overload, rates::Admission},
    charge::Charge,
    decide::Decide,
    documents::{Registered, shared::ResolveDocument, written::WrittenDocuments},
    execute::Execute,
    finish::Finish,
    identify::{Identify, caller::Authenticate, tokens::Authentication},
    operation_rules::CheckRules,
    options::GatewayOptions,
    plan::PlanOperation,
    policies::Policies,
    prepare::Prepare,
    receive::Receive,
    respond::Respond,
    schema::state::SchemaState,
    shared::{shared_state::SharedState, stage::StageLine},
};

/// Parts of the process that stages share; they outlive schemas and configurations.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) admission: Arc<Admission>,
    pub(crate) offload: Arc<Offload>,
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) arriving: Arc<ClientShares>,
    pub(crate) registered: Arc<Registered>,
    pub(crate) written: Arc<WrittenDocuments>,
}

/// Services that a configuration asks for; they go on over reloads that ask for equal ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Services {
    pub(crate) authentication: Option<Arc<Authentication>>,
    pub(crate) policies: Option<Arc<Policies>>,
    pub(crate) overload: Option<Arc<Overload>>,
    pub(crate) shared: Option<Arc<SharedState>>,
    pub(crate) cache: Option<Arc<ResponseCache>>,
}

/// The stages, in the order in which a request passes them.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) identify: Identify,
    pub(crate) admit: Admit,
    pub(crate) authenticate: Option<Authenticate>,
    pub(crate) receive: Receive,
    pub(crate) resolve: ResolveDocument,
    pub(crate) prepare: Prepare,
    pub(crate) check_rules: Option<CheckRules>,
    pub(crate) charge: Option<Charge>,
    pub(crate) admit_operation: Option<AdmitOperation>,
    pub(crate) plan: PlanOperation,
    pub(crate) decide: Decide,
    pub(crate) execute: Execute,
    pub(crate) respond: Respond,
    pub(crate) finish: Finish,
}

impl Pipeline {
    /// Composes the stages that the options ask for.
    pub(crate) fn new(
        process: &Process,
        services: &Services,
        state: &Arc<SchemaState>,
        options: &Arc<GatewayOptions>,
    ) -> Self {
        let authentication = services.authentication.as_ref();
        let control = options.demand_control.as_ref();
        Pipeline {
            identify: Identify::new(options),
            admit: Admit {
                admission: Arc::clone(&process.admission),
                overload: services.overload.clone(),
                options: Arc::clone(options),
            },
            authenticate: authentication.map(|authentication| Authenticate {
                authentication: Arc::clone(authentication),
                offload: Arc::clone(&process.offload),
                options: Arc::clone(options),
            }),
            receive: Receive {
                options: Arc::clone(options),
                offload: Arc::clone(&process.offload),
                memory: Arc::clone(&process.memory),
                arriving: Arc::clone(&process.arriving),
            },
            resolve: ResolveDocument {
                options: Arc::clone(options),
                registered: Arc::clone(&process.registered),
                written: Arc::clone(&process.written),
                shared: services.shared.clone(),
            },
            prepare: Prepare {
                state: Arc::clone(state),
                offload: Arc::clone(&process.offload),
            },
            check_rules: CheckRules::is_on(state).then(|| CheckRules {
                state: Arc::clone(state),
                options: Arc::clone(options),
            }),
            charge: control.map(|control| Charge {
                control: control.clone(),
                state: Arc::clone(state),
            }),
            admit_operation: AdmitOperation::is_on(options).then(|| AdmitOperation {
                admission: Arc::clone(&process.admission),
                shared: services.shared.clone(),
                options: Arc::clone(options),
            }),
            plan: PlanOperation {
                state: Arc::clone(state),
                offload: Arc::clone(&process.offload),
            },
            decide: Decide {
                state: Arc::clone(state),
                policies: services.policies.clone(),
                offload: Arc::clone(&process.offload),
                challenge: options.challenge,
            },
            execute: Execute {
                state: Arc::clone(state),
                options: Arc::clone(options),
                admission: Arc::clone(&process.admission),
                shared: services.shared.clone(),
            },
            respond: Respond {
                state: Arc::clone(state),
                options: Arc::clone(options),
            },
            finish: Finish::new(options, &process.memory),
        }
    }
}

/// The stages in the order in which a request passes them, those that are off included.
pub fn list(state: &SchemaState, options: &GatewayOptions) -> Vec<StageLine> {
    Vec::from([
        StageLine::of::<Identify>(true),
        StageLine::of::<Admit>(true),
        StageLine::of::<Authenticate>(Authenticate::is_on(options)),
        StageLine::of::<Receive>(true),
        StageLine::of::<ResolveDocument>(true),
        StageLine::of::<Prepare>(true),
        StageLine::of::<CheckRules>(CheckRules::is_on(state)),
        StageLine::of::<Charge>(Charge::is_on(options)),
        StageLine::of::<AdmitOperation>(AdmitOperation::is_on(options)),
        StageLine::of::<PlanOperation>(true),
        StageLine::of::<Decide>(true),
        StageLine::of::<Execute>(true),
        StageLine::of::<Respond>(true),
        StageLine::of::<Finish>(true),
    ])
}

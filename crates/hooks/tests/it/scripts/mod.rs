//! Scripts as users of Apollo Router write them, each with what goes in and what has to come out; hostile ones; and what
//! `check` says. The scripts are data: `cases.txt`.

mod cases;
mod hostile;

use std::{path::PathBuf, sync::Arc, time::Duration};

use http::Method;
use ogive_hooks::Stage;
use ogive_hooks::{
    Body, Exchange, RequestHead,
    scripts::{Limits, Program, Scripts},
};

use crate::headers;

/// A folder of scripts; gone with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn with(files: &[(&str, &str)]) -> Folder {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ogive-script-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        for (name, text) in files {
            std::fs::write(path.join(name), text).unwrap();
        }
        Folder(path)
    }
    pub(crate) fn program(&self, limits: Limits) -> Program {
        Program::read(self.0.to_str().unwrap(), "main.rhai", limits).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The usual limits, but that a call may have to wait for its turn for a minute.
pub(crate) fn patient() -> Limits {
    Limits {
        time: Duration::from_secs(60),
        ..Limits::default()
    }
}

pub(crate) fn started(program: &Program) -> Scripts {
    Scripts::start(program, || "type Query { me: String }".to_owned()).unwrap()
}

pub(crate) fn stage(name: &str) -> Stage {
    let mut all = Stage::ALL.into_iter();
    all.find(|stage| stage.name() == name)
        .unwrap_or_else(|| panic!("{name}"))
}

/// An exchange with something in it.
pub(crate) fn exchange(at: Stage, sent: &str, body: &str) -> Exchange {
    let mut exchange = Exchange::new(at);
    exchange.headers = headers(sent).into();
    exchange.client = Arc::new(RequestHead {
        method: Method::POST,
        headers: headers("x-client=1").into(),
        path: "/graphql?b=2".into(),
    });
    exchange.uri = Some("http://products.local:4001/graphql?a=1".into());
    exchange.subgraph = Some("products".into());
    exchange.id = "id-1".into();
    exchange.body = Some(Body::Json(body.to_owned().into()));
    exchange
}

//! The server with a service of a few lines, over real sockets.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod events;
mod parts;
mod target;
mod upgrade;

use std::{
    fmt::Debug,
    future::Future,
    net::SocketAddr,
    num::NonZeroUsize,
    sync::{Arc, Mutex, mpsc},
    thread::JoinHandle,
    time::Duration,
};

use http::{Response, request::Parts};
use hyper::body::Incoming;
use ogive_base::{MemoryBudget, MemoryShare, Peer, Reservation};
use ogive_limits::Measured;
use ogive_server::{Bound, Drained, Refusal, ResponseBody, ServeOptions, Service};
use tokio::sync::oneshot;

/// Answers by a function of the request's head.
pub(crate) struct Answering<F>(F);

impl<F: Fn(&Parts) -> Response<ResponseBody> + Send + Sync + 'static> Service for Answering<F> {
    type Worker = ();

    fn worker(self: &Arc<Self>) {}
    fn answer(
        &self,
        head: &mut Parts,
        _: Incoming,
        _: Peer,
        (): &(),
    ) -> impl Future<Output = Response<ResponseBody>> {
        std::future::ready((self.0)(head))
    }
    fn refuse(&self, refusal: Refusal, _: &Parts, _: Peer) -> Response<ResponseBody> {
        panic!("{refusal:?}")
    }
    fn is_health(&self, _: &Parts) -> bool {
        false
    }
    fn reserve(&self, (): &()) -> Reservation {
        let budget = Arc::new(MemoryBudget::new(usize::MAX));
        Reservation::of(&MemoryShare::new(&budget))
    }
    fn note<T: PartialOrd + Debug>(&self, _: &Measured<T>, _: &T) {}
    fn start_draining(&self) {}
    fn generation(&self) -> u64 {
        0
    }
    fn trim(&self, (): &()) -> bool {
        false
    }
}

/// A server on a thread of its own, until it is told to stop.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Drained>,
}

impl Running {
    pub(crate) fn start<F>(configure: impl FnOnce(&mut ServeOptions), answer: F) -> Running
    where
        F: Fn(&Parts) -> Response<ResponseBody> + Send + Sync + 'static,
    {
        let mut options = ServeOptions {
            workers: NonZeroUsize::MIN,
            drain_idle_timeout: Duration::ZERO,
            drain_timeout: Duration::from_secs(60),
            ..ServeOptions::default()
        };
        configure(&mut options);
        let (stop, stopped) = oneshot::channel();
        let (told, address) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let bound = Bound::bind("127.0.0.1:0").await.unwrap();
                told.send(bound.address().unwrap()).unwrap();
                let stopped = async { drop(stopped.await) };
                bound
                    .serve(Arc::new(Answering(answer)), options, stopped)
                    .await
                    .unwrap()
            })
        });
        Running {
            address: address.recv().unwrap(),
            stop,
            thread,
        }
    }
    pub(crate) fn stop(self) -> Drained {
        self.stop.send(()).unwrap();
        self.thread.join().unwrap()
    }
}

/// What happened in the server.
pub(crate) type Noted = Arc<Mutex<Vec<&'static str>>>;

//! Names of hosts to addresses, and which of several addresses is tried first.
//!
//! Every new connection asks the [`Resolver`] anew, so that a change of the name service is followed as fast as connections
//! grow old ([`Traffic::connection_age_max`](crate::Traffic::connection_age_max)). Two things are remembered all the same:
//! what a name stood for when it was found last, for times in which the name service fails or is slow, because connections
//! that grow old must not make its failure one of the subgraphs; and which addresses did not answer lately, so that not
//! every connection waits for them again.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs as _},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ogive_base::FastMap;
use tokio::{
    sync::{Mutex as Turns, watch},
    time::Instant,
};

/// Finds the addresses of a host.
pub trait Resolver: fmt::Debug + Send + Sync {
    /// Its addresses, the preferred ones first. Their ports do not matter, their scopes do.
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a>;
}

/// The addresses of a host, later.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// That of the operating system.
///
/// It holds a thread for as long as the name service takes, whoever still waits. So while a host is looked up, whoever
/// asks for it waits for that, on whichever worker; and at most [`LOOKUPS_MAX`] hosts are looked up at a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a> {
        static UNDER_WAY: UnderWay = UnderWay::new();
        Box::pin(UNDER_WAY.look_up(host, |host| Ok((host, 0).to_socket_addrs()?.collect())))
    }
}

/// Most hosts that the process looks up at a time. Another one fails at once.
pub const LOOKUPS_MAX: usize = 64;

/// What a look-up found; an error as kind and text.
type LookedUp = Result<Vec<SocketAddr>, (io::ErrorKind, String)>;
/// Where it is said.
type Told = watch::Receiver<Option<LookedUp>>;

/// The look-ups under way, by host. Each has a thread.
#[derive(Debug)]
struct UnderWay {
    hosts: Mutex<BTreeMap<Box<str>, Told>>,
}

impl UnderWay {
    const fn new() -> Self {
        UnderWay {
            hosts: Mutex::new(BTreeMap::new()),
        }
    }

    /// What the look-up under way finds, or a new one. It ends whether anybody waits for it or not.
    async fn look_up(
        &'static self,
        host: &str,
        find: impl FnOnce(&str) -> io::Result<Vec<SocketAddr>> + Send + 'static,
    ) -> io::Result<Vec<SocketAddr>> {
        let mut told = self.join(host, find)?;
        let found = match told.wait_for(Option::is_some).await {
            Ok(found) => found.clone(),
            Err(_) => None,
        };
        match found {
            Some(found) => found.map_err(|(kind, why)| io::Error::new(kind, why)),
            None => Err(io::Error::other("the look-up was given up")),
        }
    }
    fn join(
        &'static self,
        host: &str,
        find: impl FnOnce(&str) -> io::Result<Vec<SocketAddr>> + Send + 'static,
    ) -> io::Result<Told> {
        let mut hosts = locked(&self.hosts);
        if let Some(told) = hosts.get(host) {
            return Ok(told.clone());
        }
        if hosts.len() >= LOOKUPS_MAX {
            let why = format!(
                "{LOOKUPS_MAX} other hosts are being looked up, and the name service does not answer"
            );
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
        }
        let (tell, told) = watch::channel(None);
        hosts.insert(host.into(), told.clone());
        drop(hosts);
        let begun = Begun {
            of: self,
            host: host.into(),
        };
        // Not one of the threads of a runtime: those are few, and a runtime waits for them in the end.
        let thread = std::thread::Builder::new().name("names".into());
        thread.spawn(move || {
            let found = find(&begun.host);
            // Whoever asks from here on asks anew.
            drop(begun);
            let found = found.map_err(|error| (error.kind(), error.to_string()));
            tell.send_replace(Some(found));
        })?;
        Ok(told)
    }
}

/// A look-up under way. It may also end because there is no thread for it.
struct Begun {
    of: &'static UnderWay,
    host: Box<str>,
}

impl Drop for Begun {
    fn drop(&mut self) {
        locked(&self.of.hosts).remove(&self.host);
    }
}

/// Most addresses of a host that are tried.
const ADDRESSES_MAX: usize = 16;
/// Most hosts that are remembered, and most addresses that did not answer.
const REMEMBERED_MAX: usize = 256;
/// How long the name service may take where it is known what it said before.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long what it said may stand in for it.
const STALE_MAX: Duration = Duration::from_secs(600);
/// How often it is logged at most, by host, that it does.
const WARNED: Duration = Duration::from_secs(10);
/// How long an address that did not answer is tried last.
const AVOIDED: Duration = Duration::from_secs(60);

/// What one worker knows of names and addresses.
#[derive(Debug)]
pub(crate) struct Names {
    resolver: Arc<dyn Resolver>,
    hosts: Mutex<FastMap<Box<str>, Arc<Host>>>,
    silent: Mutex<Vec<(SocketAddr, Instant)>>,
}

/// What is known of a host.
#[derive(Debug)]
struct Host {
    /// One look-up at a time: whoever waits for it gets what it found.
    turn: Turns<()>,
    /// How many look-ups have ended, and what the last one found; an error as text.
    last: Mutex<(u64, Result<Vec<SocketAddr>, String>)>,
    /// What the last one that found something found.
    found: Mutex<Option<(Instant, Vec<SocketAddr>)>>,
    /// When it was logged last that what it found before is used.
    warned: Mutex<Option<Instant>>,
}

impl Default for Host {
    fn default() -> Self {
        Host {
            turn: Turns::default(),
            last: Mutex::new((0, Ok(Vec::new()))),
            found: Mutex::default(),
            warned: Mutex::default(),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Names {
    fn default() -> Self {
        Names::new(Arc::new(SystemResolver))
    }
}

impl Names {
    pub(crate) fn new(resolver: Arc<dyn Resolver>) -> Self {
        Names {
            resolver,
            hosts: Mutex::default(),
            silent: Mutex::default(),
        }
    }

    /// The addresses of a host in the order in which they are tried: families in turns, those that did not answer lately
    /// last. At least one.
    pub(crate) async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let found = self.found(host).await?;
        let mut addresses = in_turns(&found, port);
        let now = Instant::now();
        let mut silent = locked(&self.silent);
        silent.retain(|(_, until)| now < *until);
        // Stable: otherwise the order stays.
        addresses.sort_by_key(|address| silent.iter().any(|(silent, _)| silent == address));
        if addresses.is_empty() {
            Err(format!("no address is known for `{host}`"))
        } else {
            Ok(addresses)
        }
    }

    /// Some addresses did not answer while another one did.
    pub(crate) fn passed_over(&self, addresses: &[SocketAddr]) {
        let until = Instant::now() + AVOIDED;
        let mut silent = locked(&self.silent);
        for address in addresses {
            silent.retain(|(known, _)| known != address);
            if silent.len() < REMEMBERED_MAX {
                silent.push((*address, until));
            }
        }
    }

    async fn found(&self, host: &str) -> Result<Vec<SocketAddr>, String> {
        let known = self.host(host);
        let looked_up = self.looked_up(host, &known);
        let before = locked(&known.found).clone();
        let before = before.filter(|(at, _)| at.elapsed() < STALE_MAX);
        let Some((_, before)) = before else {
            return looked_up.await;
        };
        let why = match tokio::time::timeout(PATIENCE, looked_up).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(why)) => why,
            Err(_) => format!("no answer within {PATIENCE:?}"),
        };
        // Every new connection comes here.
        let mut warned = locked(&known.warned);
        if warned.is_none_or(|warned| warned.elapsed() >= WARNED) {
            *warned = Some(Instant::now());
            tracing::warn!(
                host,
                why,
                "the name service fails; what it said before is used"
            );
        }
        Ok(before)
    }

    async fn looked_up(&self, host: &str, known: &Host) -> Result<Vec<SocketAddr>, String> {
        let ended = locked(&known.last).0;
        let _turn = known.turn.lock().await;
        // Somebody looked it up meanwhile.
        let last = locked(&known.last).clone();
        if last.0 != ended {
            return last.1;
        }
        let found = self.resolver.resolve(host).await;
        let found = found.map_err(|error| error.to_string());
        if let Ok(found) = &found
            && !found.is_empty()
        {
            *locked(&known.found) = Some((Instant::now(), found.clone()));
        }
        *locked(&known.last) = (ended.wrapping_add(1), found.clone());
        found
    }

    fn host(&self, host: &str) -> Arc<Host> {
        let mut hosts = locked(&self.hosts);
        if let Some(known) = hosts.get(host) {
            return Arc::clone(known);
        }
        if hosts.len() >= REMEMBERED_MAX {
            hosts.clear();
        }
        Arc::clone(hosts.entry(host.into()).or_default())
    }
}

/// One address of each family after the other, beginning with the family that comes first (RFC 8305, section 4).
fn in_turns(found: &[SocketAddr], port: u16) -> Vec<SocketAddr> {
    let first_is_ipv6 = found.first().is_some_and(SocketAddr::is_ipv6);
    let (mut first, mut second): (Vec<_>, Vec<_>) = found
        .iter()
        .map(|address| {
            let mut address = *address;
            address.set_port(port);
            address
        })
        .partition(|address| address.is_ipv6() == first_is_ipv6);
    first.reverse();
    second.reverse();
    let mut out: Vec<SocketAddr> = Vec::new();
    while out.len() < ADDRESSES_MAX && !(first.is_empty() && second.is_empty()) {
        let next = [first.pop(), second.pop()];
        for address in next.into_iter().flatten() {
            if !out.contains(&address) {
                out.push(address);
            }
        }
    }
    out.truncate(ADDRESSES_MAX);
    out
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Says one thing after the other; `None`: nothing, ever; an empty list is an error.
    #[derive(Debug)]
    struct Says {
        script: Vec<Option<Vec<&'static str>>>,
        asked: AtomicUsize,
    }
    impl Resolver for Says {
        fn resolve<'a>(&'a self, _: &'a str) -> Resolving<'a> {
            let at = self.asked.fetch_add(1, Ordering::Relaxed);
            let said = self.script[at.min(self.script.len() - 1)].clone();
            Box::pin(async move {
                tokio::task::yield_now().await;
                match said {
                    None => std::future::pending().await,
                    Some(said) if said.is_empty() => Err(io::Error::other("no such host")),
                    Some(said) => Ok(said
                        .iter()
                        .map(|a| SocketAddr::new(a.parse().unwrap(), 0))
                        .collect()),
                }
            })
        }
    }
    fn names(script: &[Option<&[&'static str]>]) -> (Names, Arc<Says>) {
        let script = script.iter().map(|said| said.map(<[_]>::to_vec));
        let says = Arc::new(Says {
            script: script.collect(),
            asked: AtomicUsize::new(0),
        });
        (Names::new(Arc::clone(&says) as Arc<dyn Resolver>), says)
    }
    async fn asked(names: &Names) -> String {
        match names.addresses("a.example", 1).await {
            Ok(found) => {
                let found: Vec<String> = found.iter().map(|a| a.ip().to_string()).collect();
                found.join(" ")
            }
            Err(why) => why,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn families_take_turns_and_silent_addresses_come_last() {
        let all: &[&str] = &["::1", "::2", "::3", "::1", "10.0.0.1", "10.0.0.2"];
        let (names, _) = names(&[Some(all)]);
        assert_eq!(asked(&names).await, "::1 10.0.0.1 ::2 10.0.0.2 ::3");
        names.passed_over(&["[::1]:1".parse().unwrap()]);
        assert_eq!(asked(&names).await, "10.0.0.1 ::2 10.0.0.2 ::3 ::1");
        tokio::time::advance(AVOIDED).await;
        assert_eq!(asked(&names).await, "::1 10.0.0.1 ::2 10.0.0.2 ::3");
        let literal = names.addresses("::1", 7).await.unwrap();
        assert_eq!(literal, ["[::1]:7".parse().unwrap()]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_seen_by_the_next_who_asks() {
        let (names, _) = names(&[Some(&["10.0.0.1"]), Some(&["10.0.0.2"])]);
        assert_eq!(asked(&names).await, "10.0.0.1");
        assert_eq!(asked(&names).await, "10.0.0.2");
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_ask_at_the_same_time_ask_once() {
        let (names, says) = names(&[Some(&["10.0.0.1"])]);
        let (one, two, three) = tokio::join!(asked(&names), asked(&names), asked(&names));
        assert_eq!([&*one, &*two, &*three], ["10.0.0.1"; 3]);
        assert_eq!(says.asked.load(Ordering::Relaxed), 1);
        asked(&names).await;
        assert_eq!(says.asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_found_before_stands_in_for_a_name_service_that_fails() {
        let (names, says) = names(&[Some(&["10.0.0.1"]), Some(&[]), None, Some(&["10.0.0.2"])]);
        assert_eq!(asked(&names).await, "10.0.0.1");
        assert_eq!(asked(&names).await, "10.0.0.1", "it fails");
        assert_eq!(asked(&names).await, "10.0.0.1", "it says nothing");
        assert_eq!(asked(&names).await, "10.0.0.2", "it is back");
        assert_eq!(says.asked.load(Ordering::Relaxed), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_found_long_ago_stands_in_for_nothing() {
        let (names, _) = names(&[Some(&["10.0.0.1"]), Some(&[])]);
        assert_eq!(asked(&names).await, "10.0.0.1");
        tokio::time::advance(STALE_MAX).await;
        assert_eq!(asked(&names).await, "no such host");
    }

    /// Look-ups that are held until told otherwise.
    struct Held(
        std::sync::mpsc::Sender<()>,
        Arc<Mutex<std::sync::mpsc::Receiver<()>>>,
    );
    impl Held {
        fn new() -> Self {
            let (go, going) = std::sync::mpsc::channel();
            Held(go, Arc::new(Mutex::new(going)))
        }
        fn find(
            &self,
            begun: &Arc<AtomicUsize>,
        ) -> impl FnOnce(&str) -> io::Result<Vec<SocketAddr>> + Send + 'static {
            let (going, begun) = (Arc::clone(&self.1), Arc::clone(begun));
            move |_| {
                begun.fetch_add(1, Ordering::Relaxed);
                let _ = locked(&going).recv();
                Ok(vec![SocketAddr::from(([10, 0, 0, 1], 0))])
            }
        }
    }

    #[tokio::test]
    async fn a_host_is_looked_up_once_at_a_time_whoever_gives_up() {
        let under_way: &'static UnderWay = Box::leak(Box::new(UnderWay::new()));
        let (held, begun) = (Held::new(), Arc::new(AtomicUsize::new(0)));
        // Each gives up as soon as it has asked.
        for _ in 0..1_000 {
            let mut asking = std::pin::pin!(under_way.look_up("a", held.find(&begun)));
            std::future::poll_fn(|context| {
                assert!(asking.as_mut().poll(context).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
        }
        let mut last = under_way.join("a", held.find(&begun)).unwrap();
        held.0.send(()).unwrap();
        assert!(last.wait_for(Option::is_some).await.is_ok());
        assert_eq!(begun.load(Ordering::Relaxed), 1, "threads that wait");
        // Whoever comes later asks anew.
        held.0.send(()).unwrap();
        under_way.look_up("a", held.find(&begun)).await.unwrap();
        assert_eq!(begun.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn so_many_hosts_are_looked_up_at_a_time_and_another_one_fails_at_once() {
        let under_way: &'static UnderWay = Box::leak(Box::new(UnderWay::new()));
        let (held, begun) = (Held::new(), Arc::new(AtomicUsize::new(0)));
        let asked: Vec<Told> = (0..LOOKUPS_MAX)
            .map(|at| {
                under_way
                    .join(&format!("h{at}"), held.find(&begun))
                    .unwrap()
            })
            .collect();
        let refused = under_way.look_up("another", held.find(&begun)).await;
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::ResourceBusy);
        for _ in 0..LOOKUPS_MAX {
            held.0.send(()).unwrap();
        }
        for mut told in asked {
            assert!(told.wait_for(Option::is_some).await.is_ok());
        }
        held.0.send(()).unwrap();
        let found = under_way.look_up("another", held.find(&begun)).await;
        assert_eq!(found.unwrap().len(), 1);
    }
}

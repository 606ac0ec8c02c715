//! HTTP requests of components, sent by the gateway's own client.
//!
//! Components wait for answers on threads of their own ([`LoadedComponent`](super::components::LoadedComponent)); what is sent and read
//! is the work of one thread of the process, which knows the time of each request. Connections are kept per component and
//! host. No redirect is followed, and no proxy is asked.
//!
//! A permitted name may stand for any address but those that a name from outside never should ([`is_near`]): there a server
//! of this machine, or of whoever runs it, would take the gateway for somebody it trusts. An address that is permitted as such
//! is one that the operator has written.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, OnceLock, mpsc},
    thread,
};

use ogive_hooks::components::{
    ComponentOptions,
    outgoing::{Answer, Host, Outgoing, Sender, Unanswered},
};
use ogive_transport::{Resolver, Resolving, Source, SystemResolver};
use tokio::runtime::{Builder, Handle};

/// The hosts that one component may ask.
#[derive(Debug)]
struct ComponentClient {
    sources: BTreeMap<Host, Arc<Source>>,
}

/// What sends requests of a component; `None` if it may ask nobody. The error is for the operator.
pub(super) fn sender(options: &ComponentOptions) -> Result<Option<Arc<dyn Sender>>, String> {
    let hosts = &options.permissions.hosts;
    if hosts.is_empty() {
        return Ok(None);
    }
    let source = |host: &Host| {
        let source = Source::resolved_by(&host.to_string(), Arc::new(OutgoingResolver));
        let source = source.map_err(|why| format!("`{}`: `{host}`: {why}", options.name))?;
        Ok((host.clone(), Arc::new(source)))
    };
    let sources: Result<_, String> = hosts.iter().map(source).collect();
    Ok(Some(Arc::new(ComponentClient { sources: sources? })))
}

impl Sender for ComponentClient {
    fn send(&self, request: Outgoing) -> Result<Answer, Unanswered> {
        let failed = |why: &str| Unanswered::Failed(why.to_owned());
        let source = self.sources.get(&request.host);
        let source = Arc::clone(source.ok_or_else(|| failed("the host is not permitted"))?);
        let runtime = runtime().ok_or_else(|| failed("there is no thread for requests"))?;
        let (tell, told) = mpsc::sync_channel(1);
        let within = request.within;
        runtime.spawn(async move {
            let body = (request.body, request.body_bytes_max);
            let sent = source.send_to(request.path, request.method, request.headers, body);
            let answer = match tokio::time::timeout(within, sent).await {
                Ok(Ok(answer)) => Ok(Answer {
                    status: answer.status,
                    headers: answer.headers,
                    body: answer.body,
                }),
                Ok(Err(why)) => Err(Unanswered::Failed(why)),
                Err(_) => Err(Unanswered::Late),
            };
            // Whoever waited for it may have given up.
            let _ = tell.send(answer);
        });
        match told.recv_timeout(within) {
            Ok(answer) => answer,
            Err(mpsc::RecvTimeoutError::Timeout) => Err(Unanswered::Late),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(failed("the request was given up")),
        }
    }
}

/// Where requests of components are sent: a thread of the process, begun with the first one.
fn runtime() -> Option<&'static Handle> {
    static RUNTIME: OnceLock<Option<Handle>> = OnceLock::new();
    let begin = || {
        let runtime = Builder::new_current_thread().enable_all().build().ok()?;
        let handle = runtime.handle().clone();
        let thread = thread::Builder::new().name("component-http".to_owned());
        let run = move || runtime.block_on(std::future::pending::<()>());
        thread.spawn(run).ok()?;
        Some(handle)
    };
    RUNTIME.get_or_init(begin).as_ref()
}

/// The name service of the operating system, without addresses that are near.
#[derive(Clone, Copy, Debug)]
struct OutgoingResolver;

impl Resolver for OutgoingResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a> {
        Box::pin(async move { far(host, SystemResolver.resolve(host).await?) })
    }
}

/// The addresses that a name may stand for.
fn far(host: &str, mut addresses: Vec<SocketAddr>) -> io::Result<Vec<SocketAddr>> {
    let lower = host.to_ascii_lowercase();
    let is_local = lower == "localhost" || lower.ends_with(".localhost");
    let found = addresses.len();
    addresses.retain(|at| !is_near(at.ip()) || (is_local && at.ip().to_canonical().is_loopback()));
    if addresses.is_empty() && found > 0 {
        let why = format!("`{host}` stands for addresses that no name may stand for");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(addresses)
}

/// Addresses of services that clouds run beside a machine, and that trust whoever asks: none of them is link-local.
const METADATA: [IpAddr; 4] = [
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
];

/// Whether an address is of this machine or of its link, or of nobody at all.
fn is_near(address: IpAddr) -> bool {
    let address = match address.to_canonical() {
        IpAddr::V6(address) => embedded(address).map_or(IpAddr::V6(address), IpAddr::V4),
        address @ IpAddr::V4(_) => address,
    };
    let is_of_link = match address {
        IpAddr::V4(address) => {
            address.is_link_local() || address.is_broadcast() || address.octets()[0] == 0
        }
        // One cloud has several services under one prefix.
        IpAddr::V6(address) => {
            address.is_unicast_link_local() || address.segments()[..2] == [0xfd00, 0xec2]
        }
    };
    let is_nobodys = address.is_unspecified() || address.is_multicast();
    is_of_link || is_nobodys || address.is_loopback() || METADATA.contains(&address)
}

/// The address that a translator makes of one (RFC 6052: `64:ff9b::/96`; RFC 3056: `2002::/16`; RFC 4291: `::/96`).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let of = |high: u16, low: u16| Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match (a, b) {
        (0x64, 0xff9b) if [c, d, e, f] == [0; 4] => of(g, h),
        (0x2002, _) => of(b, c),
        (0, 0) if [c, d, e, f] == [0; 4] && g != 0 => of(g, h),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_no_address_of_this_machine_or_its_cloud() {
        let is_far = |host: &str, address: &str| {
            let address = SocketAddr::new(address.parse().unwrap(), 0);
            far(host, vec![address]).is_ok()
        };
        for near in [
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
            "100.100.100.200",
            "168.63.129.16",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::169.254.169.254",
            "2002:a9fe:a9fe::1",
            "fe80::1",
            "ff02::1",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "192.0.0.192",
        ] {
            assert!(!is_far("a.test", near), "{near}");
        }
        // Services beside the gateway have such addresses.
        for away in [
            "10.0.0.1",
            "192.168.1.1",
            "93.184.216.34",
            "fd00::1",
            "2001:db8::1",
        ] {
            assert!(is_far("a.test", away), "{away}");
        }
        assert!(is_far("localhost", "127.0.0.1") && is_far("a.localhost", "::1"));
        assert!(!is_far("localhost", "169.254.169.254") && !is_far("notlocalhost", "::1"));
        // Those that may be asked are.
        let both = ["127.0.0.1:1", "10.0.0.1:1"].map(|at| at.parse().unwrap());
        assert_eq!(far("a.test", both.to_vec()).unwrap(), both[1..]);
    }
}

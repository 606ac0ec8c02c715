//! Subscriptions of other gateways: how subgraphs send events.

use ogive_yaml::Node;

use super::{
    convert::duration,
    nodes::{quoted, scalar, text},
    rules::Walk,
    why::{CALLBACKS, SUBSCRIPTIONS},
};

/// Cosmo's `overrides.subgraphs.*.subscription_protocol`; the sub-protocol of WebSockets stands beside it.
pub(crate) fn cosmo_protocol(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let Some(name) = path.get(2) else { return };
    let beside = format!("overrides.subgraphs.{name}.subscription_websocket_subprotocol");
    let protocol = match (scalar(node), walk.text(&beside)) {
        (Some("ws"), Some("graphql-ws")) => "graphql_transport_ws",
        (Some("ws"), _) => "graphql_ws",
        (Some("sse" | "sse_post"), _) => "sse",
        _ => return walk.unsupported(path, SUBSCRIPTIONS),
    };
    walk.put(path, &of_subgraph(name, "protocol"), text(protocol), "");
}

/// Cosmo's sub-protocol of WebSockets, which is read with the protocol.
pub(crate) fn cosmo_subprotocol(walk: &mut Walk<'_>, path: &[String], _: &Node) {
    let Some(name) = path.get(2) else { return };
    let protocol = format!("overrides.subgraphs.{name}.subscription_protocol");
    match walk.text(&protocol) {
        Some("ws") => walk.not_needed(path, "it is part of the protocol's name"),
        _ => walk.not_needed(path, "`auto` finds out which protocol is spoken"),
    }
}

/// Grafbase's `subgraphs.*.subscription_protocol`.
pub(crate) fn grafbase_protocol(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let Some(name) = path.get(1) else { return };
    let protocol = match scalar(node) {
        Some("websocket") => "graphql_ws",
        Some("server_sent_events") => "sse",
        _ => return walk.unsupported(path, SUBSCRIPTIONS),
    };
    walk.put(path, &of_subgraph(name, "protocol"), text(protocol), "");
}

/// Hive's `subscriptions.websocket.all` and `.subgraphs.*`: whatever is named there is spoken to over WebSocket.
pub(crate) fn hive_websocket(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let target = |key: &str| match path.get(3) {
        Some(name) if path[2] == "subgraphs" => of_subgraph(name, key),
        _ => format!("subscription.mode.passthrough.all.{key}"),
    };
    match scalar(node) {
        Some(found) => {
            walk.put(path, &target("path"), text(found), "");
            let why = "subgraphs that are named there are spoken to over WebSocket";
            walk.implied(&target("protocol"), "graphql_ws", why);
        }
        None => walk.unsupported(path, SUBSCRIPTIONS),
    }
}

/// How often subgraphs say that they are there, where they send events by requests: a duration, or `disabled`.
pub(crate) fn callback_heartbeat(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let target = "subscription.mode.callback.heartbeat_interval";
    match scalar(node) {
        Some("disabled") => walk.put(path, target, text("0s"), ""),
        Some("enabled") => walk.put(path, target, text("5s"), ""),
        _ => match duration(walk.format, node) {
            Ok(every) => walk.put(path, target, every, ""),
            Err(why) => walk.unsupported(path, &why),
        },
    }
}

/// The address that subgraphs send events to. If it differs from the gateway's, it may have been unreachable for clients.
pub(crate) fn callback_listener(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let public = walk.text("supergraph.listen");
    match scalar(node) {
        Some(address) if Some(address) == public => {
            walk.not_needed(path, "events come to the address of the gateway");
        }
        _ => walk.lost(path, CALLBACKS),
    }
}

fn of_subgraph(name: &str, key: &str) -> String {
    format!(
        "subscription.mode.passthrough.subgraphs.{}.{key}",
        quoted(name)
    )
}

/// Elsewhere subscriptions need no switch.
pub(crate) fn served(walk: &mut Walk<'_>) {
    let why = "subscriptions are served there without a switch";
    walk.implied("subscription.enabled", "true", why);
}

//! The addresses under which learners and their phones can reach a room that this machine serves.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use anyhow::Result;

use crate::class::handle::host_name;
use crate::out::usage;
use crate::sanitize;

/// The names of network interfaces of containers, virtual machines and tunnels begin with these letters. No phone in the classroom can
/// reach them.
const VIRTUAL: [&str; 9] = [
    "docker", "br-", "veth", "virbr", "vbox", "vmnet", "tun", "tap", "wg",
];

/// An address of a room, `HOST:PORT`, and the name of its network interface. The name is empty if there is only one address.
pub(super) type RoomAddress = (String, String);

/// Returns the address that `--address` names.
///
/// # Errors
/// If the text is not of the form `http://HOST:PORT` or `HOST:PORT`.
pub(super) fn public(address: &str) -> Result<RoomAddress> {
    let host = address
        .strip_prefix("http://")
        .unwrap_or(address)
        .trim_end_matches('/');
    let is_wrong =
        |letter: char| letter == '/' || letter.is_whitespace() || sanitize::harmful(letter);
    if host.is_empty() || host.contains(is_wrong) {
        return Err(usage(
            "--address: write http://HOST:PORT as phones reach this room, without a path",
        ));
    }
    Ok((host.to_owned(), "--address".to_owned()))
}

/// Returns the addresses under which others may reach a room that is served at `served`. If it is served at every address of this machine,
/// the address of the default route comes first, those of containers and virtual machines come late, and the name of the machine is last.
pub(super) fn all(served: SocketAddr) -> Vec<RoomAddress> {
    if !served.ip().is_unspecified() {
        return vec![(served.to_string(), String::new())];
    }
    let mut found: Vec<(IpAddr, String)> = Vec::new();
    for interface in if_addrs::get_if_addrs().unwrap_or_default() {
        let is_reachable = !interface.is_loopback() && !interface.is_link_local();
        if is_reachable && (interface.ip().is_ipv4() || served.is_ipv6()) {
            found.push((interface.ip(), interface.name));
        }
    }
    sort(&mut found, default_route());
    let mut addresses = Vec::new();
    for (ip, interface) in found {
        let address = SocketAddr::new(ip, served.port()).to_string();
        addresses.push((address, interface));
    }
    let by_name = format!("{}:{}", host_name(), served.port());
    addresses.push((by_name, "by name".to_owned()));
    addresses
}

/// Returns the address of this machine from which it would send to other networks.
fn default_route() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Connecting a UDP socket chooses the route and sends nothing. The address is reserved for documentation.
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Sorts addresses by how likely a phone in the classroom can reach them, and removes repeated ones.
fn sort(found: &mut Vec<(IpAddr, String)>, default: Option<IpAddr>) {
    found.sort_by_key(|(ip, name)| {
        let is_virtual = VIRTUAL.iter().any(|prefix| name.starts_with(prefix));
        (Some(*ip) != default, is_virtual, ip.is_ipv6(), *ip)
    });
    found.dedup_by_key(|(ip, _)| *ip);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_the_default_route_comes_first_and_those_of_containers_last() {
        let address = |ip: [u8; 4], name: &str| (IpAddr::from(ip), name.to_owned());
        let wifi = address([192, 168, 1, 5], "wlan0");
        let mut found = vec![
            address([10, 8, 0, 2], "tun0"),
            address([172, 17, 0, 1], "docker0"),
            wifi.clone(),
            address([172, 20, 1, 4], "enp3s0"),
        ];
        sort(&mut found, Some(wifi.0));
        let names: Vec<&str> = found.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["wlan0", "enp3s0", "tun0", "docker0"]);
    }

    #[test]
    fn an_address_of_a_tunnel_is_a_host() {
        let host = |address| public(address).ok().map(|(host, _)| host);
        assert_eq!(
            host("http://vote.example:80/").as_deref(),
            Some("vote.example:80")
        );
        assert_eq!(host("vote.example").as_deref(), Some("vote.example"));
        for wrong in ["", "https://x", "http://x/y", "a b", "\u{1b}[2J"] {
            assert_eq!(host(wrong), None, "{wrong}");
        }
    }
}

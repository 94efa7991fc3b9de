//! The addresses under which phones and learners reach a room on this machine.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use anyhow::Result;

use crate::class::handle::host_name;
use crate::out::usage;
use crate::sanitize;

/// The first letters of the interfaces of containers, virtual machines and tunnels, which no phone in the room reaches.
const VIRTUAL: [&str; 9] = [
    "docker", "br-", "veth", "virbr", "vbox", "vmnet", "tun", "tap", "wg",
];

/// An address of a room, `HOST:PORT`, and the name of its interface, which is empty for the only address.
pub(super) type RoomAddress = (String, String);

/// Returns the `HOST:PORT` of the address that `--address` names.
///
/// # Errors
/// If it is no address without a path.
pub(super) fn given(address: &str) -> Result<RoomAddress> {
    let host = address
        .strip_prefix("http://")
        .unwrap_or(address)
        .trim_end_matches('/');
    let is_wrong =
        |letter: char| letter == '/' || letter.is_whitespace() || sanitize::harmful(letter);
    if host.is_empty() || host.contains(is_wrong) {
        let said = "--address: write http://HOST:PORT as phones reach this room, without a path";
        return Err(usage(said));
    }
    Ok((host.to_owned(), "--address".to_owned()))
}

/// Returns every address that others on the network may reach this machine by: that of the default route first, those of containers and
/// virtual machines after the others, and the name of the machine last.
pub(super) fn all(at: SocketAddr) -> Vec<RoomAddress> {
    if !at.ip().is_unspecified() {
        return vec![(at.to_string(), String::new())];
    }
    let mut found: Vec<(IpAddr, String)> = Vec::new();
    for interface in if_addrs::get_if_addrs().unwrap_or_default() {
        let is_reached = !interface.is_loopback() && !interface.is_link_local();
        if is_reached && (interface.ip().is_ipv4() || at.is_ipv6()) {
            found.push((interface.ip(), interface.name));
        }
    }
    sort(&mut found, default_route());
    let mut addresses = Vec::new();
    for (ip, interface) in found {
        addresses.push((SocketAddr::new(ip, at.port()).to_string(), interface));
    }
    let by_name = format!("{}:{}", host_name(), at.port());
    addresses.push((by_name, "by name".to_owned()));
    addresses
}

/// Returns the address from which this machine reaches others. Nothing is sent.
fn default_route() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // An address for documentation: it is nobody's.
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Sorts addresses by how likely a phone in the room reaches them.
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
        let host = |address| given(address).ok().map(|(host, _)| host);
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

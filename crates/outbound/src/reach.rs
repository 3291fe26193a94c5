//! Which addresses may be called.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Which addresses may be called. Judged by the address that is connected to, once for each connection.
#[derive(Debug, Clone)]
pub enum Reach {
    /// All of them.
    Anywhere,
    /// Public addresses, and whatever addresses these hosts have.
    Public {
        /// `host` for all its ports or `host:port`; names or addresses in lower case, an IPv6 address in brackets.
        except: Arc<[String]>,
    },
}

impl Reach {
    /// Public addresses and these hosts: names or addresses (IPv6 in brackets), each alone or with a port. Capital letters
    /// do not matter.
    pub fn public(except: impl IntoIterator<Item = String>) -> Self {
        Self::Public { except: except.into_iter().map(|host| host.trim().to_ascii_lowercase()).collect() }
    }

    /// Whether `host` at `port` may be called at `address`. The host is without brackets.
    pub fn allows(&self, host: &str, port: u16, address: IpAddr) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Public { except } => is_public(address) || is_among(except, host, port),
        }
    }
}

fn is_among(hosts: &[String], host: &str, port: u16) -> bool {
    if hosts.is_empty() {
        return false;
    }
    let host = host.to_ascii_lowercase();
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let with_port = format!("{host}:{port}");
    hosts.iter().any(|allowed| *allowed == host || *allowed == with_port)
}

/// Whether `address` belongs to a host on the public Internet, by the special-purpose registries of IANA.
///
/// Not public: unspecified, loopback, private, shared (carrier-grade NAT), link-local, unique-local, multicast, broadcast,
/// documentation, benchmarking and reserved addresses, and IPv6 addresses that stand for an IPv4 address (mapped, 6to4,
/// Teredo), since a private one can hide in them. An address of NAT64 is judged by the IPv4 address in it: in a network
/// without IPv4 all public hosts look like that.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let special = match address.octets() {
        [0 | 10 | 127, ..] => true,
        [100, b, ..] => (64..128).contains(&b),
        [169, 254, ..] | [192, 168, ..] => true,
        [172, b, ..] => (16..32).contains(&b),
        // Protocol assignments, documentation, and the relays of 6to4.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] => true,
        [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => true,
        // Multicast, reserved, broadcast.
        [224..=255, ..] => true,
        _ => false,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    if let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = parts {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        return is_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    // Only 2000::/3 is given out for hosts.
    let global = parts[0] & 0xe000 == 0x2000;
    let special = match parts {
        // Protocol assignments with Teredo, and documentation.
        [0x2001, b, ..] => b < 0x200 || b == 0xdb8,
        [0x2002, ..] => true,
        [0x3fff, b, ..] => b < 0x1000,
        _ => false,
    };
    global && !special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_on_the_internet_are_public() {
        for (address, public) in [
            ("8.8.8.8", true),
            ("100.63.255.255", true),
            ("100.128.0.0", true),
            ("172.15.0.1", true),
            ("172.32.0.1", true),
            ("192.0.1.1", true),
            ("223.255.255.255", true),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("10.0.0.1", false),
            ("100.64.0.1", false),
            ("100.127.255.255", false),
            ("127.0.0.1", false),
            ("127.255.255.254", false),
            ("169.254.169.254", false),
            ("172.16.0.1", false),
            ("172.31.255.255", false),
            ("192.0.0.8", false),
            ("192.0.2.1", false),
            ("192.168.1.1", false),
            ("198.19.0.1", false),
            ("198.51.100.7", false),
            ("203.0.113.9", false),
            ("224.0.0.1", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:4700:4700::1111", true),
            ("2001:4860:4860::8888", true),
            ("64:ff9b::808:808", true),
            ("64:ff9b::a00:1", false),
            ("64:ff9b:1::808:808", false),
            ("::", false),
            ("::1", false),
            ("::ffff:8.8.8.8", false),
            ("::ffff:127.0.0.1", false),
            ("::127.0.0.1", false),
            ("100::1", false),
            ("2001::1", false),
            ("2001:db8::1", false),
            ("2002:7f00:1::", false),
            ("3fff::1", false),
            ("fc00::1", false),
            ("fd12:3456::1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
        }
    }

    #[test]
    fn an_exception_is_a_host_or_a_host_with_its_port() {
        let reach = Reach::public(["Hooks.Internal".into(), "10.0.0.1:9000".into(), "[::1]:80".into()]);
        let inner: IpAddr = "10.0.0.1".parse().unwrap();
        assert!(reach.allows("hooks.internal", 1, inner));
        assert!(reach.allows("10.0.0.1", 9_000, inner));
        assert!(!reach.allows("10.0.0.1", 9_001, inner));
        assert!(!reach.allows("other.internal", 1, inner));
        assert!(reach.allows("::1", 80, "::1".parse().unwrap()));
    }
}

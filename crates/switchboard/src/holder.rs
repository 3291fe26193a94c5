//! Which process listens on an address, as far as the system tells.

use std::fs;
use std::net::SocketAddr;

/// `pid 123 (node)`, or nothing where the system does not say.
pub(crate) fn of(address: SocketAddr) -> Option<String> {
    let sockets = listening_sockets(address.port());
    let (pid, name) = fs::read_dir("/proc").ok()?.filter_map(Result::ok).find_map(|process| {
        let pid: u32 = process.file_name().to_str()?.parse().ok()?;
        let mut open = fs::read_dir(process.path().join("fd")).ok()?.filter_map(Result::ok);
        let holds = open.any(|file| {
            fs::read_link(file.path())
                .is_ok_and(|target| sockets.iter().any(|socket| target.as_os_str() == &**socket))
        });
        let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        holds.then(|| (pid, name.trim().to_owned()))
    })?;
    Some(format!("pid {pid} ({name})"))
}

/// The names under which the sockets that listen on `port` stand among a process's open files.
fn listening_sockets(port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| {
            let rows = table.lines().skip(1).filter_map(|row| {
                // Number, local address, remote address, state, five more, and the inode.
                let fields: Vec<&str> = row.split_whitespace().collect();
                let listens = fields.get(1)?.ends_with(&suffix) && *fields.get(3)? == LISTEN;
                listens.then(|| format!("socket:[{}]", fields.get(9).unwrap_or(&"")))
            });
            rows.collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn whoever_listens_is_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let holder = of(address).unwrap();
        assert!(holder.starts_with(&format!("pid {} (", std::process::id())), "{holder}");
        drop(listener);
        assert_eq!(of(address), None);
    }
}

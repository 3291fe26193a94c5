//! Which clients are on this machine, and whether they know the server. Only reads.

use std::path::PathBuf;

use super::Finding;

/// A client, and where it keeps its MCP servers, below the home directory.
struct Client {
    name: &'static str,
    files: &'static [&'static str],
    /// What to run, or what to put where, with `URL` for the server's.
    connect: &'static str,
}

const CLIENTS: [Client; 4] = [
    Client {
        name: "Claude Code",
        files: &[".claude.json"],
        connect: "claude mcp add --transport http switchboard URL/mcp/coordination",
    },
    Client {
        name: "Cursor",
        files: &[".cursor/mcp.json"],
        connect: r#"put "switchboard": {"url": "URL/mcp/coordination"} under "mcpServers" of ~/.cursor/mcp.json"#,
    },
    Client {
        name: "Codex",
        files: &[".codex/config.toml"],
        connect: r#"put [mcp_servers.switchboard] url = "URL/mcp/coordination" into ~/.codex/config.toml"#,
    },
    Client {
        name: "Claude Desktop",
        files: &[
            ".config/Claude/claude_desktop_config.json",
            "Library/Application Support/Claude/claude_desktop_config.json",
        ],
        connect: r#"put "switchboard": {"command": "switchboard", "args": ["mcp"]} under "mcpServers" of its file"#,
    },
];

/// One finding for each client that has a file, or its folder.
pub(super) fn examine(url: Option<&str>) -> Vec<Finding> {
    let Some(home) = directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_owned()) else {
        return Vec::new();
    };
    let url = url.unwrap_or("http://127.0.0.1:4100");
    CLIENTS.iter().filter_map(|client| examine_one(client, &home, url)).collect()
}

fn examine_one(client: &Client, home: &std::path::Path, url: &str) -> Option<Finding> {
    let files: Vec<PathBuf> = client.files.iter().map(|file| home.join(file)).collect();
    let found = files.iter().find(|file| file.exists());
    let is_here = found.is_some()
        || files.iter().filter_map(|file| file.parent()).any(|dir| dir != home && dir.exists());
    if !is_here {
        return None;
    }
    let text = found.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    if text.contains("switchboard") || text.contains(url) {
        return Some(Finding::fine(client.name, "knows this server"));
    }
    Some(Finding::note(
        client.name,
        "is here and does not know this server",
        client.connect.replace("URL", url),
    ))
}

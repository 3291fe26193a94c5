//! The doors as clients find them: a real server on a real port, and a real HTTP client.

mod support;

mod mcp_http;

//! A client of Letta's REST API.

//! REST under `/api`, described by `/api/openapi.json`.
//!
//! Handlers take what they need, make one call and render. Wire types live here and are made by hand: what the machines
//! keep may change its shape, what clients read does not.

mod openapi;

mod check;
mod events;
mod keys;
mod projects;
mod published;
mod refusal;
mod scheduler;
mod schedules;
mod tools;
mod views;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use http::Method;

use self::openapi::{Api, Operation};
use crate::health::Health;
use crate::serve::Door;

/// All routes under `/api`.
pub(crate) fn routes() -> Router<Door> {
    let api = Api::default().route(
        Method::GET,
        "/api/health",
        health,
        Operation::of("Whether this server can do its work; 503 if not").answers::<Health>(200),
    );
    let api = events::add_to(api);
    let api = projects::add_to(api);
    let api = check::add_to(api);
    let api = tools::add_to(api);
    let api = keys::add_to(api);
    let api = schedules::add_to(api);
    let api = scheduler::add_to(api);
    api.into_router()
}

async fn health(State(door): State<Door>) -> Response {
    crate::health::health(State(door)).await
}

//! Agents on other hosts.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use super::unfinished;
use crate::api::{Agent, ApiError, NewAgent};
use crate::app::Shared;
use crate::extract::{Body, Path, Query};

/// Whether to ask them.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Asked {
    /// Ask each how it is, which may take some seconds.
    pub(crate) status: Option<bool>,
}

/// Lists the agents at which this server has enrolled.
#[utoipa::path(get, path = "/agents", tag = "agents", params(Asked), responses((status = 200, body = Vec<Agent>)))]
pub(crate) async fn list(
    State(_app): Shared,
    Query(_asked): Query<Asked>,
) -> Result<Json<Vec<Agent>>, ApiError> {
    unfinished()
}

/// Enrols at an agent, with the one-time code that its owner made.
#[utoipa::path(post, path = "/agents", tag = "agents", request_body = NewAgent, responses((status = 201, body = Agent)))]
pub(crate) async fn enrol(
    State(_app): Shared,
    Body(_new): Body<NewAgent>,
) -> Result<(StatusCode, Json<Agent>), ApiError> {
    unfinished()
}

/// Forgets an agent: nothing is run there any more.
#[utoipa::path(
    delete, path = "/agents/{name}", tag = "agents", params(("name" = String, Path, description = "The agent's name")),
    responses((status = 204))
)]
pub(crate) async fn forget(State(_app): Shared, Path(_name): Path<String>) -> Result<StatusCode, ApiError> {
    unfinished()
}

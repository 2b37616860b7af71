//! The server itself.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use utoipa::openapi::OpenApi;

use super::unfinished;
use crate::api::{ApiError, Login, ServerInfo};
use crate::app::Shared;
use crate::extract::Body;

/// What the server is, and where it can run experiments.
#[utoipa::path(get, path = "/server", tag = "server", responses((status = 200, body = ServerInfo)))]
pub(crate) async fn server(State(_app): Shared) -> Result<Json<ServerInfo>, ApiError> {
    unfinished()
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", tag = "server", responses((status = 200, body = Object)))]
pub(crate) async fn document() -> Json<OpenApi> {
    Json(super::openapi())
}

/// Logs in with the code of a link that `trunkline serve token` printed: it works once. A cookie says who it is from then
/// on. Programs send a token instead, `Authorization: Bearer TOKEN`.
#[utoipa::path(post, path = "/login", tag = "server", request_body = Login, responses((status = 204)))]
pub(crate) async fn login(State(_app): Shared, Body(_login): Body<Login>) -> Result<StatusCode, ApiError> {
    unfinished()
}

/// Logs out.
#[utoipa::path(post, path = "/logout", tag = "server", responses((status = 204)))]
pub(crate) async fn logout(State(_app): Shared) -> Result<StatusCode, ApiError> {
    unfinished()
}

//! Facts about the server.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Backend;

/// The server.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ServerInfo {
    /// The version of Trunkline.
    pub version: String,
    /// The machine: kernel, processor, number of cores, host name.
    pub machine: String,
    /// The backends on which it can run experiments.
    pub backends: Vec<Backend>,
    /// Every backend, with the reason if it is not available.
    pub availability: Vec<ServerBackend>,
    /// Whether clients have to log in.
    pub authenticated: bool,
    /// Where runs are stored.
    pub store: String,
}

/// A backend on this server.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ServerBackend {
    /// The backend.
    pub backend: Backend,
    /// The reason why it cannot be used here; null if it can.
    pub unavailable: Option<String>,
}

/// A login.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The code of a link that `trunkline serve token` printed.
    pub code: String,
}

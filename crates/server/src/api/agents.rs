//! Agents on other hosts.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// An agent at which this server has enrolled.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// Its address: `host:port`.
    pub address: Option<String>,
    /// The fingerprint of its key.
    pub fingerprint: String,
    /// The time of enrolment.
    pub enrolled: jiff::Timestamp,
    /// Whether it replies now; missing if it was not queried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reachable: Option<bool>,
    /// The reason why it does not reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<String>,
    /// Its own status, if it replies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub status: Option<Value>,
    /// Its host, and the limits that its owner has set, if it replies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub facts: Option<Value>,
}

/// An agent to enrol at.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAgent {
    /// Its address: `host:port`.
    pub address: String,
    /// The one-time code that `trunkline agent pair` printed there.
    pub code: String,
}

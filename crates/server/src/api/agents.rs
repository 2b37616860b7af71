//! Agents on other hosts.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// An agent at which this server has enrolled.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// Where it is: `host:port`.
    pub address: Option<String>,
    /// The fingerprint of its key.
    pub fingerprint: String,
    /// Since when.
    pub enrolled: jiff::Timestamp,
    /// Whether it answers now; missing if it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reachable: Option<bool>,
    /// Why it does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<String>,
    /// What it says of itself, if it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub status: Option<Value>,
    /// What kind of host it is on, and what its owner allows, if it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub facts: Option<Value>,
}

/// An agent to enrol at.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAgent {
    /// Where it is: `host:port`.
    pub address: String,
    /// The one-time code that `trunkline agent pair` printed there.
    pub code: String,
}

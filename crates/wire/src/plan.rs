//! Hosts, attachments, addresses and routes of a scenario.

/// What is made for a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {}

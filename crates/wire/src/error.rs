//! What can go wrong with a wire.

/// Why a wire cannot be made or does not go on.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The system does not let us make namespaces.
    #[error("{0}")]
    Forbidden(String),
}

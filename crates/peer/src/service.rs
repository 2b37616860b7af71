//! What listens on a port, in the words of error messages.

/// What listens on a port, in the words of error messages.
#[derive(Debug, PartialEq, Eq)]
pub struct Service {
    /// What it is.
    pub what: &'static str,
    /// Its port, unless told otherwise.
    pub port: u16,
    /// The command that runs it.
    pub run: &'static str,
    /// The command that shows a pairing code on its host.
    pub pair: &'static str,
    /// Where its owner finds errors.
    pub log: &'static str,
    /// The command with which the other end forgets it.
    pub forget: &'static str,
}

impl Service {
    /// An agent.
    pub const AGENT: Service = Service {
        what: "agent",
        port: 4781,
        run: "`trunkline agent`",
        pair: "`trunkline agent pair`",
        log: "`trunkline agent status` on that host",
        forget: "`trunkline agent forget NAME`",
    };
}

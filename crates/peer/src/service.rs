//! Services, in the words of error messages.

/// A service that listens on a port, in the words of error messages.
#[derive(Debug, PartialEq, Eq)]
pub struct Service {
    /// Its kind.
    pub what: &'static str,
    /// Its port, unless told otherwise.
    pub port: u16,
    /// The command that runs it.
    pub run: &'static str,
    /// The command that shows a pairing code on its host.
    pub pair: &'static str,
    /// The place in which its owner finds errors.
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

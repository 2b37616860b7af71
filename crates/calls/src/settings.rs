//! Options of sockets, with the study's defaults.

use serde::{Deserialize, Serialize};
use trunkline_core::Duration;
use trunkline_io::Marking;

/// Options of the sockets at both ends of a session. The defaults are those of Schiavoni and Queiroz (2013).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Settings {
    /// How long a packet may wait until the transport takes it, as with `SO_SNDTIMEO`; then it is lost. The rest of one that
    /// was begun is sent. A transport's own `send-timeout` comes first.
    pub send_timeout: Duration,
    /// `SO_PRIORITY`, by which the host's own queues sort: 0 to 6, more needs privileges.
    pub priority: Option<u32>,
    /// The differentiated services code point of what is sent (RFC 2474); 46 is expedited forwarding (RFC 3246).
    pub dscp: u8,
    /// Size of socket buffers in bytes (`SO_SNDBUF`, `SO_RCVBUF`), at most 16 MiB; the transport's or the system's if
    /// absent.
    pub buffer: Option<u32>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { send_timeout: Duration::from_millis(40), priority: Some(6), dscp: 46, buffer: None }
    }
}

impl Settings {
    /// Size of both socket buffers.
    pub(crate) fn buffer(&self) -> Option<usize> {
        self.buffer.map(|bytes| bytes as usize)
    }

    /// How packets are marked.
    pub(crate) fn marking(&self) -> Marking {
        Marking { dscp: self.dscp, priority: self.priority }
    }
}

//! Where the time between two musicians goes.

use trunkline_core::Duration;

/// The latency of each stage of a stream, from the first microphone to the last loudspeaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// A block of the capturing device: its first frame waits for its last.
    pub capture: Duration,
    /// Resampling from the capturing device to the stream, and waiting until a block of the stream is full.
    pub block: Duration,
    /// From the capture callback to the network: encoding, packing, handing over.
    pub packet: Duration,
    /// From sender to receiver; `None` while the clocks of the two are not related.
    pub network: Option<Duration>,
    /// Waiting for its turn in the playout buffer.
    pub playout: Duration,
    /// Resampling from the stream to the playing device.
    pub resampling: Duration,
    /// A block of the playing device.
    pub playback: Duration,
}

impl Stages {
    /// All of it that is known.
    pub fn total(&self) -> Duration {
        let network = self.network.unwrap_or(Duration::ZERO);
        self.capture + self.block + self.packet + network + self.playout + self.resampling + self.playback
    }
}

//! Send buffers of datagram sockets: a process whose packets wait for the line is blocked.

use trunkline_core::Packet;
use trunkline_network::host::SendBuffer;

/// What waits for the first link of its path, of the sockets whose host limits that.
#[derive(Default)]
pub(crate) struct Sockets {
    /// By flow of the file.
    buffers: Vec<Option<SendBuffer>>,
    /// By flow id, in bytes; empty if no host limits any.
    waiting: Vec<u64>,
}

impl Sockets {
    /// From now on the sockets of a flow have this buffer; there are so many flow ids.
    pub(crate) fn limit(&mut self, flow: usize, buffer: SendBuffer, ids: usize) {
        self.buffers.resize(self.buffers.len().max(flow + 1), None);
        self.buffers[flow] = Some(buffer);
        self.waiting.resize(ids, 0);
    }

    /// True if any socket has a buffer.
    #[inline]
    pub(crate) fn are_limited(&self) -> bool {
        !self.buffers.is_empty()
    }

    /// Whether the socket with this id takes nothing now.
    pub(crate) fn is_full(&self, flow: usize, id: u32) -> bool {
        self.buffer(flow).is_some_and(|buffer| buffer.is_full(self.waiting[id as usize]))
    }

    /// A packet begins to wait.
    pub(crate) fn enter(&mut self, flow: usize, packet: &Packet) {
        if let Some(buffer) = self.buffer(flow) {
            self.waiting[packet.flow.0 as usize] += buffer.taken_by(packet.size);
        }
    }

    /// A packet does not wait any more: true if its socket was full until now.
    pub(crate) fn leave(&mut self, flow: usize, packet: &Packet) -> bool {
        let Some(buffer) = self.buffer(flow) else { return false };
        let waiting = &mut self.waiting[packet.flow.0 as usize];
        let was_full = buffer.is_full(*waiting);
        *waiting = waiting.saturating_sub(buffer.taken_by(packet.size));
        was_full && !buffer.is_full(*waiting)
    }

    fn buffer(&self, flow: usize) -> Option<SendBuffer> {
        self.buffers.get(flow).copied().flatten()
    }
}

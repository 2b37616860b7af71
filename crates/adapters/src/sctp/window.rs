//! The receive window as the peer knows it.
//!
//! The engine announces its window in acknowledgements only, acknowledges nothing when the application reads, and keeps
//! room beyond the window for what closes a gap. Hence it is watched here which packets it is given when there is no room,
//! and when the peer has to hear that there is some again.

use super::packet;

/// What was announced, and what has happened since.
#[derive(Clone, Debug)]
pub(super) struct Window {
    size: usize,
    announced: usize,
    /// Bytes read since then.
    read: usize,
    /// The last packet with data that the engine was given.
    last_data: Vec<u8>,
    /// The latest TSN that it was given.
    latest: Option<u32>,
    /// What was sent into the closed window last: the peer waits for its acknowledgement before it sends more.
    refused: Vec<u8>,
}

impl Window {
    /// Open, as an association announces it first.
    pub(super) fn new(size: usize) -> Window {
        Window { size, announced: size, read: 0, last_data: Vec::new(), latest: None, refused: Vec::new() }
    }

    /// The peer is told that so much is open.
    pub(super) fn announced(&mut self, window: usize) {
        self.announced = window;
        self.read = 0;
    }

    /// The application has read so many bytes.
    pub(super) fn read(&mut self, bytes: usize) {
        self.read += bytes;
    }

    /// Whether a packet holds nothing but data for which the peer knows that there is no room, which is to be dropped
    /// (RFC 9260 section 6.2). Keeps it.
    pub(super) fn refuses(&mut self, packet: &[u8]) -> bool {
        let (Some((first, _)), Some(latest)) = (packet::tsns(packet), self.latest) else { return false };
        let refuses = self.announced == 0 && packet::is_later(first, latest);
        if refuses {
            self.refused.clear();
            self.refused.extend_from_slice(packet);
        }
        refuses
    }

    /// The engine is given a packet.
    pub(super) fn admit(&mut self, packet: &[u8]) {
        if let Some((_, last)) = packet::tsns(packet) {
            self.last_data.clear();
            self.last_data.extend_from_slice(packet);
            if self.latest.is_none_or(|latest| packet::is_later(last, latest)) {
                self.latest = Some(last);
            }
        }
    }

    /// Whether the peer ought to hear that the window is open again: it was nearly closed, and a good part of it has been
    /// read or nothing is left.
    pub(super) fn has_opened(&self, nothing_left: bool) -> bool {
        self.announced < self.size / 2 && (self.read >= self.size / 4 || nothing_left)
    }

    /// The packet that was refused last, if any, for which there may be room now.
    pub(super) fn take_refused(&mut self) -> Option<Vec<u8>> {
        Some(core::mem::take(&mut self.refused)).filter(|packet| !packet.is_empty())
    }

    /// A packet that the engine has already, and therefore acknowledges at once; empty if there is none.
    pub(super) fn repeated(&self) -> &[u8] {
        &self.last_data
    }
}

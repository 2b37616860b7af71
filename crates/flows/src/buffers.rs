//! Memory of earlier messages, for the next ones.

/// A pool of byte buffers: once it has grown, a message that waits or is answered allocates nothing.
#[derive(Debug)]
pub struct Buffers {
    spare: Vec<Vec<u8>>,
    limit: usize,
}

impl Buffers {
    /// A pool that keeps at most `limit` buffers.
    pub fn new(limit: usize) -> Buffers {
        Buffers { spare: Vec::new(), limit }
    }

    /// An empty buffer.
    #[inline]
    pub fn take(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// A buffer with a copy of these bytes.
    #[inline]
    pub fn copy(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut buffer = self.take();
        buffer.extend_from_slice(bytes);
        buffer
    }

    /// Returns a buffer to the pool.
    #[inline]
    pub fn recycle(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < self.limit {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}

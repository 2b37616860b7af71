//! A split queue of virtio (version 1.2, section 2.7) in the memory of a machine, seen from the device. The machine waits while
//! the device works, so the memory is read and written as the file that it is.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use crate::device::DeviceError;
use crate::vhost::Region;

/// The machine's own limit.
pub(crate) const MAX_ENTRIES: u16 = 256;

const DESCRIPTOR: u64 = 16;
const HAS_NEXT: u16 = 1;
const FOR_DEVICE_TO_WRITE: u16 = 2;
const INDIRECT: u16 = 4;
/// A flag of an available ring: the driver wants no notification.
const NO_NOTIFICATION: u16 = 1;
/// Bytes of a ring before its entries.
const RING: u64 = 4;

/// The memory of a machine.
pub(crate) struct Memory {
    file: File,
    region: Region,
}

impl Memory {
    pub(crate) fn new(file: File, region: Region) -> Memory {
        Memory { file, region }
    }

    /// The place in the file of an address.
    fn place(&self, address: u64, length: usize) -> Result<u64, DeviceError> {
        let offset = address.checked_sub(self.region.address);
        let end = offset.and_then(|offset| offset.checked_add(length as u64));
        let is_short = address.checked_add(length as u64).is_some();
        match (offset, end.filter(|_| is_short)) {
            (Some(offset), Some(end)) if end <= self.region.size => self.region.offset.checked_add(offset),
            _ => None,
        }
        .ok_or_else(|| damaged("it does not lie in the machine's memory"))
    }

    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let place = self.place(address, bytes.len())?;
        self.file.read_exact_at(bytes, place).map_err(damaged)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let place = self.place(address, bytes.len())?;
        self.file.write_all_at(bytes, place).map_err(damaged)
    }

    fn u16(&self, address: u64) -> Result<u16, DeviceError> {
        let mut bytes = [0; 2];
        self.read(address, &mut bytes)?;
        Ok(u16::from_le_bytes(bytes))
    }
}

/// A part of a buffer.
#[derive(Clone, Copy, Debug)]
struct Part {
    address: u64,
    length: usize,
    is_writable: bool,
}

/// A buffer that the driver has made available.
#[derive(Debug)]
pub(crate) struct Buffer {
    head: u16,
    parts: Vec<Part>,
}

impl Buffer {
    fn parts(&self, writable: bool) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(move |part| part.is_writable == writable)
    }

    /// Bytes that the device can read.
    pub(crate) fn readable(&self) -> u64 {
        self.parts(false).map(|part| part.length as u64).sum()
    }

    /// Bytes that the device can write.
    pub(crate) fn writable(&self) -> u64 {
        self.parts(true).map(|part| part.length as u64).sum()
    }

    /// All that the device can read.
    pub(crate) fn read(&self, memory: &Memory) -> Result<Vec<u8>, DeviceError> {
        let mut bytes = Vec::with_capacity(self.readable() as usize);
        for part in self.parts(false) {
            let from = bytes.len();
            bytes.resize(from + part.length, 0);
            memory.read(part.address, &mut bytes[from..])?;
        }
        Ok(bytes)
    }

    /// Writes from the beginning, as far as there is room.
    pub(crate) fn write(&self, memory: &Memory, mut bytes: &[u8]) -> Result<(), DeviceError> {
        for part in self.parts(true) {
            let (now, rest) = bytes.split_at(part.length.min(bytes.len()));
            memory.write(part.address, now)?;
            bytes = rest;
        }
        Ok(())
    }
}

/// A queue.
#[derive(Default)]
pub(crate) struct Queue {
    size: u16,
    descriptors: u64,
    used: u64,
    available: u64,
    /// The next entries of the two rings, counted through.
    next_available: u16,
    next_used: u16,
    /// Used entries of which the driver knows.
    announced: u16,
    has_event_index: bool,
    is_ready: bool,
}

impl Queue {
    pub(crate) fn set_event_index(&mut self, on: bool) {
        self.has_event_index = on;
    }

    pub(crate) fn set_size(&mut self, size: u32) -> Result<(), DeviceError> {
        let valid = |size: &u16| size.is_power_of_two() && *size <= MAX_ENTRIES;
        self.size = u16::try_from(size).ok().filter(valid).ok_or_else(|| damaged(format!("size {size}")))?;
        self.is_ready = false;
        Ok(())
    }

    pub(crate) fn set_base(&mut self, base: u32) -> Result<(), DeviceError> {
        let base = u16::try_from(base).map_err(damaged)?;
        (self.next_available, self.next_used, self.announced) = (base, base, base);
        Ok(())
    }

    /// The addresses of the descriptors, of the used and of the available ring.
    pub(crate) fn set_rings(&mut self, [descriptors, used, available]: [u64; 3]) {
        (self.descriptors, self.used, self.available) = (descriptors, used, available);
        self.is_ready = false;
    }

    /// Lets the queue work, if it lies in the memory; without memory it stays off.
    pub(crate) fn set_ready(&mut self, ready: bool, memory: Option<&Memory>) -> Result<(), DeviceError> {
        if let Some(memory) = memory.filter(|_| ready) {
            let size = usize::from(self.size);
            let rings =
                [(self.descriptors, 16 * size), (self.used, 6 + 8 * size), (self.available, 6 + 2 * size)];
            for (address, length) in rings {
                memory.place(address, length)?;
            }
        }
        self.is_ready = ready && self.size > 0 && memory.is_some();
        Ok(())
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// The next buffer of the driver.
    pub(crate) fn pop(&mut self, memory: &Memory) -> Result<Option<Buffer>, DeviceError> {
        let waiting = memory.u16(self.available + 2)?.wrapping_sub(self.next_available);
        if waiting == 0 {
            return Ok(None);
        }
        if waiting > self.size {
            return Err(damaged(format!("{waiting} buffers in {} places", self.size)));
        }
        let head = memory.u16(self.available + RING + 2 * self.place(self.next_available))?;
        self.next_available = self.next_available.wrapping_add(1);
        let (mut parts, mut number) = (Vec::new(), head);
        loop {
            if number >= self.size || parts.len() >= usize::from(self.size) {
                return Err(damaged("a chain of buffers without end"));
            }
            let mut descriptor = [0; DESCRIPTOR as usize];
            memory.read(self.descriptors + DESCRIPTOR * u64::from(number), &mut descriptor)?;
            let [a0, a1, a2, a3, a4, a5, a6, a7, l0, l1, l2, l3, f0, f1, n0, n1] = descriptor;
            let flags = u16::from_le_bytes([f0, f1]);
            if flags & INDIRECT != 0 {
                return Err(damaged("an indirect descriptor, a feature that the device did not offer"));
            }
            let address = u64::from_le_bytes([a0, a1, a2, a3, a4, a5, a6, a7]);
            let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
            memory.place(address, length)?;
            parts.push(Part { address, length, is_writable: flags & FOR_DEVICE_TO_WRITE != 0 });
            if flags & HAS_NEXT == 0 {
                return Ok(Some(Buffer { head, parts }));
            }
            number = u16::from_le_bytes([n0, n1]);
        }
    }

    /// Gives a buffer back, with this many bytes written into it.
    pub(crate) fn give_back(
        &mut self,
        memory: &Memory,
        buffer: &Buffer,
        written: u32,
    ) -> Result<(), DeviceError> {
        let mut entry = [0; 8];
        entry[..4].copy_from_slice(&u32::from(buffer.head).to_le_bytes());
        entry[4..].copy_from_slice(&written.to_le_bytes());
        memory.write(self.used + RING + 8 * self.place(self.next_used), &entry)?;
        self.next_used = self.next_used.wrapping_add(1);
        memory.write(self.used + 2, &self.next_used.to_le_bytes())
    }

    /// Asks the driver for a notification with its next buffer.
    pub(crate) fn expect_more(&self, memory: &Memory) -> Result<(), DeviceError> {
        match self.has_event_index {
            true => {
                memory.write(self.used + RING + 8 * u64::from(self.size), &self.next_available.to_le_bytes())
            }
            false => Ok(()),
        }
    }

    /// True if the driver wants to know of what has been used since the last call.
    pub(crate) fn is_wanted(&mut self, memory: &Memory) -> Result<bool, DeviceError> {
        let new = self.next_used.wrapping_sub(std::mem::replace(&mut self.announced, self.next_used));
        if !self.has_event_index {
            return Ok(memory.u16(self.available)? & NO_NOTIFICATION == 0);
        }
        // Whether the entry that it names is among the new ones.
        let event = memory.u16(self.available + RING + 2 * u64::from(self.size))?;
        Ok(self.next_used.wrapping_sub(event).wrapping_sub(1) < new)
    }

    /// The place in a ring of an entry that was counted through.
    fn place(&self, entry: u16) -> u64 {
        u64::from(entry & (self.size - 1))
    }
}

fn damaged(why: impl std::fmt::Display) -> DeviceError {
    DeviceError::Queue(why.to_string())
}

//! A virtio network device: the queues in the memory of its machine, and the frames in them.

use std::fs::File;

use crate::queue::{Memory, Queue};
use crate::vhost::{self, Malformed, Region, Request};

/// Bytes before every frame in a queue: nothing is left to the device, so that it is zero but for the number of buffers.
const PREFIX: usize = 12;
const ETHERNET: usize = 14;
/// The largest frame.
const MAX_FRAME: usize = ETHERNET + 65_535;

const MTU: u64 = 1 << 3;
const MAC: u64 = 1 << 5;
const EVENT_INDEX: u64 = 1 << 29;
const VERSION_1: u64 = 1 << 32;
/// Features of the device. Checksums and segmentation are the kernel's own work: the links carry whole packets.
const FEATURES: u64 = MTU | MAC | EVENT_INDEX | VERSION_1 | vhost::PROTOCOL_FEATURES;

/// The queue of frames to the machine, and that of frames from it.
const RECEIVE: usize = 0;
const TRANSMIT: usize = 1;

/// Why a device ends.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// A message makes no sense.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The queues or what they name do not lie in the machine's memory.
    #[error("a queue of the network device is damaged: {0}")]
    Queue(String),
    /// The memory that the machine shares.
    #[error("the machine's memory cannot be shared: {0}")]
    Memory(String),
    /// A queue that the device has not.
    #[error("the network device has no queue {0}")]
    NoQueue(u32),
}

/// The results of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The answer of the request itself.
    pub reply: Option<Vec<u8>>,
    /// The queue of which the machine wants to know that something was used, before the answer.
    pub call: Option<u32>,
}

/// A network device.
pub struct Device {
    mac: [u8; 6],
    mtu: u16,
    memory: Option<Memory>,
    queues: [Queue; 2],
    /// Frames that the machine has sent, with their Ethernet header.
    sent: Vec<Vec<u8>>,
}

impl Device {
    /// A device with this address, for packets of up to `mtu` bytes.
    pub fn new(mac: [u8; 6], mtu: u16) -> Device {
        Device { mac, mtu, memory: None, queues: Default::default(), sent: Vec::new() }
    }

    /// Does what a request asks for; `file` came with it.
    ///
    /// # Errors
    /// If it cannot be done.
    pub fn handle(&mut self, request: Request, file: Option<File>) -> Result<Answer, DeviceError> {
        let mut answer = Answer::default();
        let number = |number: u64| Some(number.to_ne_bytes().to_vec());
        match request {
            Request::GetFeatures => answer.reply = number(FEATURES),
            Request::GetProtocolFeatures => answer.reply = number(vhost::PROTOCOL),
            Request::SetFeatures(features) => {
                for queue in &mut self.queues {
                    queue.set_event_index(features & EVENT_INDEX != 0);
                }
            }
            Request::SetMemory(regions) => self.memory = Some(map(&regions, file)?),
            Request::SetSize(queue, size) => self.queue(queue)?.set_size(size)?,
            Request::SetBase(queue, base) => self.queue(queue)?.set_base(base)?,
            Request::SetAddress { queue, rings } => self.queue(queue)?.set_rings(rings),
            Request::SetEnabled(queue, enabled) => {
                self.queue(queue)?;
                self.queues[queue as usize].set_ready(enabled, self.memory.as_ref())?;
            }
            Request::GetConfiguration(size) => answer.reply = Some(self.configuration(size)),
            Request::Kick(queue) => {
                self.queue(queue)?;
                if queue as usize == TRANSMIT && self.transmit()? {
                    answer.call = Some(queue);
                }
            }
            // The file is the caller's.
            Request::SetOwner | Request::SetProtocolFeatures(_) | Request::SetChannel => {}
        }
        Ok(answer)
    }

    /// The next frame that the machine has sent.
    pub fn sent(&mut self) -> std::vec::Drain<'_, Vec<u8>> {
        self.sent.drain(..)
    }

    /// Gives the machine a frame: the Ethernet header and the packet. Returns the queue of which it wants to know. It is lost
    /// if the machine has no buffer for it, as with any interface.
    ///
    /// # Errors
    /// If the queue is damaged.
    pub fn receive(&mut self, header: &[u8; ETHERNET], packet: &[u8]) -> Result<Option<u32>, DeviceError> {
        let queue = &mut self.queues[RECEIVE];
        let Some(memory) = self.memory.as_ref().filter(|_| queue.is_ready()) else { return Ok(None) };
        let Some(buffer) = queue.pop(memory)? else { return Ok(None) };
        let mut bytes = vec![0; PREFIX];
        // One buffer.
        bytes[10..].copy_from_slice(&1u16.to_le_bytes());
        bytes.extend_from_slice(header);
        bytes.extend_from_slice(packet);
        let fits = buffer.writable() >= bytes.len() as u64;
        if fits {
            buffer.write(memory, &bytes)?;
        }
        queue.give_back(memory, &buffer, if fits { bytes.len() as u32 } else { 0 })?;
        Ok(queue.is_wanted(memory)?.then_some(RECEIVE as u32))
    }

    /// Takes all frames from the queue; true if the machine wants to know.
    fn transmit(&mut self) -> Result<bool, DeviceError> {
        let queue = &mut self.queues[TRANSMIT];
        let Some(memory) = self.memory.as_ref().filter(|_| queue.is_ready()) else { return Ok(false) };
        while let Some(buffer) = queue.pop(memory)? {
            if ((PREFIX + ETHERNET) as u64..=(PREFIX + MAX_FRAME) as u64).contains(&buffer.readable()) {
                let mut frame = buffer.read(memory)?;
                frame.drain(..PREFIX);
                self.sent.push(frame);
            }
            queue.give_back(memory, &buffer, 0)?;
        }
        queue.expect_more(memory)?;
        queue.is_wanted(memory)
    }

    fn queue(&mut self, queue: u32) -> Result<&mut Queue, DeviceError> {
        self.queues.get_mut(queue as usize).ok_or(DeviceError::NoQueue(queue))
    }

    /// The configuration as the driver reads it: 12 bytes about what it asks for, then as much of the configuration.
    fn configuration(&self, size: usize) -> Vec<u8> {
        let mut configuration = self.mac.to_vec();
        // Its status, which it has no feature to change, and one pair of queues.
        configuration.extend([0, 0, 1, 0]);
        configuration.extend(self.mtu.to_le_bytes());
        configuration.resize(size, 0);
        let head = [0, size as u32, 0];
        head.iter().flat_map(|word| word.to_ne_bytes()).chain(configuration).collect()
    }
}

fn map(regions: &[Region], file: Option<File>) -> Result<Memory, DeviceError> {
    match (regions, file) {
        ([region], Some(file)) => Ok(Memory::new(file, *region)),
        _ => {
            let message = format!("{} memory regions; expected one, with its file", regions.len());
            Err(DeviceError::Memory(message))
        }
    }
}

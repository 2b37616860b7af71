//! The messages of vhost-user by which a User-Mode Linux speaks with a virtio device (`arch/um/drivers/vhost_user.h`, and the
//! specification in QEMU's `docs/interop/vhost-user.rst`).

/// Bytes of a message's header.
pub const HEADER: usize = 12;
/// The longest payload that a driver of a network device sends.
pub const MAX_PAYLOAD: usize = 4096;

const VERSION: u32 = 1;
const IS_REPLY: u32 = 1 << 2;
const NEEDS_REPLY: u32 = 1 << 3;

/// Feature bit: there are features of the protocol.
pub const PROTOCOL_FEATURES: u64 = 1 << 30;
/// Feature bits of the protocol: requests are answered, the device has a channel of its own, the device has a configuration,
/// and notifications are messages.
pub const PROTOCOL: u64 = 1 << 3 | 1 << 5 | 1 << 9 | 1 << 14;

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The number of the request.
    pub request: u32,
    /// True if it wants an answer even if the request by itself has no answer.
    pub needs_reply: bool,
    /// Bytes of its payload.
    pub size: usize,
}

/// A message that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Another version.
    #[error("version {0} of vhost-user")]
    Version(u32),
    /// Too long.
    #[error("a vhost-user message of {0} bytes")]
    Long(u32),
    /// The payload is shorter than its request needs.
    #[error("{bytes} bytes in vhost-user request {request}")]
    Short {
        /// The request.
        request: u32,
        /// The bytes of its payload.
        bytes: usize,
    },
    /// Not known.
    #[error("vhost-user request {0} is unknown")]
    Request(u32),
}

/// A request of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// It asks for the features of the device.
    GetFeatures,
    /// It has chosen these.
    SetFeatures(u64),
    /// It asks for the features of the protocol.
    GetProtocolFeatures,
    /// It has chosen these.
    SetProtocolFeatures(u64),
    /// It owns the device.
    SetOwner,
    /// The memory of the machine.
    SetMemory(Vec<Region>),
    /// The size of a queue.
    SetSize(u32, u32),
    /// The first entry of a queue.
    SetBase(u32, u32),
    /// The place of a queue.
    SetAddress {
        /// Which queue.
        queue: u32,
        /// The addresses of its descriptors, its used and its available ring.
        rings: [u64; 3],
    },
    /// Switches a queue on or off.
    SetEnabled(u32, bool),
    /// The channel of the device's own messages, whose descriptor comes with this one.
    SetChannel,
    /// It asks for the configuration of the device, up to this many bytes.
    GetConfiguration(usize),
    /// There is something in a queue.
    Kick(u32),
}

/// A part of the machine's memory, as its file comes with the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its first address in the machine.
    pub address: u64,
    /// Its length in bytes.
    pub size: u64,
    /// Its offset in the file.
    pub offset: u64,
}

const VRING_CALL: u32 = 4;

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// If it is of another version or too long.
    pub fn read(bytes: &[u8; HEADER]) -> Result<Header, Malformed> {
        let word = |at| u32_at(bytes, at);
        let (flags, size) = (word(4), word(8));
        if flags & 3 != VERSION {
            return Err(Malformed::Version(flags & 3));
        }
        match usize::try_from(size) {
            Ok(size) if size <= MAX_PAYLOAD => {
                Ok(Header { request: word(0), needs_reply: flags & NEEDS_REPLY != 0, size })
            }
            _ => Err(Malformed::Long(size)),
        }
    }

    /// The answer to a request with this header.
    pub fn reply(&self, payload: &[u8]) -> Vec<u8> {
        message(self.request, VERSION | IS_REPLY, payload)
    }
}

/// The message of a device that it has used something in a queue; the driver answers it.
pub fn call(queue: u32) -> Vec<u8> {
    let mut payload = [0; 8];
    payload[..4].copy_from_slice(&queue.to_ne_bytes());
    message(VRING_CALL, VERSION | NEEDS_REPLY, &payload)
}

impl Request {
    /// Reads the request of a message with this header.
    ///
    /// # Errors
    /// If it is not known or too short.
    pub fn read(header: &Header, payload: &[u8]) -> Result<Request, Malformed> {
        let needs = |bytes: usize| match payload.len() < bytes {
            true => Err(Malformed::Short { request: header.request, bytes: payload.len() }),
            false => Ok(()),
        };
        let number = || needs(8).map(|()| u64_at(payload, 0));
        let state = || needs(8).map(|()| (u32_at(payload, 0), u32_at(payload, 4)));
        Ok(match header.request {
            1 => Request::GetFeatures,
            2 => Request::SetFeatures(number()?),
            3 => Request::SetOwner,
            5 => {
                needs(8)?;
                let count = u32_at(payload, 0) as usize;
                let (regions, _) = payload[8..].as_chunks::<32>();
                if regions.len() < count {
                    return Err(Malformed::Short { request: header.request, bytes: payload.len() });
                }
                let region = |region: &[u8; 32]| Region {
                    address: u64_at(region, 0),
                    size: u64_at(region, 8),
                    offset: u64_at(region, 24),
                };
                Request::SetMemory(regions[..count].iter().map(region).collect())
            }
            8 => state().map(|(queue, size)| Request::SetSize(queue, size))?,
            9 => {
                needs(40)?;
                let ring = |place: usize| u64_at(payload, 8 + 8 * place);
                Request::SetAddress { queue: u32_at(payload, 0), rings: [ring(0), ring(1), ring(2)] }
            }
            10 => state().map(|(queue, base)| Request::SetBase(queue, base))?,
            15 => Request::GetProtocolFeatures,
            16 => Request::SetProtocolFeatures(number()?),
            18 => state().map(|(queue, enabled)| Request::SetEnabled(queue, enabled != 0))?,
            21 => Request::SetChannel,
            24 => {
                needs(12)?;
                Request::GetConfiguration(payload.len() - 12)
            }
            35 => state().map(|(queue, _)| Request::Kick(queue))?,
            unknown => return Err(Malformed::Request(unknown)),
        })
    }
}

fn message(request: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let words = [request, flags, payload.len() as u32];
    words.iter().flat_map(|word| word.to_ne_bytes()).chain(payload.iter().copied()).collect()
}

/// The number at a place that is there.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(number)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(number)
}

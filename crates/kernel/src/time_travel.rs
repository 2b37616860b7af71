//! The time-travel protocol between a User-Mode Linux and the program that owns its clock
//! (`include/uapi/linux/um_timetravel.h`): fixed messages over a stream socket, each answered by an acknowledgement.

/// Bytes of a message.
pub const LENGTH: usize = 16;

/// A message, in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its operation.
    pub operation: Operation,
    /// Its number, which the acknowledgement repeats.
    pub number: u32,
    /// A time in nanoseconds; its meaning depends on the operation.
    pub time: u64,
}

/// The operation of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Answers any other message; carries a time if that one asked for it.
    Acknowledge,
    /// From the kernel: it has connected.
    Start,
    /// From the kernel: it wants to run at this time, and no longer at the one it asked for before.
    Request,
    /// From the kernel: it waits until it may run.
    Wait,
    /// From the kernel: it asks for the time of the simulation.
    Get,
    /// From the kernel: it has come to this time.
    Update,
    /// To the kernel: it runs from now on, at this time.
    Run,
    /// To the kernel: it may run until this time without asking.
    FreeUntil,
    /// From the kernel: it asks for the time of day.
    GetTimeOfDay,
}

const OPERATIONS: [Operation; 9] = [
    Operation::Acknowledge,
    Operation::Start,
    Operation::Request,
    Operation::Wait,
    Operation::Get,
    Operation::Update,
    Operation::Run,
    Operation::FreeUntil,
    Operation::GetTimeOfDay,
];

impl Message {
    /// Reads a message; an unknown operation comes back as its number.
    ///
    /// # Errors
    /// If there is no such operation.
    pub fn read(bytes: &[u8; LENGTH]) -> Result<Message, u32> {
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let code = word(0);
        let operation = usize::try_from(code).ok().and_then(|code| OPERATIONS.get(code)).ok_or(code)?;
        let mut time = [0; 8];
        time.copy_from_slice(&bytes[8..]);
        Ok(Message { operation: *operation, number: word(4), time: u64::from_ne_bytes(time) })
    }

    /// The bytes of this message.
    pub fn bytes(&self) -> [u8; LENGTH] {
        let code = OPERATIONS.iter().position(|known| *known == self.operation).unwrap_or_default() as u32;
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&code.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.number.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.time.to_ne_bytes());
        bytes
    }

    /// The answer to this message.
    pub fn acknowledge(&self, time: u64) -> Message {
        Message { operation: Operation::Acknowledge, number: self.number, time }
    }
}

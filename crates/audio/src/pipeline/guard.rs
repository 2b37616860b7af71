//! Redundancy around packets, or around the pieces of them.

use super::Protection;
use super::stream::Layout;
use crate::fec::{
    BlockDecoder, BlockEncoder, Code, CodeError, Delivered, PacketError, RepeatDecoder, Repeater,
};

/// Protects what is sent.
pub(super) enum Guard {
    None,
    Repeat(Repeater, Vec<u8>),
    Block(BlockEncoder),
}

impl Guard {
    pub(super) fn new(protection: Protection, layout: Layout) -> Result<Guard, CodeError> {
        let most = layout.room;
        Ok(match protection {
            Protection::None => Guard::None,
            Protection::Repeat(repeats) => {
                let bytes = Repeater::FIXED + (repeats + 1) * (2 + most);
                Guard::Repeat(Repeater::new(repeats, most, 0)?, Vec::with_capacity(bytes))
            }
            Protection::Xor { data } => Guard::Block(BlockEncoder::new(Code::Xor { data }, most, 0)?),
            Protection::ReedSolomon { data, parity } => {
                Guard::Block(BlockEncoder::new(Code::ReedSolomon { data, parity }, most, 0)?)
            }
        })
    }

    pub(super) fn send(&mut self, bytes: &[u8], emit: &mut dyn FnMut(&[u8])) {
        // Never too long: the layout made it to fit.
        match self {
            Guard::None => emit(bytes),
            Guard::Repeat(repeater, packet) => {
                if repeater.encode(bytes, packet).is_ok() {
                    emit(packet);
                }
            }
            Guard::Block(encoder) => {
                let _ = encoder.encode(bytes, emit);
            }
        }
    }
}

/// Undoes what a [`Guard`] did.
pub(super) enum Unguard {
    None,
    Repeat(RepeatDecoder),
    Block(Box<BlockDecoder>),
    /// For pieces, which are worth something in order only.
    OrderedBlock(Box<BlockDecoder>, Order),
}

impl Unguard {
    pub(super) fn new(protection: Protection, layout: Layout) -> Result<Unguard, CodeError> {
        let block = |code| {
            let decoder = Box::new(BlockDecoder::new(code, layout.room)?);
            Ok(match layout.pieces {
                None => Unguard::Block(decoder),
                Some(size) => Unguard::OrderedBlock(decoder, Order::new(code.data(), size)),
            })
        };
        match protection {
            Protection::None => Ok(Unguard::None),
            Protection::Repeat(_) => Ok(Unguard::Repeat(RepeatDecoder::new())),
            Protection::Xor { data } => block(Code::Xor { data }),
            Protection::ReedSolomon { data, parity } => block(Code::ReedSolomon { data, parity }),
        }
    }

    pub(super) fn receive(
        &mut self,
        packet: &[u8],
        mut deliver: impl FnMut(Delivered<'_>),
    ) -> Result<(), PacketError> {
        match self {
            Unguard::None => {
                deliver(Delivered { sequence: 0, payload: packet, recovered: false });
                Ok(())
            }
            Unguard::Repeat(decoder) => decoder.decode(packet, deliver),
            Unguard::Block(decoder) => decoder.decode(packet, deliver),
            Unguard::OrderedBlock(decoder, order) => {
                decoder.decode(packet, |delivered| order.take(delivered, &mut deliver))
            }
        }
    }
}

/// Puts the payloads of groups back in order: what follows a missing one waits until that is recovered, or until the next
/// group begins.
pub(super) struct Order {
    /// The group that is coming in; groups are numbered too.
    group: Option<u32>,
    /// The next payload of it to hand over.
    next: usize,
    /// The payloads of it that wait, each with whether it was recovered.
    held: Vec<(Option<bool>, Vec<u8>)>,
}

/// Groups further behind than a decoder holds are of a sender that starts again.
const BEHIND: u32 = 8;

impl Order {
    fn new(data: usize, most: usize) -> Order {
        Order { group: None, next: 0, held: (0..data).map(|_| (None, Vec::with_capacity(most))).collect() }
    }

    fn take(&mut self, delivered: Delivered<'_>, deliver: &mut impl FnMut(Delivered<'_>)) {
        let data = self.held.len() as u32;
        let (group, index) = (delivered.sequence / data, (delivered.sequence % data) as usize);
        match self.group.replace(group) {
            // It begins wherever we join.
            None => self.next = index,
            Some(current) if current == group => {}
            Some(current) if (1..=BEHIND).contains(&current.wrapping_sub(group)) => {
                self.group = Some(current);
                return;
            }
            Some(current) => {
                self.release(current, deliver, |_| true);
                self.next = 0;
            }
        }
        if index < self.next {
            return;
        }
        let (recovered, payload) = &mut self.held[index];
        *recovered = Some(delivered.recovered);
        payload.clear();
        payload.extend_from_slice(delivered.payload);
        self.release(group, deliver, |is_there| is_there);
    }

    /// Hands over what waits, while the next place `passes`, which is told whether anything is there.
    fn release(&mut self, group: u32, deliver: &mut impl FnMut(Delivered<'_>), passes: fn(bool) -> bool) {
        let first = group.wrapping_mul(self.held.len() as u32);
        while let Some((recovered, payload)) = self.held.get_mut(self.next) {
            if !passes(recovered.is_some()) {
                break;
            }
            if let Some(recovered) = recovered.take() {
                deliver(Delivered { sequence: first.wrapping_add(self.next as u32), payload, recovered });
            }
            self.next += 1;
        }
    }
}

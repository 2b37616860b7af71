//! Messages of agents and controllers in frames. What there is much of is not JSON: observations.

use trunkline_peer::clock::{TimeReply, TimeRequest};
use trunkline_peer::wire::{Frame, Message, WireError, from_json, malformed, require, sized, tag, to_json};

use crate::message::{Chunk, FromAgent, ToAgent};
use crate::part::PartId;

impl Message for ToAgent {
    fn to_frame(&self) -> Result<Frame, WireError> {
        match self {
            ToAgent::Time(request) => request.to_frame(),
            said => to_json(tag::MESSAGE, "message", said),
        }
    }
    fn from_frame(frame: Frame) -> Result<ToAgent, WireError> {
        match frame.tag {
            tag::TIME_REQUEST => TimeRequest::from_frame(frame).map(ToAgent::Time),
            _ => from_json(&frame, tag::MESSAGE, "a message"),
        }
    }
}

impl Message for FromAgent {
    fn to_frame(&self) -> Result<Frame, WireError> {
        match self {
            FromAgent::Chunk(chunk) => chunk.to_frame(),
            FromAgent::Time(reply) => reply.to_frame(),
            said => to_json(tag::MESSAGE, "message", said),
        }
    }
    fn from_frame(frame: Frame) -> Result<FromAgent, WireError> {
        match frame.tag {
            tag::CHUNK => Chunk::from_frame(frame).map(FromAgent::Chunk),
            tag::TIME_REPLY => TimeReply::from_frame(frame).map(FromAgent::Time),
            _ => from_json(&frame, tag::MESSAGE, "a message"),
        }
    }
}

/// ```text
/// u8 length of the run's key | key | u32 point | u32 repetition | u16 pair | u32 attempt | u64 number | observations
/// ```
/// All big-endian.
impl Message for Chunk {
    fn to_frame(&self) -> Result<Frame, WireError> {
        let PartId { run, point, repetition, pair, attempt } = &self.part;
        let length = u8::try_from(run.len())
            .map_err(|_| malformed("chunk", "the run's key has more than 255 characters"))?;
        let mut body = Vec::with_capacity(1 + run.len() + CHUNK_NUMBERS + self.data.len());
        body.push(length);
        body.extend_from_slice(run.as_bytes());
        body.extend_from_slice(&point.to_be_bytes());
        body.extend_from_slice(&repetition.to_be_bytes());
        body.extend_from_slice(&pair.to_be_bytes());
        body.extend_from_slice(&attempt.to_be_bytes());
        body.extend_from_slice(&self.number.to_be_bytes());
        body.extend_from_slice(&self.data);
        sized(Frame { tag: tag::CHUNK, body })
    }

    fn from_frame(mut frame: Frame) -> Result<Chunk, WireError> {
        require(&frame, tag::CHUNK, "a chunk")?;
        let mut rest = frame.body.as_slice();
        let [length] = take(&mut rest)?;
        let key = rest.split_off(..usize::from(length)).ok_or_else(short)?;
        let run = str::from_utf8(key)
            .map_err(|_| malformed("chunk", "the run's key is not valid UTF-8"))?
            .to_owned();
        let part = PartId {
            run,
            point: u32::from_be_bytes(take(&mut rest)?),
            repetition: u32::from_be_bytes(take(&mut rest)?),
            pair: u16::from_be_bytes(take(&mut rest)?),
            attempt: u32::from_be_bytes(take(&mut rest)?),
        };
        let number = u64::from_be_bytes(take(&mut rest)?);
        let observations = frame.body.len() - rest.len();
        // What is left is most of it: it is moved, not copied twice.
        frame.body.drain(..observations);
        Ok(Chunk { part, number, data: frame.body })
    }
}

/// The numbers in front of the observations.
const CHUNK_NUMBERS: usize = 4 + 4 + 2 + 4 + 8;

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], WireError> {
    let (first, others) = rest.split_first_chunk().ok_or_else(short)?;
    *rest = others;
    Ok(*first)
}

fn short() -> WireError {
    malformed("chunk", "it ends early")
}

/// For fuzzing: any bytes are frames or refused, and what is read is read again after it was written.
pub(crate) fn fuzz_frames_of_agents(data: &[u8]) {
    use trunkline_peer::fuzz::{again, fuzz_frames};
    fuzz_frames(data, |frame| {
        again::<ToAgent>(frame);
        again::<FromAgent>(frame);
        again::<Chunk>(frame);
    });
}

#[cfg(test)]
mod tests;

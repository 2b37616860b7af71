//! Checks that hold for any received bytes.

use crate::clock::{TimeReply, TimeRequest};
use crate::message::{Enrolment, Hello, Reply, Welcome};
use crate::wire::{Deframer, Frame, MAX_FRAME, Message};

/// Any bytes are frames or refused. Each frame is given to `check`.
pub fn fuzz_frames(data: &[u8], mut check: impl FnMut(&Frame)) {
    let limit = MAX_FRAME.min(data.len().saturating_mul(2));
    let (mut deframer, mut rest) = (Deframer::new(limit), data);
    while !rest.is_empty() {
        let space = deframer.space();
        let length = space.len().min(rest.len());
        assert!(0 < length && space.len() <= Deframer::STEP);
        let (now, later) = rest.split_at(length);
        space[..length].copy_from_slice(now);
        rest = later;
        match deframer.advance(length) {
            Ok(Some(frame)) => {
                assert!(frame.body.len() < limit);
                again::<Hello>(&frame);
                again::<Welcome>(&frame);
                again::<Enrolment>(&frame);
                again::<Reply>(&frame);
                again::<TimeRequest>(&frame);
                again::<TimeReply>(&frame);
                check(&frame);
            }
            Ok(None) => {}
            Err(error) => {
                assert!(!error.to_string().contains('\n'), "{error}");
                return;
            }
        }
    }
}

/// A message that is read from a frame is read again after it was written.
pub fn again<M: Message + PartialEq + core::fmt::Debug>(frame: &Frame) {
    if let Ok(said) = M::from_frame(frame.clone()) {
        let frame = said.to_frame().expect("it came in a frame");
        assert_eq!(M::from_frame(frame).as_ref(), Ok(&said));
    }
}

//! A controller's connection: what it asks for, and what it is told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use trunkline_control::clock::TimeReply;
use trunkline_control::message::ToAgent;
use trunkline_control::{
    Connection, Fingerprint, FrameWriter, FromAgent, Held, PartId, PeerError, Refusal, RefusalKind, Share,
};
use trunkline_core::Time;
use trunkline_metrics::clocks::Turning;

use super::connected::Controller;
use super::near::Taken;
use super::parts::End as Side;
use super::{Daemon, far, near, status, stream};
use crate::memory;
use crate::spool::PartSpool;

/// Does what a controller says, until it says no more.
pub(super) fn serve(
    daemon: &Arc<Daemon>,
    connection: Connection,
    controller: &Controller,
) -> Result<(), PeerError> {
    let (mut reader, writer) = connection.split();
    let share = daemon.memory.share(controller.fingerprint);
    reader.trust_within(share.clone());
    let mut session = Session { daemon, controller, share, writer, attached: BTreeMap::new() };
    loop {
        match reader.receive_held::<ToAgent>() {
            Ok(Some((said, held))) => session.hear(said, held)?,
            Ok(None) => return Ok(()),
            Err(PeerError::Memory { reason, .. }) => session.refuse_for_memory(&reason)?,
            Err(error) => return Err(error),
        }
    }
}

struct Session<'s> {
    daemon: &'s Arc<Daemon>,
    controller: &'s Controller,
    /// Memory for this controller.
    share: Share,
    writer: FrameWriter,
    /// Ends the streams of this session.
    attached: BTreeMap<PartId, Arc<AtomicBool>>,
}

impl Session<'_> {
    /// A message was skipped because there is no memory for it.
    fn refuse_for_memory(&self, reason: &str) -> Result<(), PeerError> {
        let why = format!("{} sent {reason}", self.controller.name);
        self.daemon.notices.log(&why);
        self.writer.send(&FromAgent::Refused { part: None, refusal: Refusal::new(RefusalKind::Limit, why) })
    }

    /// `held` is the memory that the message takes.
    fn hear(&mut self, said: ToAgent, held: Option<Held>) -> Result<(), PeerError> {
        let received = Time::from_nanos(trunkline_io::clock::raw_now());
        let part = about(&said).cloned();
        match self.answer(said, held, received) {
            Ok(Some(answer)) => self.writer.send(&answer),
            Ok(None) => Ok(()),
            Err(refusal) => self.writer.send(&FromAgent::Refused { part, refusal }),
        }
    }

    fn answer(
        &mut self,
        said: ToAgent,
        held: Option<Held>,
        received: Time,
    ) -> Result<Option<FromAgent>, Refusal> {
        let daemon = self.daemon;
        Ok(match said {
            ToAgent::Time(request) => {
                let reply = request.reply(received, Turning::of(trunkline_io::clock::IS_FREE));
                let replied = Time::from_nanos(trunkline_io::clock::raw_now());
                Some(FromAgent::Time(TimeReply { replied, ..reply }))
            }
            ToAgent::Facts => Some(FromAgent::Facts(Box::new(status::facts(daemon, self.controller)))),
            ToAgent::Status => Some(FromAgent::Status(Box::new(status::status(daemon, self.controller)))),
            ToAgent::Discard { part } if self.controller.is_owner => {
                self.discard(&part, daemon.spool.find(&part))?;
                Some(FromAgent::Discarded { part })
            }
            _ if self.controller.is_owner => {
                let why = "the agent's own key can only show the status and delete stored results; enrol a \
                    controller";
                return Err(Refusal::new(RefusalKind::Permission, why));
            }
            ToAgent::Offer(_) | ToAgent::Prepare(_) if daemon.is_stopping() => {
                let why = format!("the agent on {} is being stopped", daemon.config.name);
                return Err(Refusal::new(RefusalKind::Stopping, why));
            }
            ToAgent::Offer(offer) => {
                let part = offer.part.clone();
                let token = far::offer(daemon, self.controller, &self.share, offer)?;
                Some(FromAgent::Offered { part, token, port: daemon.port })
            }
            ToAgent::Prepare(prepare) => {
                let judging = self.share.take(memory::of_judging(&prepare));
                let judging = judging.map_err(|error| {
                    memory::refused(&daemon.config.name, "the reading of the experiment", &error)
                })?;
                let taken = Taken { judging, message: held, share: self.share.clone() };
                near::prepare(daemon, self.controller, *prepare, taken, self.writer.clone())?;
                None
            }
            ToAgent::Start { part, at } => {
                let running =
                    daemon.parts.find(&part, Side::Near).filter(|running| self.owns(&running.controller));
                if !running.is_some_and(|running| running.start(at)) {
                    let why = "this part is not prepared: it was already started, has ended, or was never \
                        requested";
                    return Err(Refusal::new(RefusalKind::Part, why));
                }
                Some(FromAgent::Started { part })
            }
            ToAgent::EndSending { part } => {
                // One that is over already needs no end.
                if let Some(running) =
                    daemon.parts.find(&part, Side::Near).filter(|running| self.owns(&running.controller))
                {
                    running.end_sending();
                }
                None
            }
            ToAgent::Stop { part } => {
                for end in [Side::Near, Side::Far] {
                    let running =
                        daemon.parts.find(&part, end).filter(|running| self.owns(&running.controller));
                    running.iter().for_each(|running| running.stop());
                }
                None
            }
            ToAgent::Attach { part, from } => {
                let spool = self.kept(&part)?;
                self.attach(part, spool, from)?;
                None
            }
            ToAgent::Ack { part, through } => {
                // One that was discarded needs no acknowledgement.
                if let Ok(spool) = self.kept(&part) {
                    let failed = |error: crate::spool::SpoolError| {
                        Refusal::new(RefusalKind::Environment, error.to_string())
                    };
                    spool.acknowledge(through).map_err(failed)?;
                }
                None
            }
            ToAgent::Parts => {
                Some(FromAgent::Parts(status::kept_parts(daemon, &self.controller.fingerprint)))
            }
            ToAgent::Discard { part } => {
                self.discard(&part, self.kept(&part).ok())?;
                self.detach(&part);
                Some(FromAgent::Discarded { part })
            }
        })
    }

    fn attach(&mut self, part: PartId, spool: Arc<PartSpool>, from: u64) -> Result<(), Refusal> {
        self.detach(&part);
        let held = self.share.take(memory::STREAM);
        let held = held
            .map_err(|error| memory::refused(&self.daemon.config.name, "a part that is collected", &error))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (daemon, writer, of_stream) =
            (Arc::clone(self.daemon), self.writer.clone(), Arc::clone(&is_over));
        let streamed = self.daemon.spawn("stream", move || {
            let _held = held;
            // Where the connection is cut, its reader knows.
            let _ = stream::stream(&daemon, &spool, from, &writer, &of_stream);
        });
        streamed.map_err(|error| Refusal::new(RefusalKind::Environment, error.to_string()))?;
        self.attached.insert(part, is_over);
        Ok(())
    }

    /// Ends a part that is kept, and deletes it.
    fn discard(&self, part: &PartId, kept: Option<Arc<PartSpool>>) -> Result<(), Refusal> {
        let Some(spool) = kept else { return Ok(()) };
        if let Some(running) = self.daemon.parts.find(part, Side::Near) {
            running.stop();
        }
        let discarded = self.daemon.spool.discard(&spool.meta().part);
        discarded.map(|_| ()).map_err(|error| Refusal::new(RefusalKind::Environment, error.to_string()))
    }

    fn detach(&mut self, part: &PartId) {
        if let Some(is_over) = self.attached.remove(part) {
            is_over.store(true, Ordering::Relaxed);
        }
    }

    fn owns(&self, controller: &Fingerprint) -> bool {
        *controller == self.controller.fingerprint
    }

    /// A part of this controller that is kept. Others learn nothing of it.
    fn kept(&self, part: &PartId) -> Result<Arc<PartSpool>, Refusal> {
        let spool = self.daemon.spool.find(part).filter(|spool| self.owns(&spool.meta().controller));
        spool.ok_or_else(|| {
            let why =
                format!("there is no such part of {} on {}", self.controller.name, self.daemon.config.name);
            Refusal::new(RefusalKind::Part, why)
        })
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.attached.values().for_each(|is_over| is_over.store(true, Ordering::Relaxed));
    }
}

/// The part that something is about.
fn about(said: &ToAgent) -> Option<&PartId> {
    match said {
        ToAgent::Offer(offer) => Some(&offer.part),
        ToAgent::Prepare(prepare) => Some(&prepare.part),
        ToAgent::Start { part, .. }
        | ToAgent::EndSending { part }
        | ToAgent::Stop { part }
        | ToAgent::Attach { part, .. }
        | ToAgent::Ack { part, .. }
        | ToAgent::Discard { part } => Some(part),
        ToAgent::Time(_) | ToAgent::Facts | ToAgent::Status | ToAgent::Parts => None,
    }
}

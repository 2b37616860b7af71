//! Step 8 of RFC 4340 section 8.5: a packet's options.

use super::config::Ccid;
use super::feedback::Feedback;
use super::options::{Opt, Options};
use super::reset::Reset;
use super::seq::Seq;
use super::wire::{Body, Packet};
use super::{DccpEndpoint, State};

/// The options of a packet, taken.
pub(super) struct Taken<'p> {
    pub(super) feedback: Option<Feedback<'p>>,
    pub(super) ndp_count: u64,
    pub(super) data_checksum: Option<u32>,
}

impl DccpEndpoint {
    /// Takes the options, each in its turn.
    pub(super) fn take_options<'p>(
        &mut self,
        packet: &Packet<'p>,
        number: Seq,
        ack: Option<Seq>,
    ) -> Result<Taken<'p>, Reset> {
        let body = &packet.header.body;
        let is_data = matches!(body, Body::Data);
        let is_tfrc = self.ccid() != Ccid::TcpLike;
        let mut taken = Taken { feedback: ack.map(Feedback::new), ndp_count: 0, data_checksum: None };
        let mut mandatory = false;
        let mut has_features = false;
        for option in Options::new(packet.options) {
            if is_data && !may_stand_in_data(&option) {
                continue;
            }
            let is_understood = match option {
                Opt::Mandatory if mandatory => return Err(Reset::option_error(&option)),
                Opt::Mandatory => {
                    mandatory = true;
                    continue;
                }
                Opt::Feature { option, number: feature, values } => {
                    has_features = true;
                    self.negotiation.receive(number, ack, option, feature, values, mandatory)?;
                    true
                }
                Opt::NdpCount(count) => {
                    taken.ndp_count = count;
                    true
                }
                Opt::DataChecksum(checksum) => {
                    taken.data_checksum = Some(checksum);
                    true
                }
                Opt::Timestamp(value) => {
                    self.outbox.timestamp = Some((value, self.now));
                    true
                }
                Opt::InitCookie(_) => {
                    if matches!(body, Body::Response { .. }) && self.state == State::Request {
                        option.write(&mut self.outbox.cookies);
                    }
                    true
                }
                Opt::LossEventRate(_)
                | Opt::LossIntervals(_)
                | Opt::ReceiveRate(_)
                | Opt::DroppedPackets(_)
                    if !is_tfrc =>
                {
                    false
                }
                Opt::Unknown { .. } => false,
                _ => {
                    if let Some(feedback) = &mut taken.feedback {
                        feedback.take(&option);
                    }
                    true
                }
            };
            if mandatory && !is_understood {
                return Err(Reset::mandatory_error(&option));
            }
            mandatory = false;
        }
        if has_features {
            self.negotiation.processed(number);
        }
        if mandatory { Err(Reset::option_error(&Opt::Mandatory)) } else { Ok(taken) }
    }
}

/// Whether an option counts on a Data packet (RFC 4340 table 3); others could end a connection, and Data is easily forged.
fn may_stand_in_data(option: &Opt<'_>) -> bool {
    matches!(
        option,
        Opt::SlowReceiver
            | Opt::NdpCount(_)
            | Opt::Timestamp(_)
            | Opt::TimestampEcho { .. }
            | Opt::DataChecksum(_)
    )
}

//! Multicast streams: one sender, many receivers.
//!
//! **Reliable.** Receivers join (JCNTL) when they first hear the group, at its beginning or in mid-stream, and the sender
//! tracks each of them: the slowest decides what may be sent and what may be forgotten. What any of them misses is sent
//! again to the group. A receiver that falls silent is asked by itself, then dropped, and the user is told
//! ([`Event::Member`](crate::Event::Member)).
//!
//! **Control traffic.** A receiver holds every control packet back by a random slot (slotting). Reports of gaps go to the
//! group, and whoever hears its own gaps in another's report stays silent until their repair is overdue (damping). The
//! sender asks all receivers together with every n-th packet, where n is at least four times their number, so that their
//! answers are about one control packet for four data packets, however many they are. Buffers that hold less than that
//! make it ask more often.
//!
//! **Unacknowledged.** Receivers listen, and nobody tells the sender anything.
//!
//! The sender's repairs each have a sync number of their own, without being requests: so a report shows which of them
//! its receiver has seen.

mod damping;
mod members;
mod receiver;
mod sender;

use trunkline_core::{Address, Duration};

use super::config::{Acknowledge, FlowControl, XtpConfig, XtpConfigError};

pub use receiver::XtpGroupReceiver;
pub use sender::XtpGroupSender;

/// Options of a multicast stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct XtpGroupConfig {
    /// Of the stream. Error control decides whether it is reliable; it is opened when the quorum has joined.
    pub stream: XtpConfig,
    /// The address of the group: what is sent there reaches the sender and all receivers.
    pub group: Address,
    /// How many receivers must have joined before data are taken, at least 1.
    pub quorum: usize,
    /// How many receivers may join.
    pub max_receivers: usize,
    /// How long a slot is by which control packets are held back.
    pub slot: Duration,
    /// Among how many slots a receiver draws.
    pub slots: u32,
    /// How long after a report its gaps may take to be repaired before they are reported again.
    pub repair_wait: Duration,
}

impl XtpGroupConfig {
    /// A reliable stream to this group: one receiver suffices to begin, up to 4096 may join, and control packets are
    /// held back by up to 20 ms.
    pub fn reliable(group: Address) -> XtpGroupConfig {
        XtpGroupConfig {
            stream: XtpConfig { acknowledge: Acknowledge::Every(8), ..XtpConfig::default() },
            group,
            quorum: 1,
            max_receivers: 4096,
            slot: Duration::from_millis(1),
            slots: 20,
            repair_wait: Duration::from_millis(200),
        }
    }

    /// An unacknowledged stream to this group.
    pub fn unacknowledged(group: Address) -> XtpGroupConfig {
        let reliable = XtpGroupConfig::reliable(group);
        let stream = XtpConfig {
            error_control: super::config::ErrorControl::None,
            flow_control: FlowControl::None,
            acknowledge: Acknowledge::Never,
            ..reliable.stream
        };
        XtpGroupConfig { stream, ..reliable }
    }

    /// Finds what cannot be.
    ///
    /// # Errors
    /// The first thing that cannot.
    pub fn check(&self) -> Result<(), XtpConfigError> {
        self.stream.check()?;
        let never = self.stream.acknowledge == Acknowledge::Never;
        if self.stream.is_reliable() && self.stream.flow_control != FlowControl::Window
            || !self.stream.is_reliable() && !never
        {
            return Err(XtpConfigError::Group);
        }
        if self.slot.is_zero() || self.slots == 0 || self.repair_wait.is_zero() {
            return Err(XtpConfigError::Wait("slot or repair wait"));
        }
        if self.quorum == 0 || self.quorum > self.max_receivers {
            return Err(XtpConfigError::Quorum { quorum: self.quorum, most: self.max_receivers });
        }
        Ok(())
    }

    /// How long a receiver holds a control packet back at most.
    fn spread(&self) -> Duration {
        self.slot * u64::from(self.slots)
    }
}

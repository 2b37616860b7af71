//! What else can happen to a packet, with the cause, said at the moment it happens.

use trunkline_core::{FlowId, Packet, PacketId, Time};

/// Fates that a call produced, in order. The driver takes the dropped packets' buffers back into its pool.
#[derive(Debug, Default)]
pub struct Fates(pub Vec<Fate>);

/// One packet's fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The packet is gone.
    Dropped {
        /// When.
        at: Time,
        /// The packet, for its buffer and for the record.
        packet: Packet,
        /// Why.
        cause: DropCause,
    },
    /// The packet goes on, marked "congestion experienced".
    Marked {
        /// When.
        at: Time,
        /// Which.
        id: PacketId,
        /// Whose.
        flow: FlowId,
        /// Why.
        cause: MarkCause,
    },
}

macro_rules! causes {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(usize)]
        pub enum $name { $($(#[$doc])* $variant,)* }
        impl $name {
            /// Every cause, in the order of its index.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];
            /// How many there are: the length of a counter array.
            pub const COUNT: usize = Self::ALL.len();
            /// The place in a counter array.
            pub const fn index(self) -> usize { self as usize }
            /// The word used in records, tables and JSON.
            pub const fn name(self) -> &'static str { match self { $($name::$variant => $text),* } }
        }
    };
}

causes! {
    /// Why a packet was dropped.
    DropCause {
        /// The queue was full when it arrived (tail drop).
        QueueFull = "queue-full",
        /// It made room for a more urgent packet when the queue was full (strict priority).
        Displaced = "displaced",
        /// The input FIFO of a trunk board was full (T1): its processor did not keep up with the backplane.
        InputFull = "input-full",
        /// It is larger than the link's MTU.
        TooLarge = "too-large",
        /// The link lost it (an impairment).
        LinkLoss = "link-loss",
        /// Sojourn times stayed above the target (CoDel).
        Sojourn = "sojourn",
        /// A controller's probability hit it (PIE, the classic queue of DualPI2).
        Probability = "probability",
        /// So much load that marks no longer help: dropped although it could have been marked (DualPI2).
        Overload = "overload",
        /// It was sent to a station that does not exist.
        NoStation = "no-station",
        /// The buffer of a switch's port was full when it was to be passed on (Ethernet).
        SwitchFull = "switch-full",
        /// It was not acknowledged as often as it may be transmitted (Wi-Fi).
        RetryLimit = "retry-limit",
        /// Another station transmitted at the same time, and it was not to be acknowledged (Wi-Fi).
        Collision = "collision",
        /// Noise spoilt it, and it was not to be acknowledged (Wi-Fi).
        FrameError = "frame-error",
        /// More came than was promised, and a policer discarded it, or a cell of it.
        Policed = "policed",
        /// There was no room for one of its cells in the buffer of a switch (ATM).
        CellLost = "cell-lost",
        /// There was little room for cells when it began: it was discarded whole (ATM, early packet discard).
        EarlyDiscard = "early-discard",
        /// The last cell of an earlier packet was lost, and the two were taken for one (ATM).
        Misassembled = "misassembled",
        /// It was in the longest queue when all of them together were full (DRR, FQ-CoDel).
        LongestQueue = "longest-queue",
    }
}

causes! {
    /// Why a packet was marked.
    MarkCause {
        /// Sojourn times stayed above the target (CoDel).
        Sojourn = "sojourn",
        /// A controller's probability hit it (PIE, the classic queue of DualPI2).
        Probability = "probability",
        /// Its own sojourn time was above a threshold (the L4S queue of DualPI2, FQ-CoDel's `ce-threshold`).
        Threshold = "threshold",
        /// The other queue's congestion, coupled into the L4S queue of DualPI2.
        Coupled = "coupled",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn causes_have_names_and_indices_of_their_own() {
        let drops: BTreeSet<&str> = DropCause::ALL.iter().map(|cause| cause.name()).collect();
        let marks: BTreeSet<&str> = MarkCause::ALL.iter().map(|cause| cause.name()).collect();
        assert_eq!((drops.len(), marks.len()), (DropCause::COUNT, MarkCause::COUNT));
        assert!(drops.iter().chain(&marks).all(|name| !name.is_empty()));
        assert!(DropCause::ALL.iter().enumerate().all(|(i, cause)| cause.index() == i));
        assert!(MarkCause::ALL.iter().enumerate().all(|(i, cause)| cause.index() == i));
    }
}

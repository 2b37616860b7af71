//! What XTP promises depends on the service and on what was chosen.

use super::config::{FlowControl, XtpConfig};
use super::wire::Service;
use crate::conversation::Features;
use crate::features::{self, XTP};

/// What a conversation promises.
pub(super) fn features(service: Service, config: &XtpConfig) -> &'static Features {
    let flow_control = config.flow_control != FlowControl::None;
    &TABLE[service as usize][usize::from(config.is_reliable())][usize::from(flow_control)]
        [usize::from(config.checksum)]
}

/// By service, error control, flow control and checksum.
static TABLE: [[[[Features; 2]; 2]; 2]; Service::ALL.len()] = {
    let mut table = [[[[XTP; 2]; 2]; 2]; Service::ALL.len()];
    let mut index = 0;
    while index < 8 * table.len() {
        let (service, reliable) = (Service::ALL[index / 8], index & 4 != 0);
        let (flow_control, checksum) = (index & 2 != 0, index & 1 != 0);
        table[index / 8][reliable as usize][flow_control as usize][checksum as usize] =
            promises(service, reliable, flow_control, checksum);
        index += 1;
    }
    table
};

const fn promises(service: Service, reliable: bool, flow_control: bool, checksum: bool) -> Features {
    match service {
        // Every packet of these is a FIRST packet, which always carries the whole checksum.
        Service::Datagram => features::XTP_DATAGRAM,
        Service::AcknowledgedDatagram => features::XTP_ACKNOWLEDGED_DATAGRAM,
        Service::Transaction => Features { checksum, ..features::XTP_TRANSACTION },
        Service::Unspecified | Service::Stream => Features { reliable, flow_control, checksum, ..XTP },
        Service::UnacknowledgedMulticast => Features { checksum, ..features::XTP_MULTICAST },
        Service::Multicast => Features { checksum, ..features::XTP_RELIABLE_MULTICAST },
    }
}

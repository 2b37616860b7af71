use proptest::prelude::*;

use trunkline_core::Time;

use super::*;
use crate::request::Role;

#[test]
fn what_is_said_is_read() {
    let request =
        Request::new(Role::Echo, "{ kind = \"dccp\", congestion-control = \"ccid-3\" }".parse().unwrap());
    for what in [
        ToServer::Open { request: Box::new(request) },
        ToServer::Time(TimeRequest { sent: Time::from_nanos(5) }),
        ToServer::Bye,
    ] {
        assert_eq!(ToServer::from_frame(what.to_frame().unwrap()), Ok(what));
    }
}

/// A refusal reads the same before and after the welcome, and for every purpose of a connection.
#[test]
fn a_refusal_is_that_of_every_connection() {
    use trunkline_peer::RefusalKind;
    use trunkline_peer::message::Reply;
    let refusal = Refusal::new(RefusalKind::Limit, "it is full");
    let frame = ToClient::Refused { refusal: refusal.clone() }.to_frame().unwrap();
    assert_eq!(Reply::from_frame(frame), Ok(Reply::Refused { refusal }));
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        fuzz_frames(&bytes);
    }

    /// Of a message that is nearly right, nothing makes a reader panic either.
    #[test]
    fn no_change_of_a_message_makes_a_reader_panic(
        at in 0..200usize,
        bytes in proptest::collection::vec(any::<u8>(), 0..4),
    ) {
        let request = Request::new(Role::Echo, "{ kind = \"sctp\", window = \"64 KiB\" }".parse().unwrap());
        let frame = ToServer::Open { request: Box::new(request) }.to_frame().unwrap();
        let head = trunkline_peer::wire::head(frame.tag, frame.body.len()).unwrap();
        let mut message = [&head[..], &frame.body].concat();
        let at = at % message.len();
        message.splice(at..(at + bytes.len()).min(message.len()), bytes);
        fuzz_frames(&message);
    }
}

use proptest::prelude::*;
use trunkline_core::{Bytes, Duration, Rate, Time};
use trunkline_peer::wire::head;
use trunkline_peer::{Fingerprint, Identity, Refusal, RefusalKind};

use super::*;
use crate::message::{FarEndpoint, Hello, Offer, Prepare};

fn any_part() -> impl Strategy<Value = PartId> {
    let numbers = (any::<u32>(), any::<u32>(), any::<u16>(), any::<u32>());
    ("[0-9a-f]{32}", numbers).prop_map(|(run, (point, repetition, pair, attempt))| PartId {
        run,
        point,
        repetition,
        pair,
        attempt,
    })
}

fn fingerprint() -> Fingerprint {
    Identity::generate().unwrap().fingerprint()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_body_panics(tag in prop::sample::select(vec![b'H', b'W', b'M', b'C', b'R', b'P', 0]), body: Vec<u8>) {
        fuzz_frames_of_agents(&[&head(tag, body.len()).unwrap()[..], &body].concat());
    }

    #[test]
    fn chunks_come_out_as_they_went_in(part in any_part(), number: u64, data: Vec<u8>) {
        let chunk = Chunk { part, number, data };
        let frame = chunk.to_frame().unwrap();
        prop_assert_eq!(frame.tag, tag::CHUNK);
        prop_assert_eq!(Chunk::from_frame(frame.clone()), Ok(chunk.clone()));
        prop_assert_eq!(FromAgent::from_frame(frame), Ok(FromAgent::Chunk(chunk)));
    }

    #[test]
    fn a_chunk_whose_head_is_cut_is_refused(part in any_part(), number: u64, length in 0usize..55) {
        let mut frame = Chunk { part, number, data: Vec::new() }.to_frame().unwrap();
        frame.body.truncate(length);
        prop_assert!(Chunk::from_frame(frame).is_err() || length == 55);
    }

    #[test]
    fn instructions_come_out_as_they_went_in(
        part in any_part(),
        experiment: String,
        files in prop::collection::btree_map(any::<String>(), any::<Vec<u8>>(), 0..4),
        choice: Vec<usize>,
        seed: u64,
        nanos: u64,
        rate in proptest::option::of(any::<u64>()),
    ) {
        let far = FarEndpoint { address: "h:1".into(), fingerprint: fingerprint(), token: "t".into() };
        let flows = choice.clone();
        let prepare = Prepare { part: part.clone(), experiment, files, choice, seed, flows, far, traceparent: None };
        let offer = Offer {
            part: part.clone(),
            near: "berlin".into(),
            near_fingerprint: fingerprint(),
            conversations: nanos,
            duration: Duration::from_nanos(nanos),
            rate: rate.map(Rate::from_bits_per_second),
            buffers: Bytes(nanos),
        };
        for said in [
            ToAgent::Prepare(Box::new(prepare)),
            ToAgent::Offer(offer),
            ToAgent::Start { part: part.clone(), at: nanos },
            ToAgent::Time(TimeRequest { sent: Time::from_nanos(nanos) }),
            ToAgent::Ack { part, through: seed },
            ToAgent::Facts,
        ] {
            prop_assert_eq!(ToAgent::from_frame(said.to_frame().unwrap()), Ok(said));
        }
    }
}

#[test]
fn a_message_of_the_wrong_kind_is_refused() {
    let refused = FromAgent::Refused { part: None, refusal: Refusal::new(RefusalKind::Limit, "no") };
    let frame = refused.to_frame().unwrap();
    assert_eq!(FromAgent::from_frame(frame.clone()), Ok(refused));
    assert!(ToAgent::from_frame(frame.clone()).is_err());
    let error = Hello::from_frame(frame).unwrap_err();
    assert_eq!(error.to_string(), "a frame with tag 0x4d instead of a greeting");
}

#[test]
fn what_a_later_version_adds_is_skipped() {
    let body = br#"{"refused":{"part":null,"refusal":{"kind":"moon-phase","why":"it is new"},"more":1}}"#;
    let frame = Frame { tag: tag::MESSAGE, body: body.to_vec() };
    let refusal = Refusal::new(RefusalKind::Other, "it is new");
    assert_eq!(FromAgent::from_frame(frame), Ok(FromAgent::Refused { part: None, refusal }));
}

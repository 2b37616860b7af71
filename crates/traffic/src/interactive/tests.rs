use trunkline_core::schema::Value;
use trunkline_core::{Bytes, Duration, Time};

use crate::source::{Feedback, MessageBuffer, Source, SourceContext};
use crate::testing::{Sent, build, constant, context, produce_until};

fn after(millis: u64) -> Time {
    context().start + Duration::from_millis(millis)
}

fn dues(source: &mut dyn Source, now: Time) -> Vec<Time> {
    let mut sent = Vec::new();
    produce_until(source, now, &mut sent);
    sent.iter().map(|s: &Sent| s.due).collect()
}

fn answer(source: &mut dyn Source, now: Time, sequence: u32) {
    source.notify(now, Feedback::Answered { channel: 0, sequence });
}

#[test]
fn the_next_request_follows_the_answer_and_the_time_to_think() {
    let mut source = build("ipuke", &[("think", constant(Duration::from_millis(7)))], &context());
    assert_eq!(dues(&mut *source, after(0)), [after(0)]);
    assert_eq!(source.next_due(), Some(after(1007)), "the timeout and the time to think");
    answer(&mut *source, after(30), 0);
    assert_eq!(source.next_due(), Some(after(37)));
    assert_eq!(dues(&mut *source, after(40)), [after(37)], "called late: the due time is its own");
    assert_eq!(source.next_due(), Some(after(1047)), "waits from when it was sent");
}

#[test]
fn without_an_answer_it_goes_on_at_the_timeout() {
    let mut source =
        build("interactive", &[("timeout", Value::Duration(Duration::from_millis(200)))], &context());
    assert_eq!(dues(&mut *source, after(0)), [after(0)]);
    assert_eq!(source.next_due(), Some(after(200)));
    let mut early = MessageBuffer::with_headroom(0);
    source.produce(after(199), &mut early);
    assert!(early.messages().is_empty());
    assert_eq!(dues(&mut *source, after(200)), [after(200)]);
    answer(&mut *source, after(210), 0);
    assert_eq!(source.next_due(), Some(after(400)), "an answer after its timeout changes nothing");
    answer(&mut *source, after(220), 1);
    answer(&mut *source, after(220), 1);
    assert_eq!(source.next_due(), Some(after(220)));
}

#[test]
fn it_makes_as_many_requests_as_told() {
    let mut source = build("interactive", &[("messages", Value::Integer(3))], &context());
    for sequence in 0..3 {
        assert!(!source.is_finished());
        assert_eq!(dues(&mut *source, after(10 * u64::from(sequence))).len(), 1);
        answer(&mut *source, after(10 * u64::from(sequence) + 10), sequence);
    }
    assert!(source.is_finished());
    assert_eq!(source.next_due(), None);
}

#[test]
fn an_answer_can_come_before_the_stop_though_the_timeout_would_not() {
    let context = SourceContext { stop: after(500), ..context() };
    let mut source = build("interactive", &[], &context);
    dues(&mut *source, after(0));
    assert_eq!(source.next_due(), None, "the timeout is after the stop");
    assert!(!source.is_finished());
    answer(&mut *source, after(100), 0);
    assert_eq!(source.next_due(), Some(after(100)));
    dues(&mut *source, after(100));
    source.notify(after(500), Feedback::Writable);
    assert!(source.is_finished());
}

#[test]
fn channels_wait_for_their_own_answers() {
    let mut source = build("interactive", &[], &SourceContext { channels: 2, ..context() });
    assert_eq!(dues(&mut *source, after(0)).len(), 2);
    source.notify(after(5), Feedback::Answered { channel: 1, sequence: 0 });
    let mut sent = Vec::new();
    produce_until(&mut *source, after(5), &mut sent);
    assert_eq!(sent, [Sent { channel: 1, due: after(5), length: 64 }]);
    source.notify(after(6), Feedback::Answered { channel: 9, sequence: 0 });
    assert_eq!(source.next_due(), Some(after(1000)));
}

#[test]
fn it_is_over_with_its_last_answer_or_the_timeout_of_that() {
    let timeout = ("timeout", Value::Duration(Duration::from_millis(200)));
    let given = [("messages", Value::Integer(2)), timeout];
    let mut source = build("interactive", &given, &SourceContext { channels: 2, ..context() });
    assert_eq!(dues(&mut *source, after(0)).len(), 2);
    source.notify(after(10), Feedback::Answered { channel: 0, sequence: 0 });
    assert_eq!(dues(&mut *source, after(10)).len(), 1);
    assert_eq!(source.over_at(), None, "the other channel has a request to make");
    assert_eq!(dues(&mut *source, after(200)).len(), 1);
    assert!(source.is_finished());
    assert_eq!(source.over_at(), Some(after(400)));
    source.notify(after(205), Feedback::Answered { channel: 0, sequence: 1 });
    source.notify(after(205), Feedback::Answered { channel: 0, sequence: 1 });
    assert_eq!(source.over_at(), Some(after(400)), "one still waits");
    source.notify(after(300), Feedback::Answered { channel: 1, sequence: 1 });
    assert_eq!(source.over_at(), Some(Time::ZERO));
}

#[test]
fn requests_ask_only_for_answers_that_are_not_echoes() {
    for (given, asks) in [(&[][..], false), (&[("answer", Value::Bytes(Bytes(4)))][..], true)] {
        let mut source = build("ipuke", given, &context());
        let mut buffer = MessageBuffer::with_headroom(0);
        source.produce(after(0), &mut buffer);
        assert_eq!(buffer.messages()[0].asks, asks);
    }
}

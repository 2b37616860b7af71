//! Who is not known costs little, and learns little.

use trunkline_control::message::{Enrolment, Purpose};
use trunkline_control::{Connection, FromAgent, Identity, Pairing, RefusalKind, Service, ToAgent, connect};

use crate::support::{Ground, Host, PATIENCE};

/// So many of one address may wait at once.
const OF_SOURCE: usize = 8;

/// Somebody who wants to pair, and was welcomed.
fn applicant(agent: &Host, identity: &Identity) -> Result<Connection, String> {
    let mut connection =
        connect(&agent.address, identity, &agent.fingerprint, PATIENCE).map_err(|error| error.to_string())?;
    connection.introduce(Purpose::Pair, PATIENCE).map_err(|error| error.to_string())?;
    Ok(connection)
}

/// Says a wrong proof, and hears the answer.
fn tries(mut connection: Connection) -> RefusalKind {
    connection.send(&Enrolment::Pair { proof: vec![0; 32], name: "studio".to_owned() }).unwrap();
    match connection.receive_within(PATIENCE, "pairing") {
        Ok(Some(FromAgent::Refused { refusal, .. })) => refusal.kind,
        other => panic!("{other:?}"),
    }
}

fn is_over(mut connection: Connection) -> bool {
    !matches!(connection.receive_within::<FromAgent>(PATIENCE, "a test waits"), Ok(Some(_)))
}

#[test]
fn who_wants_to_pair_and_says_nothing_more_is_counted() {
    let ground = Ground::new();
    let agent = ground.agent("ottawa", "127.0.0.1", "");
    let identity = Identity::generate().unwrap();
    let mut waiting: Vec<Connection> =
        (0..=OF_SOURCE).map(|_| applicant(&agent, &identity).unwrap()).collect();
    // The first has made room for the last.
    let first = waiting.remove(0);
    assert!(
        first.send(&ToAgent::Facts).and_then(|()| first.send(&ToAgent::Facts)).is_err() || is_over(first)
    );
    for connection in waiting {
        assert_eq!(tries(connection), RefusalKind::NoCode);
    }
}

#[test]
fn what_anybody_can_do_often_pushes_no_notice_out() {
    let ground = Ground::new();
    let agent = ground.agent("ottawa", "127.0.0.1", "");
    let owner = Identity::open(&agent.state.join("identity")).unwrap();
    let told = || {
        let mut connection = connect(&agent.address, &owner, &agent.fingerprint, PATIENCE).unwrap();
        connection.introduce(Purpose::Control, PATIENCE).unwrap();
        connection.send(&ToAgent::Status).unwrap();
        match connection.receive_within(PATIENCE, "its status") {
            Ok(Some(FromAgent::Status(status))) => {
                status.notices.iter().filter(|notice| notice.text.contains("failed to enrol")).count()
            }
            other => panic!("{other:?}"),
        }
    };
    let identity = Identity::generate().unwrap();
    let try_once = || tries(applicant(&agent, &identity).unwrap());
    assert_eq!((try_once(), told()), (RefusalKind::NoCode, 0));
    Pairing::open(&Service::AGENT, &agent.state)
        .unwrap()
        .begin(&agent.fingerprint, None, jiff::Timestamp::now())
        .unwrap();
    assert_eq!((try_once(), told()), (RefusalKind::WrongCode, 1));
    while try_once() == RefusalKind::WrongCode {}
    let all = told();
    assert_eq!((try_once(), told()), (RefusalKind::TooManyTries, all));
}

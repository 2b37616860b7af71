use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;

use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;
use trunkline_core::Duration;

use super::code::PairingCode;
use super::proof::{self, Side};
use super::{Pairing, enrol};
use crate::message::{Enrolment, Purpose, Reply};
use crate::{
    Connection, Fingerprint, Identity, Listener, Peer, PeerError, Peers, RefusalKind, Service, connect,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// An agent that may be paired with, and how it was paired with.
struct Agent {
    home: TempDir,
    name: &'static str,
    identity: Identity,
    listener: Listener,
    pairing: Pairing,
    controllers: Peers,
    now: Timestamp,
}

impl Agent {
    fn new(name: &'static str) -> Agent {
        let home = tempfile::tempdir().unwrap();
        let identity = Identity::open(&home.path().join("identity")).unwrap();
        Agent {
            name,
            listener: Listener::bind("127.0.0.1:0", &identity).unwrap(),
            pairing: Pairing::open(&Service::AGENT, home.path()).unwrap(),
            controllers: Peers::open(&home.path().join("controllers")).unwrap(),
            now: "2024-05-06T07:08:09Z".parse().unwrap(),
            identity,
            home,
        }
    }

    fn fingerprint(&self) -> Fingerprint {
        self.identity.fingerprint()
    }

    fn address(&self) -> String {
        self.listener.local_address().to_string()
    }

    fn code(&self) -> PairingCode {
        self.pairing.begin(&self.fingerprint(), None, self.now).unwrap()
    }

    /// Lets the next who connects pair.
    fn admit(&self) -> Result<Peer, PeerError> {
        let incoming = self.listener.accept_within(PATIENCE)?.expect("somebody connects");
        let mut connection = incoming.handshake(PATIENCE)?;
        assert_eq!(connection.hear(PATIENCE)?.purpose, Purpose::Pair);
        connection.welcome(self.name)?;
        self.pairing.admit(connection, &self.controllers, self.now, PATIENCE)
    }

    /// What the agent and the controller say of an enrolment.
    fn meets(
        &self,
        controller: &Controller,
        code: &PairingCode,
    ) -> (Result<Peer, PeerError>, Result<Peer, PeerError>) {
        self.meets_by(|| controller.enrol(&self.address(), code))
    }

    fn meets_by<T>(&self, connect: impl FnOnce() -> T) -> (Result<Peer, PeerError>, T) {
        thread::scope(|scope| {
            let admitted = scope.spawn(|| self.admit());
            let enrolled = connect();
            (admitted.join().unwrap(), enrolled)
        })
    }
}

struct Controller {
    _home: TempDir,
    name: &'static str,
    identity: Identity,
    agents: Peers,
}

impl Controller {
    fn new(name: &'static str) -> Controller {
        let home = tempfile::tempdir().unwrap();
        let agents = Peers::open(home.path()).unwrap();
        Controller { _home: home, name, identity: Identity::generate().unwrap(), agents }
    }

    fn enrol(&self, address: &str, code: &PairingCode) -> Result<Peer, PeerError> {
        enrol(&Service::AGENT, address, code, (&self.identity, self.name), &self.agents, PATIENCE)
    }

    /// A connection on which a proof is due.
    fn introduced(&self, agent: &Agent) -> Connection {
        let mut connection =
            connect(&agent.address(), &self.identity, &agent.fingerprint(), PATIENCE).unwrap();
        connection.introduce(Purpose::Pair, PATIENCE).unwrap();
        connection
    }
}

/// Another code of the same agent.
fn wrong(agent: &Agent) -> PairingCode {
    PairingCode::make(&agent.fingerprint()).unwrap()
}

fn kind(result: &Result<Peer, PeerError>) -> RefusalKind {
    match result {
        Err(PeerError::Refused { refusal, .. }) => refusal.kind,
        other => panic!("{other:?} is no refusal"),
    }
}

#[test]
fn the_right_code_makes_both_known() {
    let (agent, studio) = (Agent::new("ottawa"), Controller::new("studio"));
    let code = agent.code().to_string().to_lowercase().parse().unwrap();
    let (admitted, enrolled) = agent.meets(&studio, &code);
    let (admitted, enrolled) = (admitted.unwrap(), enrolled.unwrap());
    assert_eq!((admitted.name.as_str(), admitted.fingerprint), ("studio", studio.identity.fingerprint()));
    assert_eq!((enrolled.name.as_str(), enrolled.fingerprint), ("ottawa", agent.fingerprint()));
    assert_eq!(enrolled.address, Some(agent.address()));
    assert_eq!(agent.controllers.find(&studio.identity.fingerprint()).unwrap(), Some(admitted));
    assert_eq!(studio.agents.named("ottawa").unwrap(), Some(enrolled));
}

#[test]
fn a_code_is_used_once() {
    let (agent, studio, other) = (Agent::new("ottawa"), Controller::new("studio"), Controller::new("other"));
    let code = agent.code();
    agent.meets(&studio, &code).1.unwrap();
    for controller in [&other, &studio] {
        let (admitted, enrolled) = agent.meets(controller, &code);
        assert_eq!(kind(&admitted), RefusalKind::CodeUsed);
        assert_eq!(kind(&enrolled), RefusalKind::CodeUsed);
    }
    assert_eq!(kind(&agent.meets(&other, &wrong(&agent)).1), RefusalKind::NoCode);
    assert_eq!(agent.controllers.list().unwrap().len(), 1);
    assert_eq!(other.agents.list().unwrap(), []);
    // A new code works for the same controller, too.
    agent.meets(&studio, &agent.code()).1.unwrap();
}

#[test]
fn five_wrong_codes_make_the_right_one_void() {
    let (agent, studio) = (Agent::new("ottawa"), Controller::new("studio"));
    let code = agent.code();
    for left in (0..5).rev() {
        let (admitted, enrolled) = agent.meets(&studio, &wrong(&agent));
        assert_eq!(kind(&admitted), RefusalKind::WrongCode);
        let error = enrolled.unwrap_err();
        let said = if left > 0 { format!("attempts left: {left}") } else { "no attempts left".to_owned() };
        assert!(error.to_string().contains(&said), "{error}");
        assert!(error.is_bad_input());
        // A daemon that dies now has not forgotten.
        assert_eq!(
            Pairing::open(&Service::AGENT, agent.home.path()).unwrap().read().unwrap().unwrap().tries_left,
            left
        );
    }
    let (_, enrolled) = agent.meets(&studio, &code);
    assert_eq!(kind(&enrolled), RefusalKind::TooManyTries);
    assert_eq!(agent.controllers.list().unwrap(), []);
    agent.meets(&studio, &agent.code()).1.unwrap();
}

#[test]
fn four_wrong_codes_do_no_harm() {
    let (agent, studio) = (Agent::new("ottawa"), Controller::new("studio"));
    let code = agent.code();
    for _ in 0..4 {
        assert_eq!(kind(&agent.meets(&studio, &wrong(&agent)).1), RefusalKind::WrongCode);
    }
    agent.meets(&studio, &code).1.unwrap();
}

#[test]
fn a_code_is_valid_for_ten_minutes() {
    let (mut agent, studio) = (Agent::new("ottawa"), Controller::new("studio"));
    let (code, made) = (agent.code(), agent.now);
    agent.now = made + Pairing::VALID;
    assert_eq!(kind(&agent.meets(&studio, &code).1), RefusalKind::ExpiredCode);
    // Nor before it was made: the clock was set back.
    agent.now = made - SignedDuration::from_secs(1);
    assert_eq!(kind(&agent.meets(&studio, &code).1), RefusalKind::ExpiredCode);
    agent.now = made + Pairing::VALID - SignedDuration::from_nanos(1);
    agent.meets(&studio, &code).1.unwrap();
}

#[test]
fn without_a_code_nobody_pairs() {
    let (agent, studio) = (Agent::new("ottawa"), Controller::new("studio"));
    assert_eq!(kind(&agent.meets(&studio, &wrong(&agent)).1), RefusalKind::NoCode);
    let code = agent.code();
    agent.pairing.cancel().unwrap();
    agent.pairing.cancel().unwrap();
    assert_eq!(kind(&agent.meets(&studio, &code).1), RefusalKind::NoCode);
    let old = agent.code();
    let new = agent.code();
    assert_eq!(kind(&agent.meets(&studio, &old).1), RefusalKind::WrongCode);
    agent.meets(&studio, &new).1.unwrap();
}

#[test]
fn nothing_is_said_to_another_agent() {
    let (agent, other, studio) = (Agent::new("ottawa"), Agent::new("ottawa"), Controller::new("studio"));
    let code = agent.code();
    // Whoever stands between shows a key of their own.
    let (admitted, enrolled) = other.meets(&studio, &code);
    let error = enrolled.unwrap_err().to_string();
    assert!(error.contains(&format!(", whose key is {};", other.fingerprint())), "{error}");
    assert!(matches!(admitted, Err(PeerError::NotSpoken { .. })), "{admitted:?}");
    assert_eq!(studio.agents.list().unwrap(), []);
}

#[test]
fn a_proof_is_worth_nothing_on_another_connection() {
    let (agent, studio) = (Agent::new("ottawa"), Controller::new("studio"));
    let code = agent.code();
    // The right proof of a connection that then breaks off, said on another.
    let (_, (proof, name)) = agent.meets_by(|| {
        let connection = studio.introduced(&agent);
        let material = proof::material(&connection).unwrap();
        (proof::make(&code.key(), Side::Connecting, &material, "studio"), "studio".to_owned())
    });
    let (admitted, answer) = agent.meets_by(|| {
        let mut connection = studio.introduced(&agent);
        connection.send(&Enrolment::Pair { proof: proof.clone(), name: name.clone() }).unwrap();
        connection.receive::<Reply>().unwrap().unwrap()
    });
    assert_eq!(kind(&admitted), RefusalKind::WrongCode);
    assert!(matches!(answer, Reply::Refused { refusal } if refusal.kind == RefusalKind::WrongCode));
}

#[test]
fn a_proof_is_worth_nothing_for_another_name() {
    let (agent, studio) = (Agent::new("ottawa"), Controller::new("studio"));
    let code = agent.code();
    let (admitted, _) = agent.meets_by(|| {
        let mut connection = studio.introduced(&agent);
        let material = proof::material(&connection).unwrap();
        let proof = proof::make(&code.key(), Side::Connecting, &material, "studio");
        connection.send(&Enrolment::Pair { proof, name: "boss".to_owned() }).unwrap();
        connection.receive::<Reply>().unwrap()
    });
    assert_eq!(kind(&admitted), RefusalKind::WrongCode);
}

#[test]
fn an_agent_that_does_not_know_the_code_is_not_kept() {
    let (agent, studio) = (Agent::new("ottawa"), Controller::new("studio"));
    let code = agent.code();
    let address = agent.address();
    thread::scope(|scope| {
        scope.spawn(|| {
            let incoming = agent.listener.accept_within(PATIENCE).unwrap().unwrap();
            let mut connection = incoming.handshake(PATIENCE).unwrap();
            connection.hear(PATIENCE).unwrap();
            connection.welcome("ottawa").unwrap();
            let said = connection.receive::<Enrolment>().unwrap().unwrap();
            // It sends back what it was sent.
            let Enrolment::Pair { proof, .. } = said;
            connection.send(&Reply::Paired { proof }).unwrap();
        });
        let error = studio.enrol(&address, &code).unwrap_err();
        assert!(error.to_string().ends_with("it does not know the code itself"), "{error}");
    });
    assert_eq!(studio.agents.list().unwrap(), []);
}

#[test]
fn hosts_of_one_name_are_told_apart_at_either_end() {
    let (agent, studio, other) = (Agent::new("ottawa"), Controller::new("studio"), Controller::new("studio"));
    agent.meets(&studio, &agent.code()).1.unwrap();
    let (admitted, enrolled) = agent.meets(&other, &agent.code());
    assert_eq!(enrolled.unwrap().name, "ottawa");
    assert_eq!(admitted.unwrap().name, "studio-2");
    let known = agent.controllers.find(&other.identity.fingerprint()).unwrap().unwrap();
    assert_eq!(known.name, "studio-2");
    // Who comes again keeps the name.
    assert_eq!(agent.meets(&other, &agent.code()).0.unwrap().name, "studio-2");

    // Another agent of the same name.
    let twin = Agent::new("ottawa");
    let (admitted, enrolled) = twin.meets(&studio, &twin.code());
    assert_eq!((admitted.unwrap().name.as_str(), enrolled.unwrap().name.as_str()), ("studio", "ottawa-2"));
    let names: Vec<String> = studio.agents.list().unwrap().into_iter().map(|peer| peer.name).collect();
    assert_eq!(names, ["ottawa", "ottawa-2"]);
}

#[test]
fn a_code_may_be_for_one_name() {
    let (agent, studio, other) = (Agent::new("ottawa"), Controller::new("studio"), Controller::new("other"));
    let code = agent.pairing.begin(&agent.fingerprint(), Some("studio"), agent.now).unwrap();
    let (_, enrolled) = agent.meets(&other, &code);
    let error = enrolled.unwrap_err().to_string();
    assert!(error.ends_with("the code is for a peer named `studio`, not `other`"), "{error}");
    agent.meets(&studio, &code).1.unwrap();
    assert!(agent.pairing.begin(&agent.fingerprint(), Some("../x"), agent.now).is_err());
}

#[test]
fn the_file_is_private_and_does_not_hold_the_code() {
    let agent = Agent::new("ottawa");
    let code = agent.code();
    let path = agent.home.path().join("pairing");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains(&code.to_string()[30..]), "{text}");
}

#[test]
fn a_damaged_file_is_told_and_a_new_code_mends_it() {
    let (agent, studio) = (Agent::new("ottawa"), Controller::new("studio"));
    let path: &Path = &agent.home.path().join("pairing");
    let code = agent.code();
    fs::write(path, "key = 7").unwrap();
    let (admitted, enrolled) = agent.meets(&studio, &code);
    let error = admitted.unwrap_err().to_string();
    assert!(error.contains("pairing is damaged: ") && error.contains("`trunkline agent pair`"), "{error}");
    // Of the agent's files strangers learn nothing.
    assert_eq!(kind(&enrolled), RefusalKind::Environment);
    let error = enrolled.unwrap_err().to_string();
    assert!(
        error.contains("cannot pair now") && !error.contains("damaged") && !error.contains('/'),
        "{error}"
    );
    agent.meets(&studio, &agent.code()).1.unwrap();
}

#[test]
fn who_has_no_code_has_nothing_written() {
    let (agent, studio) = (Agent::new("ottawa"), Controller::new("studio"));
    agent.code();
    let file = agent.home.path().join("pairing");
    // What is written is a new file; the old one is kept, so that its number is not given again.
    let keep = |name: &str| {
        let kept = agent.home.path().join(name);
        fs::hard_link(&file, &kept).unwrap();
        fs::metadata(&kept).unwrap().ino()
    };
    let made = keep("made");
    (0..Pairing::TRIES).for_each(|_| drop(agent.meets(&studio, &wrong(&agent))));
    let closed = keep("closed");
    assert_ne!(made, closed, "wrong tries are counted");
    for _ in 0..2 {
        assert_eq!(kind(&agent.meets(&studio, &wrong(&agent)).1), RefusalKind::TooManyTries);
    }
    assert_eq!(fs::metadata(&file).unwrap().ino(), closed);
}

#[test]
fn a_name_that_nobody_can_have_is_not_logged() {
    let (agent, studio) = (Agent::new("ottawa"), Controller::new("studio"));
    let code = agent.code();
    let (admitted, answer) = agent.meets_by(|| {
        let mut connection = studio.introduced(&agent);
        let (material, name) = (proof::material(&connection).unwrap(), "\u{1b}[2Jstudio\u{202e}");
        let proof = proof::make(&code.key(), Side::Connecting, &material, name);
        connection.send(&Enrolment::Pair { proof, name: name.to_owned() }).unwrap();
        connection.receive::<Reply>().unwrap().unwrap()
    });
    assert_eq!(kind(&admitted), RefusalKind::Name);
    let told = admitted.unwrap_err().to_string();
    assert!(told.contains("invalid name `[2Jstudio`"), "{told:?}");
    assert!(matches!(answer, Reply::Refused { refusal } if refusal.kind == RefusalKind::Name));
    agent.meets(&studio, &code).1.unwrap();
}

#[test]
fn of_two_at_once_one_is_enrolled() {
    let (agent, one, two) = (Agent::new("ottawa"), Controller::new("one"), Controller::new("two"));
    let code = agent.code();
    let results = thread::scope(|scope| {
        let admitting: Vec<_> = (0..2).map(|_| scope.spawn(|| agent.admit())).collect();
        let enrolling = [&one, &two].map(|c| scope.spawn(|| c.enrol(&agent.address(), &code)));
        let results = enrolling.map(|thread| thread.join().unwrap());
        admitting.into_iter().for_each(|thread| drop(thread.join().unwrap()));
        results
    });
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    let failed = results.iter().find(|result| result.is_err()).unwrap();
    assert_eq!(kind(failed), RefusalKind::CodeUsed);
    assert_eq!(agent.controllers.list().unwrap().len(), 1);
}

//! Agents on other hosts.

use std::path::Path as FilePath;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use trunkline_control::facts::{Facts, Status};
use trunkline_control::message::Purpose;
use trunkline_control::{
    FromAgent, Identity, PairingCode, Peer, PeerError, Peers, Service, ToAgent, check_name, connect,
    enrol as pair,
};
use trunkline_core::Duration;
use utoipa::IntoParams;

use crate::api::{Agent, ApiError, NewAgent};
use crate::app::{App, Shared};
use crate::extract::{Body, Path, Query};

/// How long an agent may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether to contact each agent.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Asked {
    /// Query the status of each agent, which may take a few seconds.
    pub(crate) status: Option<bool>,
}

/// Lists the agents at which this server is enrolled.
#[utoipa::path(get, path = "/agents", tag = "agents", params(Asked), responses((status = 200, body = Vec<Agent>)))]
pub(crate) async fn list(
    State(app): Shared,
    Query(asked): Query<Asked>,
) -> Result<Json<Vec<Agent>>, ApiError> {
    let ask = asked.status.unwrap_or(false);
    app.blocking(move |app| {
        let peers = app.peers()?.list().map_err(failure)?;
        if !ask {
            return Ok(Json(peers.iter().map(shown).collect()));
        }
        let identity = app.identity()?;
        // All at once: those that do not answer take their time.
        let agents = std::thread::scope(|scope| {
            let asked: Vec<_> =
                peers.iter().map(|peer| (peer, scope.spawn(|| status(peer, &identity)))).collect();
            asked.into_iter().map(|(peer, answer)| answer.join().unwrap_or_else(|_| shown(peer))).collect()
        });
        Ok(Json(agents))
    })
    .await
}

/// Enrols at an agent with the pairing code from its owner.
#[utoipa::path(post, path = "/agents", tag = "agents", request_body = NewAgent, responses((status = 201, body = Agent)))]
pub(crate) async fn enrol(
    State(app): Shared,
    Body(new): Body<NewAgent>,
) -> Result<(StatusCode, Json<Agent>), ApiError> {
    app.blocking(move |app| {
        let code: PairingCode = new.code.trim().parse().map_err(ApiError::input)?;
        let (identity, peers) = (app.identity()?, app.peers()?);
        let peer =
            pair(&Service::AGENT, new.address.trim(), &code, (&identity, &own_name()), &peers, PATIENCE)
                .map_err(failure)?;
        Ok((StatusCode::CREATED, Json(shown(&peer))))
    })
    .await
}

/// Forgets an agent; experiments can no longer run there.
#[utoipa::path(
    delete, path = "/agents/{name}", tag = "agents", params(("name" = String, Path, description = "The agent's name")),
    responses((status = 204))
)]
pub(crate) async fn forget(State(app): Shared, Path(name): Path<String>) -> Result<StatusCode, ApiError> {
    app.blocking(move |app| {
        let peers = app.peers()?;
        let known = check_name(&name).is_ok() && peers.named(&name).map_err(failure)?.is_some();
        if !known {
            return Err(ApiError::not_found(format_args!(
                "there is no agent `{}` here",
                name.escape_debug()
            )));
        }
        peers.remove(&name).map_err(failure)?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

impl App {
    /// Identity of this controller.
    pub(crate) fn identity(&self) -> Result<Identity, ApiError> {
        Identity::open(&self.folder.join("identity")).map_err(failure)
    }

    /// The agents at which it is enrolled.
    pub(crate) fn peers(&self) -> Result<Peers, ApiError> {
        Peers::open(&FilePath::join(&self.folder, "agents")).map_err(failure)
    }
}

/// Queries the status of an agent.
fn status(peer: &Peer, identity: &Identity) -> Agent {
    let mut agent = shown(peer);
    match ask(peer, identity) {
        Ok((status, facts)) => {
            agent.reachable = Some(true);
            (agent.status, agent.facts) =
                (serde_json::to_value(status).ok(), serde_json::to_value(facts).ok());
        }
        Err(error) => {
            agent.reachable = Some(false);
            agent.unreachable = Some(error);
        }
    }
    agent
}

fn ask(peer: &Peer, identity: &Identity) -> Result<(Status, Facts), String> {
    let address = peer.address.as_deref().ok_or("its address is not known")?;
    let mut connection =
        connect(address, identity, &peer.fingerprint, PATIENCE).map_err(|error| error.to_string())?;
    connection.introduce(Purpose::Control, PATIENCE).map_err(|error| error.to_string())?;
    for question in [ToAgent::Status, ToAgent::Facts] {
        connection.send(&question).map_err(|error| error.to_string())?;
    }
    connection.trust();
    let (mut status, mut facts) = (None, None);
    loop {
        let said = connection.receive_within::<FromAgent>(PATIENCE, "reporting its status");
        match said.map_err(|error| error.to_string())? {
            Some(FromAgent::Status(told)) => status = Some(*told),
            Some(FromAgent::Facts(told)) => facts = Some(*told),
            Some(FromAgent::Refused { refusal, .. }) => return Err(refusal.why),
            // What it says at any time.
            Some(_) => {}
            None => return Err("it closed the connection".to_owned()),
        }
        (status, facts) = match (status, facts) {
            (Some(status), Some(facts)) => return Ok((status, facts)),
            one => one,
        };
    }
}

fn shown(peer: &Peer) -> Agent {
    Agent {
        name: peer.name.clone(),
        address: peer.address.clone(),
        fingerprint: peer.fingerprint.to_string(),
        enrolled: peer.enrolled,
        reachable: None,
        unreachable: None,
        status: None,
        facts: None,
    }
}

/// Name of this controller at agents: its host name.
fn own_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = host.trim().to_ascii_lowercase();
    if check_name(&name).is_ok() { name } else { "server".to_owned() }
}

fn failure(error: PeerError) -> ApiError {
    match error.is_bad_input() {
        true => ApiError::input(error),
        false => ApiError::environment(error),
    }
}

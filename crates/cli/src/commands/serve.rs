//! `trunkline serve`

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use trunkline_runner::WireMeans;
use trunkline_server::{
    Connections, Options, ServeError, Server, Token, TokenKind, Tokens, Transport, tokens_folder,
};

use super::browser::{Opener, Page};
use super::run::stop_with_note;
use super::{open_store, own_program};
use crate::args::Global;
use crate::args::serve::{Serve, ServeCommand};
use crate::controller;
use crate::json::{LoginLinkOutput, ServerOutput, TokenOutput, TokensOutput};
use crate::output::{self, Failure};

/// Where it is written how browsers reach the server that was started last, for links.
const ADDRESS: &str = "address";
/// The file that leads a browser to the login link.
const PAGE: &str = "open.html";

pub(super) fn serve(global: &Global, arguments: &Serve) -> Result<u8, Failure> {
    if arguments.openapi {
        let document = trunkline_server::openapi().to_pretty_json();
        let document =
            document.map_err(|e| Failure::environment(format_args!("cannot create the description: {e}")))?;
        output::print(document);
        return Ok(output::DONE);
    }
    match &arguments.command {
        None => answer(global, arguments),
        Some(ServeCommand::Token { name, address }) => token(global, name.as_deref(), address.as_deref()),
        Some(ServeCommand::Tokens) => list(global),
        Some(ServeCommand::Revoke { name }) => {
            tokens()?.revoke(name).map_err(failure)?;
            output::note(format_args!("`{name}` is revoked"));
            Ok(output::DONE)
        }
    }
}

fn answer(global: &Global, arguments: &Serve) -> Result<u8, Failure> {
    let is_local = arguments.listen.ip().to_canonical().is_loopback() && arguments.behind_proxy.is_none();
    if arguments.no_login && !is_local {
        return Err(Failure::input(
            "--no-login is for a loopback address without a proxy: other machines always have to log in",
        ));
    }
    // Before the user namespace, in which browsers do not work.
    let opener = Opener::start(arguments.browser);
    // First of all: where the user has no privileges the process enters a user namespace, which it cannot once it has a
    // second thread.
    let wire = WireMeans::gain(own_program()?, vec!["wire".into(), "init".into()]);
    // What was typed is judged before anything is written.
    let (files, secrets) = (files(arguments)?, secrets()?);
    let store = open_store(global)?;
    let server = Server::bind(Options {
        listen: arguments.listen,
        transport: transport(arguments),
        authenticate: !arguments.no_login,
        connections: Connections::default(),
        place: place(global, store.directory()),
        store,
        files,
        folder: controller::folder()?,
        secrets: secrets.clone(),
        program: own_program()?,
        wire: wire.map_err(|error| error.to_string()),
    })
    .map_err(failure)?;
    let stop = stop_with_note("stopping the server; press Ctrl-C again to exit at once")?;
    let url = server.url();
    if server.asks_for_tokens() {
        let written = std::fs::write(secrets.join(ADDRESS), &url);
        written
            .map_err(|e| Failure::environment(format_args!("{}: {e}", secrets.join(ADDRESS).display())))?;
    }
    // The logs of a server for other machines are no place for a link.
    let link = match server.asks_for_tokens() && is_local {
        true => Some(login_link(&url, &tokens()?)?),
        false => None,
    };
    match (&link, server.asks_for_tokens()) {
        (Some(link), _) => {
            output::note(format_args!("serving on {url}, for this machine only"));
            output::note(format_args!(
                "log in with this link, once, within ten minutes: {link}\n`trunkline serve token` prints another"
            ));
        }
        (None, true) => {
            output::note(format_args!(
                "serving on {url}; `trunkline serve token` prints a link that logs in"
            ));
        }
        (None, false) => {
            output::note(format_args!("serving on {url}, for every user of this machine, without login"));
        }
    }
    let _page = open(opener, link.as_deref().unwrap_or(&url), &secrets);
    if global.json {
        output::print_json(&ServerOutput { url, link });
    }
    server.serve(&stop).map_err(failure)?;
    Ok(output::DONE)
}

/// Opens a browser, if one is to be opened. The file that leads it there is removed when the result is dropped.
fn open(opener: Option<Opener>, address: &str, secrets: &Path) -> Option<Page> {
    let opener = opener?;
    let path = secrets.join(PAGE);
    let page = Page::write(&path, address).and_then(|page| opener.open(&page).map(|()| page));
    page.inspect_err(|error| {
        output::warn(format_args!("no browser could be opened with `{}`: {error}", path.display()))
    })
    .ok()
}

/// Makes a link that logs a browser in, once.
fn login_link(address: &str, tokens: &Tokens) -> Result<String, Failure> {
    let code = tokens.make_link(Timestamp::now()).map_err(failure)?;
    Ok(format!("{}/#/login/{code}", address.trim().trim_end_matches('/')))
}

fn transport(arguments: &Serve) -> Transport {
    match (&arguments.behind_proxy, &arguments.certificate, &arguments.key) {
        (Some(url), ..) => Transport::BehindProxy(url.clone()),
        (None, Some(certificate), Some(key)) => {
            Transport::Tls { certificate: certificate.clone(), key: key.clone() }
        }
        _ if arguments.tls => Transport::OwnTls,
        _ => Transport::Plain,
    }
}

/// The store, as people say it: without a password.
fn place(global: &Global, directory: &Path) -> String {
    match global.store.as_deref().and_then(Path::to_str).and_then(trunkline_store::server_name) {
        Some((_, name)) => format!("the server {name}"),
        None => directory.display().to_string(),
    }
}

fn files(arguments: &Serve) -> Result<PathBuf, Failure> {
    let asked = arguments.files.clone().unwrap_or_else(|| PathBuf::from("."));
    let folder = std::fs::canonicalize(&asked);
    let folder = folder.map_err(|e| Failure::input(format_args!("--files {}: {e}", asked.display())))?;
    match folder.is_dir() {
        true => Ok(folder),
        false => Err(Failure::input(format_args!("--files {} is not a folder", asked.display()))),
    }
}

fn token(global: &Global, name: Option<&str>, address: Option<&str>) -> Result<u8, Failure> {
    let tokens = tokens()?;
    let Some(name) = name else {
        let address = match address {
            Some(address) => address.to_owned(),
            None => std::fs::read_to_string(secrets()?.join(ADDRESS)).map_err(|_| {
                Failure::input(
                    "no server with login has been started here yet: start one, or give the address that browsers \
                     use with `--address https://HOST:PORT`",
                )
            })?,
        };
        let link = login_link(&address, &tokens)?;
        match global.json {
            true => output::print_json(&LoginLinkOutput { link }),
            false => output::print(&link),
        }
        output::note("open it in a browser within ten minutes; it works once");
        return Ok(output::DONE);
    };
    let token = tokens.make_program(name, Timestamp::now()).map_err(failure)?;
    match global.json {
        true => output::print_json(&TokenOutput { name: name.to_owned(), token }),
        false => output::print(&token),
    }
    output::note("send it as `Authorization: Bearer TOKEN`; it is not stored and cannot be shown again");
    Ok(output::DONE)
}

fn list(global: &Global) -> Result<u8, Failure> {
    let tokens = tokens()?.list(Timestamp::now()).map_err(failure)?;
    if global.json {
        output::print_json(&TokensOutput { tokens });
        return Ok(output::DONE);
    }
    if tokens.is_empty() {
        output::note("no tokens");
        return Ok(output::DONE);
    }
    let mut rows = vec![["name", "for", "since", "until"].map(str::to_owned).to_vec()];
    rows.extend(tokens.iter().map(row));
    output::print(output::table(&rows, output::screen()));
    Ok(output::DONE)
}

fn row(token: &Token) -> Vec<String> {
    let time = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M UTC").to_string();
    let kind = match token.kind {
        TokenKind::Link => "an unused login link",
        TokenKind::Program => "a program",
        TokenKind::Browser => "a browser",
    };
    let until = token.expires.map_or_else(|| "it is revoked".to_owned(), time);
    vec![token.name.clone(), kind.to_owned(), time(token.made), until]
}

fn tokens() -> Result<Tokens, Failure> {
    Tokens::open(&tokens_folder(&secrets()?)).map_err(failure)
}

/// Where tokens and the server's own certificate are kept.
fn secrets() -> Result<PathBuf, Failure> {
    Ok(controller::folder()?.join("serve"))
}

fn failure(error: ServeError) -> Failure {
    if error.is_bad_input() { Failure::input(error) } else { Failure::environment(error) }
}

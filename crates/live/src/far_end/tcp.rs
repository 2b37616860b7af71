//! The far end's TCP: one thread accepts, and one serves each connection.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::mpsc::SyncSender;
use std::thread::{Builder, Scope};

use trunkline_flows::{Delivery, Listener};
use trunkline_io::poll::Interest;
use trunkline_io::{Poller, clock, pace};
use trunkline_transport::framing::Deframer;

use super::{LOOK, Reporter, Session};
use crate::ceiling::Turn;
use crate::near::tcp::is_timeout;
use crate::protocol::FromFar;
use crate::run::SLIM;

/// Accepts connections of the peer until the session is over.
pub(super) fn accept<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    listeners: &[TcpListener],
    session: &'scope Session,
    say: &SyncSender<FromFar>,
) {
    let mut poller = Poller::new(listeners.iter().map(|listener| (listener.as_fd(), Interest::Read)));
    while !session.is_over() {
        if poller.wait(LOOK).is_err() {
            trunkline_io::pace::sleep(LOOK);
            continue;
        }
        for place in poller.ready() {
            // The connection may have gone again, or we are out of descriptors: the near end will notice.
            let Ok((stream, source)) = listeners[place].accept() else { continue };
            if source.ip() != session.peer || prepare(&stream).is_err() {
                continue;
            }
            let reporter = Reporter::new(say.clone());
            let thread = Builder::new().name("far-tcp".to_owned()).stack_size(SLIM);
            let _ = thread.spawn_scoped(scope, move || serve(stream, session, reporter));
        }
    }
}

/// Blocking calls, which look up in time to see that the session is over.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(LOOK.to_std()))?;
    stream.set_write_timeout(Some(LOOK.to_std()))
}

/// Takes messages from one connection until it ends or the session is over.
fn serve(mut stream: TcpStream, session: &Session, mut reporter: Reporter) {
    let mut deframer = Deframer::new(session.key, 0..session.members);
    let listener = session.listener();
    let mut chunk = vec![0; 64 << 10];
    let mut back = Vec::new();
    let mut turn = None;
    while !session.is_over() {
        let length = match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if is_timeout(&error) => {
                session.clock().inspect(|clock| reporter.tick(clock.now()));
                continue;
            }
            Err(_) => break,
        };
        let Some(clock) = session.clock() else { continue };
        let now = clock.now();
        deframer.push(&chunk[..length]);
        while let Some(framed) = deframer.next() {
            if framed.skipped > 0 {
                listener.unmatched(now, framed.skipped, &mut reporter);
            }
            let delivery = listener.deliver(now, &framed.header, framed.bytes, &mut reporter);
            let Delivery::Reply(flow, reply) = delivery else { continue };
            back.clear();
            Listener::reply(now, &framed.header, (flow, reply), framed.bytes, &mut back);
            let turn = turn.get_or_insert_with(|| session.turn(session.place_of(flow.0)?));
            if !wait_for(turn, back.len(), session) || write_all(&mut stream, &back, session).is_err() {
                return;
            }
        }
        reporter.tick(now);
    }
    let rest = deframer.finish();
    if let (1.., Some(clock)) = (rest, session.clock()) {
        listener.unmatched(clock.now(), rest, &mut reporter);
    }
}

/// Waits until so much may be sent back; false if the session ends before.
fn wait_for(turn: &mut Option<Turn>, bytes: usize, session: &Session) -> bool {
    let Some(turn) = turn else { return true };
    let at = turn.at(clock::raw_now());
    loop {
        let now = clock::raw_now();
        if now >= at {
            turn.sent(bytes);
            return true;
        }
        if session.is_over() {
            return false;
        }
        pace::sleep_until_raw(at.min(now + LOOK.as_nanos()));
    }
}

/// Writes everything, unless the session ends meanwhile.
fn write_all(stream: &mut TcpStream, mut bytes: &[u8], session: &Session) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(taken) => bytes = &bytes[taken..],
            Err(error) if is_timeout(&error) && !session.is_over() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

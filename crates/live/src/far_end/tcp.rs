//! The far end's TCP: one thread accepts, and one serves each connection.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::mpsc::SyncSender;
use std::thread::{Builder, Scope};

use trunkline_core::Time;
use trunkline_flows::{Buffers, Delivery, Found, Listener, Reader};
use trunkline_io::poll::Interest;
use trunkline_io::sockets::StreamSocket;
use trunkline_io::{Poller, clock, pace};
use trunkline_transport::Conversation as _;

use super::{LOOK, Reporter, Session};
use crate::ceiling::Turn;
use crate::protocol::FromFar;
use crate::threads::SLIM;

/// So many buffers of replies are kept for the next.
const SPARE: usize = 64;

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

/// Blocking reads, which look up in time to see that the session is over.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(LOOK.to_std()))
}

/// Takes messages from one connection until it ends or the session is over.
fn serve(stream: TcpStream, session: &Session, mut reporter: Reporter) {
    let mut socket = StreamSocket::new(stream);
    let mut reader = Reader::new(socket.features(), session.key, 0..session.members);
    let mut listener = session.listener();
    let (mut scratch, mut buffers, mut replies) = (Vec::new(), Buffers::new(SPARE), Vec::new());
    let mut turn = None;
    while !session.is_over() && !socket.is_ended() {
        let any = reader.receive(&mut socket, &mut scratch);
        let Some(now) = session.clock().map(|clock| clock.now()) else { continue };
        if any {
            reader.messages(&mut scratch, |found| match found {
                Found::Unmatched(bytes) => listener.unmatched(now, bytes, &mut reporter),
                Found::Message(header, bytes) => {
                    let delivery = listener.deliver(now, &header, bytes, &mut reporter);
                    if let Delivery::Reply(flow, reply) = delivery {
                        turn.get_or_insert_with(|| session.turn(session.place_of(flow.0)?));
                        let mut back = buffers.take();
                        Listener::reply(now, &header, (flow, reply), bytes, &mut back);
                        replies.push(back);
                    }
                }
            });
            replies.drain(..).for_each(|reply| listener.keep_reply(reply));
            let turn = turn.as_mut().and_then(Option::as_mut);
            reply(&mut listener, &mut buffers, &mut socket, turn, session);
        }
        reporter.tick(now);
    }
    let rest = reader.finish();
    if let (1.., Some(clock)) = (rest, session.clock()) {
        listener.unmatched(clock.now(), rest, &mut reporter);
    }
}

/// Sends all replies that wait, unless the session or the connection ends before.
fn reply(
    listener: &mut Listener,
    buffers: &mut Buffers,
    socket: &mut StreamSocket,
    mut turn: Option<&mut Turn>,
    session: &Session,
) {
    while !session.is_over() && socket.broken().is_none() {
        if !listener.has_replies() && !socket.has_rest() {
            return;
        }
        if let Some(turn) = &mut turn {
            let (at, now) = (turn.at(clock::raw_now()), clock::raw_now());
            if at > now {
                pace::sleep_until_raw(at.min(now + LOOK.as_nanos()));
                continue;
            }
        }
        // The kernel's sockets keep their own time.
        let went_on = socket.flush() || listener.send_reply(Time::ZERO, buffers, socket).is_some();
        let taken = socket.take_taken();
        if let (1.., Some(turn)) = (taken, &mut turn) {
            turn.sent(taken);
        }
        if !went_on {
            socket.wait_for_room(LOOK);
        }
    }
}

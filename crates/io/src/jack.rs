//! Clients of a JACK server, by libjack as it is found at run time: nothing of it is needed to build, and a machine without
//! it is told so.
//!
//! Only what a client with audio ports needs, of a server of any name. What JACK announces meanwhile is collected in
//! [`Notices`].

mod library;

use std::ffi::{CStr, CString, c_int, c_ulong, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use library::{Library, RawClient, RawPort};

use crate::clock;

/// Why JACK cannot be used. Each text is a whole sentence without its full stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JackError {
    /// There is no libjack.
    #[error(
        "JACK is not installed ({0}); install `jackd2` or `pipewire-jack`, or choose another device than `jack`"
    )]
    NotInstalled(String),
    /// There is no server of this name.
    #[error(
        "the JACK server `{0}` does not respond; start it, for example with `jackd -n {0} -d alsa`, or \
        name another"
    )]
    NoServer(String),
    /// The server does not take this client.
    #[error("the JACK server `{server}` refused the client `{client}` (status {status:#x})")]
    Refused {
        /// The server's name.
        server: String,
        /// The client's.
        client: String,
        /// `JackStatus` of jack/types.h.
        status: i32,
    },
    /// libjack serves one server at a time.
    #[error(
        "this process uses the JACK server `{open}` and cannot use `{asked}` too; run another process for it"
    )]
    OtherServer {
        /// The one that is used.
        open: String,
        /// The one that is asked for.
        asked: String,
    },
    /// A name cannot be one of JACK's.
    #[error("invalid JACK name `{0}`")]
    Name(String),
    /// The server has no place for another port.
    #[error("the JACK server did not register the port `{0}`")]
    Port(String),
    /// The server does not start to call the client.
    #[error("the JACK server did not activate the client")]
    Activate,
}

/// Which way sound goes through a port, seen from its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Into the client.
    Input,
    /// Out of the client.
    Output,
}

/// What is called once per period.
pub trait Process: Send {
    /// Called in JACK's real-time thread: no waiting, no lock, no allocation, no panic.
    fn process(&mut self, period: &mut Period<'_>);
}

/// What JACK has announced.
#[derive(Debug, Default)]
pub struct Notices {
    /// How often somebody was too slow.
    pub xruns: AtomicU64,
    /// The server is gone, or has thrown the client out.
    pub is_gone: AtomicBool,
    /// [`Process::process`] has panicked and is not called any more.
    pub has_panicked: AtomicBool,
    /// Frames per second.
    pub sample_rate: AtomicU32,
    /// Frames per period.
    pub buffer_size: AtomicU32,
}

/// A client. Dropping it closes it.
pub struct Client {
    raw: NonNull<RawClient>,
    library: &'static Library,
    name: String,
    inputs: Vec<NonNull<RawPort>>,
    outputs: Vec<NonNull<RawPort>>,
    notices: Arc<Notices>,
    /// What JACK's threads use. Not touched from here between activation and closing.
    context: Option<NonNull<Context>>,
}

// SAFETY: libjack's functions may be called from any thread, and the context is not touched while JACK uses it.
unsafe impl Send for Client {}

impl Client {
    /// Opens a client of the server of this name, or of the one that `JACK_DEFAULT_SERVER` names, or else of `default`.
    /// Starts no server. A client's name that is taken is made unique.
    ///
    /// # Errors
    /// If there is no libjack or no such server, or it refuses.
    pub fn open(name: &str, server: Option<&str>) -> Result<Client, JackError> {
        let library = library::library().map_err(|why| JackError::NotInstalled(why.to_owned()))?;
        let named = server.map(c_string).transpose()?;
        let default = || std::env::var("JACK_DEFAULT_SERVER").unwrap_or_else(|_| "default".to_owned());
        let server = server.map_or_else(default, str::to_owned);
        let c_name = c_string(name)?;
        enter(&server)?;
        let mut status = 0;
        // SAFETY: the strings and the status outlive the call; the variable argument is what SERVER_NAME asks for.
        let raw = unsafe {
            let (name, options) = (c_name.as_ptr(), library::NO_START_SERVER);
            match &named {
                Some(server) => {
                    (library.client_open)(name, options | library::SERVER_NAME, &mut status, server.as_ptr())
                }
                None => (library.client_open)(name, options, &mut status),
            }
        };
        let Some(raw) = NonNull::new(raw) else {
            leave();
            return Err(if status & library::SERVER_FAILED != 0 {
                JackError::NoServer(server)
            } else {
                JackError::Refused { server, client: name.to_owned(), status }
            });
        };
        // SAFETY: the client is open, and its name ends in zero and lives as long.
        let name = unsafe { CStr::from_ptr((library.get_client_name)(raw.as_ptr())) };
        let name = name.to_string_lossy().into_owned();
        let client = Client {
            raw,
            library,
            name,
            inputs: Vec::new(),
            outputs: Vec::new(),
            notices: Arc::default(),
            context: None,
        };
        // SAFETY: the client is open.
        let (sample_rate, buffer_size) =
            unsafe { ((library.get_sample_rate)(raw.as_ptr()), (library.get_buffer_size)(raw.as_ptr())) };
        client.notices.sample_rate.store(sample_rate, Ordering::Relaxed);
        client.notices.buffer_size.store(buffer_size, Ordering::Relaxed);
        Ok(client)
    }

    /// What JACK calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What JACK announces; the rates are those of now.
    pub fn notices(&self) -> &Arc<Notices> {
        &self.notices
    }

    /// Adds an audio port. Ports of a direction are numbered from 0 in this order.
    ///
    /// # Errors
    /// If the server has no place for it, or the name is taken or none.
    ///
    /// # Panics
    /// If the client is active.
    pub fn register(&mut self, name: &str, direction: Direction) -> Result<(), JackError> {
        assert!(self.context.is_none(), "ports are registered before the client is active");
        let (ports, flags) = match direction {
            Direction::Input => (&mut self.inputs, library::IS_INPUT),
            Direction::Output => (&mut self.outputs, library::IS_OUTPUT),
        };
        let c_name = c_string(name)?;
        // SAFETY: the client is open, and the strings outlive the call. JACK knows the size of an audio port's buffer.
        let port = unsafe {
            let (client, kind) = (self.raw.as_ptr(), library::AUDIO.as_ptr());
            (self.library.port_register)(client, c_name.as_ptr(), kind, flags, 0)
        };
        ports.push(NonNull::new(port).ok_or_else(|| JackError::Port(name.to_owned()))?);
        Ok(())
    }

    /// Begins to call `process`.
    ///
    /// # Errors
    /// If the server does not.
    ///
    /// # Panics
    /// If it is active already.
    pub fn activate(&mut self, process: Box<dyn Process>) -> Result<(), JackError> {
        assert!(self.context.is_none(), "a client is activated once");
        let context = Box::new(Context {
            ports: Ports {
                client: self.raw,
                library: self.library,
                inputs: self.inputs.clone(),
                outputs: self.outputs.clone(),
            },
            notices: Arc::clone(&self.notices),
            process,
            is_inside: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
        });
        let context = NonNull::from(Box::leak(context));
        self.context = Some(context);
        let (client, data) = (self.raw.as_ptr(), context.as_ptr().cast());
        // SAFETY: the client is open; the context lives until it is closed, after which nothing is called any more.
        let activated = unsafe {
            (self.library.set_process_callback)(client, on_process, data);
            (self.library.set_buffer_size_callback)(client, on_buffer_size, data);
            (self.library.set_sample_rate_callback)(client, on_sample_rate, data);
            (self.library.set_xrun_callback)(client, on_xrun, data);
            (self.library.on_shutdown)(client, on_shutdown, data);
            (self.library.activate)(client)
        };
        if activated == 0 { Ok(()) } else { Err(JackError::Activate) }
    }

    /// The full names (`CLIENT:PORT`) of all audio ports of this direction, in the server's order: sound goes into an input.
    /// `physical`: only those of sound cards.
    pub fn ports(&self, direction: Direction, physical: bool) -> Vec<String> {
        let flags: c_ulong = match direction {
            Direction::Input => library::IS_INPUT,
            Direction::Output => library::IS_OUTPUT,
        } | if physical { library::IS_PHYSICAL } else { 0 };
        let mut names = Vec::new();
        // SAFETY: the client is open. The list, if there is one, ends in null, and so do its strings in zero; it is given
        // back as libjack asks.
        unsafe {
            let (client, any) = (self.raw.as_ptr(), std::ptr::null());
            let list = (self.library.get_ports)(client, any, library::AUDIO.as_ptr(), flags);
            if !list.is_null() {
                let mut entry = list;
                while !(*entry).is_null() {
                    names.push(CStr::from_ptr(*entry).to_string_lossy().into_owned());
                    entry = entry.add(1);
                }
                (self.library.free)(list.cast());
            }
        }
        names
    }

    /// Connects two ports by their full names; says whether they are connected now.
    pub fn connect(&self, from: &str, to: &str) -> bool {
        let (Ok(from), Ok(to)) = (c_string(from), c_string(to)) else { return false };
        // SAFETY: the client is open, and the strings outlive the call.
        let result = unsafe { (self.library.connect)(self.raw.as_ptr(), from.as_ptr(), to.as_ptr()) };
        result == 0 || result == libc::EEXIST
    }
}

/// A period is shorter than this. A `process` that takes longer has failed anyway.
const LONGEST_PERIOD: Duration = Duration::from_secs(1);

impl Client {
    /// Waits until `process` is not running, and keeps it from running again. libjack cancels its thread at any instruction
    /// (`PTHREAD_CANCEL_ASYNCHRONOUS`), and glibc ends the program if code that catches panics is on its stack.
    fn quiet(&self) {
        let Some(context) = self.context else { return };
        // SAFETY: the context lives until the client is closed; these two fields are atomic.
        let (is_closing, is_inside) =
            unsafe { (&(*context.as_ptr()).is_closing, &(*context.as_ptr()).is_inside) };
        is_closing.store(true, Ordering::SeqCst);
        let began = Instant::now();
        while is_inside.load(Ordering::SeqCst) && began.elapsed() < LONGEST_PERIOD {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.quiet();
        // SAFETY: it is open and is not used after this. When it is closed, JACK's threads have left the context, which
        // came out of a box.
        unsafe {
            (self.library.client_close)(self.raw.as_ptr());
            if let Some(context) = self.context {
                drop(Box::from_raw(context.as_ptr()));
            }
        }
        leave();
    }
}

/// One period: as many frames of each port, one after the other.
pub struct Period<'p> {
    ports: &'p Ports,
    frames: u32,
    start: u64,
}

impl Period<'_> {
    /// How many frames it has.
    pub fn frames(&self) -> usize {
        self.frames as usize
    }

    /// When it began, as [`clock::raw_now`] has it, smoothed by JACK.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// What came in through the port of this number; empty if there is none.
    pub fn input(&self, port: usize) -> &[f32] {
        match self.ports.inputs.get(port).and_then(|&port| self.buffer(port)) {
            // SAFETY: JACK has so many samples there until the period ends, and nobody writes them meanwhile: outputs have
            // buffers of their own.
            Some(samples) => unsafe { std::slice::from_raw_parts(samples.as_ptr(), self.frames()) },
            None => &[],
        }
    }

    /// What goes out through the port of this number; empty if there is none. Holds anything at first.
    pub fn output(&mut self, port: usize) -> &mut [f32] {
        match self.ports.outputs.get(port).and_then(|&port| self.buffer(port)) {
            // SAFETY: as above; each output has a buffer of its own, and `self` lends one at a time.
            Some(samples) => unsafe { std::slice::from_raw_parts_mut(samples.as_ptr(), self.frames()) },
            None => &mut [],
        }
    }

    fn buffer(&self, port: NonNull<RawPort>) -> Option<NonNull<f32>> {
        // SAFETY: the port is the client's, and a period exists only while JACK calls.
        let buffer = unsafe { (self.ports.library.port_get_buffer)(port.as_ptr(), self.frames) };
        NonNull::new(buffer.cast())
    }
}

/// What JACK's threads use of a client.
struct Context {
    ports: Ports,
    notices: Arc<Notices>,
    /// Used by the real-time thread of JACK only.
    process: Box<dyn Process>,
    /// JACK's real-time thread is within [`on_process`].
    is_inside: AtomicBool,
    /// `process` must not be called again.
    is_closing: AtomicBool,
}

struct Ports {
    client: NonNull<RawClient>,
    library: &'static Library,
    inputs: Vec<NonNull<RawPort>>,
    outputs: Vec<NonNull<RawPort>>,
}

impl Ports {
    /// When the present period began. JACK counts microseconds of a clock of its own choice.
    fn start(&self) -> u64 {
        let (mut frames, mut start, mut next, mut length) = (0, 0, 0, 0.0);
        // SAFETY: the client is open, the places for the results are valid.
        let (result, now) = unsafe {
            let client = self.client.as_ptr();
            let result =
                (self.library.get_cycle_times)(client, &mut frames, &mut start, &mut next, &mut length);
            (result, (self.library.get_time)())
        };
        let age = if result == 0 { now.saturating_sub(start) } else { 0 };
        clock::raw_now().saturating_sub(age * 1000)
    }
}

unsafe extern "C" fn on_process(frames: u32, data: *mut c_void) -> c_int {
    let context: *mut Context = data.cast();
    // SAFETY: the context lives until the client is closed. `process` is used in this thread only; the rest is only read.
    let (ports, notices, process) =
        unsafe { (&(*context).ports, &(*context).notices, &mut *(*context).process) };
    // SAFETY: as above; both are atomic.
    let (is_closing, is_inside) = unsafe { (&(*context).is_closing, &(*context).is_inside) };
    let mut period = Period { ports, frames, start: ports.start() };
    is_inside.store(true, Ordering::SeqCst);
    if is_closing.load(Ordering::SeqCst) {
        is_inside.store(false, Ordering::SeqCst);
        (0..ports.outputs.len()).for_each(|port| period.output(port).fill(0.0));
        return 0;
    }
    let is_well = !notices.has_panicked.load(Ordering::Relaxed);
    // A panic must not go on into JACK.
    if !is_well || catch_unwind(AssertUnwindSafe(|| process.process(&mut period))).is_err() {
        notices.has_panicked.store(true, Ordering::Relaxed);
        (0..ports.outputs.len()).for_each(|port| period.output(port).fill(0.0));
    }
    is_inside.store(false, Ordering::SeqCst);
    0
}

unsafe extern "C" fn on_buffer_size(frames: u32, data: *mut c_void) -> c_int {
    // SAFETY: the context lives until the client is closed.
    unsafe { notices(data) }.buffer_size.store(frames, Ordering::Relaxed);
    0
}

unsafe extern "C" fn on_sample_rate(rate: u32, data: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe { notices(data) }.sample_rate.store(rate, Ordering::Relaxed);
    0
}

unsafe extern "C" fn on_xrun(data: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe { notices(data) }.xruns.fetch_add(1, Ordering::Relaxed);
    0
}

unsafe extern "C" fn on_shutdown(data: *mut c_void) {
    // SAFETY: as above.
    unsafe { notices(data) }.is_gone.store(true, Ordering::Relaxed);
}

/// # Safety
/// `data` is the context of a client that is not closed.
unsafe fn notices<'c>(data: *mut c_void) -> &'c Notices {
    // SAFETY: the caller's promise; this field is only ever read.
    unsafe { &(*data.cast::<Context>()).notices }
}

/// Which server this process uses, and how many of its clients are open.
static SERVER: Mutex<Option<(String, usize)>> = Mutex::new(None);

fn enter(server: &str) -> Result<(), JackError> {
    let mut entered = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    match &mut *entered {
        Some((open, _)) if open != server => {
            return Err(JackError::OtherServer { open: open.clone(), asked: server.to_owned() });
        }
        Some((_, clients)) => *clients += 1,
        None => *entered = Some((server.to_owned(), 1)),
    }
    Ok(())
}

fn leave() {
    let mut entered = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    match &mut *entered {
        Some((_, clients)) if *clients > 1 => *clients -= 1,
        _ => *entered = None,
    }
}

fn c_string(text: &str) -> Result<CString, JackError> {
    CString::new(text).map_err(|_| JackError::Name(text.replace('\0', "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The process uses one server.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn a_server_that_is_not_there_is_named() {
        let _alone = ALONE.lock();
        let missing = "trunkline-no-such-server";
        match Client::open("nobody", Some(missing)).map(|_| ()) {
            Err(JackError::NoServer(name)) => assert_eq!(name, missing),
            // Not every machine has libjack.
            other => assert!(matches!(other, Err(JackError::NotInstalled(_))), "{other:?}"),
        }
    }

    #[test]
    fn one_server_at_a_time() {
        let _alone = ALONE.lock();
        enter("one").unwrap();
        enter("one").unwrap();
        leave();
        let refused = JackError::OtherServer { open: "one".to_owned(), asked: "two".to_owned() };
        assert_eq!(enter("two"), Err(refused));
        leave();
        assert_eq!(enter("two"), Ok(()));
        leave();
    }
}

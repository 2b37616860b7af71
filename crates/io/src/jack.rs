//! Clients of a JACK server of any name. libjack takes the name as a variable argument, which the `jack` crate leaves out.

use std::ffi::{CString, c_char};
use std::sync::Once;

use jack::jack_sys;
use jack::{Client, ClientOptions, ClientStatus, Error};

/// Opens a client of the JACK server of this name, or of the one that `JACK_DEFAULT_SERVER` names. Starts no server; what
/// libjack would print is not printed. A name that another client has is made unique.
///
/// The libjack of JACK 2 talks with one server at a time: all clients of a process must be of the same.
///
/// # Errors
/// [`Error::LibraryError`] if libjack is not installed, [`Error::ClientError`] with what the server says.
pub fn open(client: &str, server: Option<&str>) -> Result<Client, Error> {
    type Open = unsafe extern "C" fn(
        *const c_char,
        jack_sys::jack_options_t,
        *mut jack_sys::jack_status_t,
        ...
    ) -> *mut jack_sys::jack_client_t;
    static SILENCE: Once = Once::new();

    let library = jack_sys::library().map_err(|error| Error::LibraryError(error.to_string()))?;
    SILENCE.call_once(|| jack::set_logger(jack::LoggerType::None));
    let Some(server) = server else {
        return Client::new(client, ClientOptions::NO_START_SERVER).map(|(client, _)| client);
    };
    let (Ok(client), Ok(server)) = (CString::new(client), CString::new(server)) else {
        return Err(Error::ClientError(ClientStatus::INVALID_OPTION));
    };
    let options = ClientOptions::NO_START_SERVER | ClientOptions::SERVER_NAME;
    let mut status = 0;
    // SAFETY: the type is that of the function in jack/jack.h; the strings and the status outlive the call; the one variable
    // argument is the server's name, as JackServerName asks.
    let raw = unsafe {
        let open = library
            .get::<Open>(b"jack_client_open\0")
            .map_err(|error| Error::LibraryError(error.to_string()))?;
        open(client.as_ptr(), options.bits(), &mut status, server.as_ptr())
    };
    if raw.is_null() {
        return Err(Error::ClientError(ClientStatus::from_bits_truncate(status)));
    }
    // SAFETY: it has just been opened, and nobody else closes it.
    Ok(unsafe { Client::from_raw(raw) })
}
